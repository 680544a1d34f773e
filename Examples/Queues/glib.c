/* SPDX-License-Identifier: Apache-2.0
 * cc glib.c -pthread $(pkg-config --cflags --libs glib-2.0 callbackregistry)
 *
 * A queue in a main loop of GLib, and so of GTK. */
#include <glib-unix.h>

#include "work.h"

static gboolean deliver(gint descriptor, GIOCondition condition,
                        gpointer context) {
  work *it = context;
  (void)descriptor;
  (void)condition;
  must(cbr_queue_run(it->queue, 8, NULL));
  return G_SOURCE_CONTINUE;
}

static void stop(void *context) { g_main_loop_quit(context); }

int main(void) {
  work work;
  window window = {0, 0};
  GMainLoop *loop = g_main_loop_new(NULL, FALSE);
  begin_work(&work, &window, stop, loop);

  guint source = g_unix_fd_add(cbr_queue_descriptor(work.queue), G_IO_IN,
                               deliver, &work);
  g_main_loop_run(loop);
  g_source_remove(source);
  g_main_loop_unref(loop);
  return end_work(&work);
}

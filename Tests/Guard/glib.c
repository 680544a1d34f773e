/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers of a signal: their data dies, they are found and disconnected by
 * their function, and blocked; one answers.
 */
#include <glib-object.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subject.h"

static void hear(GObject *object, int number, gpointer data) {
  (void)object;
  (void)number;
  if (subject_called() == 1) subject_died(data);
}

static int answer(GObject *object, int number, gpointer data) {
  (void)object;
  return number + *(int *)data;
}

static void swapped(gpointer data) { ++*(int *)data; }

static void gone(gpointer data, GClosure *closure) {
  (void)closure;
  ++*(int *)data;
}

/* Whether a forked child calls the dead, or does not call the living. */
static int child_is_wrong(GObject *object, const int *hits) {
  int before = *hits, status = 1;
  pid_t child = fork();
  if (child == 0) {
    g_signal_emit_by_name(object, "told", 7);
    _exit(*hits != before + 1 || subject_called() != 2);
  }
  waitpid(child, &status, 0);
  return status != 0;
}

int main(void) {
  static char mortal;
  int data = 1, destroyed = 0, hits = 0;
  GObject *object = g_object_new(G_TYPE_OBJECT, NULL);
  GType type = G_TYPE_FROM_INSTANCE(object);
  g_signal_new("told", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
               G_TYPE_NONE, 1, G_TYPE_INT);
  g_signal_new("asked", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
               G_TYPE_INT, 1, G_TYPE_INT);
  g_signal_connect(object, "told", G_CALLBACK(hear), &mortal);
  g_signal_connect_swapped(object, "told", G_CALLBACK(swapped), &hits);
  g_signal_connect_data(object, "asked", G_CALLBACK(answer), &data, NULL, 0);
  int answered = 0;
  for (int each = 0; each < 3; each++) g_signal_emit_by_name(object, "told", 7);
  printf("child %d\n", child_is_wrong(object, &hits));
  fflush(stdout);
  g_signal_emit_by_name(object, "asked", 41, &answered);
  printf("answered %d, swapped %d\n", answered, hits);
  printf("found %d\n",
         g_signal_handler_find(object, G_SIGNAL_MATCH_FUNC, 0, 0, NULL,
                               (gpointer)(guintptr)answer, NULL) != 0);
  guint first = g_signal_handlers_block_by_func(
      object, (gpointer)(guintptr)answer, &data);
  guint then = g_signal_handlers_unblock_by_func(
      object, (gpointer)(guintptr)answer, &data);
  printf("blocked %u, unblocked %u\n", first, then);
  first = g_signal_handlers_disconnect_by_func(
      object, (gpointer)(guintptr)answer, &data);
  then = g_signal_handlers_disconnect_by_func(
      object, (gpointer)(guintptr)answer, &data);
  printf("disconnected %u, then %u\n", first, then);
  g_signal_connect_data(object, "told", G_CALLBACK(swapped), &destroyed, gone,
                        G_CONNECT_SWAPPED);
  g_object_unref(object);
  printf("destroyed %d\n", destroyed);
  return subject_tell();
}

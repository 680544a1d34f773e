// SPDX-License-Identifier: Apache-2.0
//
// GLib: an idle source for each message, in a main loop on another thread.
#include <glib.h>

#include "../queue.h"

static gboolean receive(gpointer context) {
  (void)context;
  queue_receive();
  return G_SOURCE_REMOVE;
}

static gpointer run_loop(gpointer loop) {
  g_main_loop_run(loop);
  return NULL;
}

static void run_post(uint64_t count, unsigned thread) {
  (void)thread;
  uint64_t before = queue_received();
  for (uint64_t each = 0; each < count; each++) g_idle_add(receive, NULL);
  queue_await(before, count);
}

static void run_round_trip(uint64_t count, unsigned thread) {
  while (count--) run_post(1, thread);
}

void peer_queue(void) {
  g_thread_unref(g_thread_new("loop", run_loop, g_main_loop_new(NULL, FALSE)));
  queue_add_sustained("g_idle_add and its call", run_post);
  bench_add("g_idle_add, round trip", run_round_trip);
}

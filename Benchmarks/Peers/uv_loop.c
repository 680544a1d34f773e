// SPDX-License-Identifier: Apache-2.0
//
// libuv: uv_async_send merges what it is told, so messages go through a list
// with a lock beside it, as programs do.
#include <stdlib.h>
#include <uv.h>

#include "../queue.h"

typedef struct node { struct node *next; } node;

static uv_loop_t loop;
static uv_async_t async;
static uv_thread_t runner;
static uv_mutex_t lock;
static node *first, **last = &first;

static void receive(uv_async_t *handle) {
  (void)handle;
  uv_mutex_lock(&lock);
  node *all = first;
  first = NULL;
  last = &first;
  uv_mutex_unlock(&lock);
  while (all) {
    node *next = all->next;
    free(all);
    queue_receive();
    all = next;
  }
}

static void run_loop(void *context) {
  (void)context;
  uv_run(&loop, UV_RUN_DEFAULT);
}

static void run_post(uint64_t count, unsigned thread) {
  (void)thread;
  uint64_t before = queue_received();
  for (uint64_t each = 0; each < count; each++) {
    node *made = malloc(sizeof *made);
    made->next = NULL;
    uv_mutex_lock(&lock);
    *last = made;
    last = &made->next;
    uv_mutex_unlock(&lock);
    uv_async_send(&async);
  }
  queue_await(before, count);
}

static void run_round_trip(uint64_t count, unsigned thread) {
  while (count--) run_post(1, thread);
}

void peer_queue(void) {
  uv_loop_init(&loop);
  uv_mutex_init(&lock);
  uv_async_init(&loop, &async, receive);
  uv_thread_create(&runner, run_loop, NULL);
  queue_add_sustained("list, uv_async_send and its call", run_post);
  bench_add("uv_async_send, round trip", run_round_trip);
}

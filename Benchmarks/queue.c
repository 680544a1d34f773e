// SPDX-License-Identifier: Apache-2.0
//
// Posting to a queue and delivering: sustained, a message's time being that of
// a burst divided by their number; and one by one, to a thread that sleeps.
#include "queue.h"

#include <sched.h>

#include "ours.h"

static _Atomic uint64_t received;

static cbr_queue pumped, threaded, recorded_queue;
static cbr_token token, recorded;

void queue_receive(void) {
  bench_function(&bench_context);
  received++;
}

uint64_t queue_received(void) { return received; }

void queue_await(uint64_t before, uint64_t count) {
  while (received - before < count) sched_yield();
}

static void receive(void *context, void *payload) {
  (void)context;
  (void)payload;
  queue_receive();
}

static void run_bare(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) queue_receive();
}

static void post_to(cbr_queue queue, cbr_token to, uint64_t count) {
  cbr_message message = CBR_MESSAGE_INIT;
  uint64_t before = received;
  for (uint64_t each = 0; each < count; each++)
    ours_must(cbr_post(queue, to, &message), "cbr_post");
  queue_await(before, count);
}

static void run_pumped(uint64_t count, unsigned thread) {
  (void)thread;
  cbr_message message = CBR_MESSAGE_INIT;
  while (count > 0) {
    uint64_t some = count < 64 ? count : 64;
    for (uint64_t each = 0; each < some; each++)
      ours_must(cbr_post(pumped, token, &message), "cbr_post");
    ours_must(cbr_queue_run(pumped, 0, NULL), "cbr_queue_run");
    count -= some;
  }
}

static void run_threaded(uint64_t count, unsigned thread) {
  (void)thread;
  post_to(threaded, token, count);
}

static void run_recorded(uint64_t count, unsigned thread) {
  (void)thread;
  post_to(recorded_queue, recorded, count);
}

static void run_round_trip(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) post_to(threaded, token, 1);
}

void queue_add_sustained(const char *name, bench_run run) {
  bench_case what = {.name = name, .run = run, .count = 100000};
  bench_add_case(&what);
}

static cbr_queue add_queue(cbr_registry registry, uint32_t kind) {
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  cbr_queue queue;
  options.kind = kind;
  options.overflow = CBR_QUEUE_BLOCK;
  options.max_items = 65536;
  options.block_timeout_ns = CBR_FOREVER;
  ours_must(cbr_queue_create(registry, &options, &queue), "queue");
  return queue;
}

static cbr_token add_token(cbr_registry registry) {
  cbr_token made;
  ours_must(CBR_REGISTER(registry, "received", receive, NULL, NULL, CBR_NONE,
                         &made), "received");
  return made;
}

__attribute__((weak)) void peer_queue(void) {}

void bench_program(int count, char **arguments) {
  (void)count;
  (void)arguments;
  cbr_registry silent = ours_open("silent", CBR_LEVEL_OFF);
  cbr_registry loud = ours_open("loud", CBR_LEVEL_LIFECYCLE);
  pumped = add_queue(silent, CBR_QUEUE_PUMPED);
  threaded = add_queue(silent, CBR_QUEUE_THREAD);
  recorded_queue = add_queue(loud, CBR_QUEUE_THREAD);
  token = add_token(silent);
  recorded = add_token(loud);
  bench_group("queue");
  bench_add("bare call", run_bare);
  bench_add("post and run, one thread, off", run_pumped);
  queue_add_sustained("post and deliver, thread, off", run_threaded);
  queue_add_sustained("post and deliver, thread, lifecycle", run_recorded);
  bench_add("round trip to its sleeping thread", run_round_trip);
  peer_queue();
  bench_measure();
  cbr_registry_close(silent, CBR_FOREVER);
  cbr_registry_close(loud, CBR_FOREVER);
}

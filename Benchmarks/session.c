// SPDX-License-Identifier: Apache-2.0
//
// A session's task of 1 000 data events, from its beginning to its completion:
// told where they are made, and on a queue that is run after each hundred.
#include "ours.h"

enum { EVENTS = 1000 };

static cbr_session silent, lifecycle, queued;
static cbr_queue queue;

static void did_receive_data(void *context, cbr_task task, const void *bytes,
                             size_t size) {
  (void)task, (void)bytes, (void)size;
  bench_work(context);
}

static void did_complete(void *context, cbr_task task, int error) {
  (void)context, (void)task, (void)error;
}

static void run_bare(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--)
    for (int each = 0; each < EVENTS; each++) bench_function(&bench_context);
}

static void run_task(cbr_session session, cbr_queue on) {
  cbr_task task;
  ours_must(cbr_task_begin(session, NULL, &task), "cbr_task_begin");
  for (int each = 0; each < EVENTS; each++) {
    ours_must(cbr_task_data(task, "0123456789abcdef", 16), "cbr_task_data");
    if (on != CBR_NONE && each % 100 == 99)
      ours_must(cbr_queue_run(on, 0, NULL), "cbr_queue_run");
  }
  ours_must(cbr_task_complete(task, 0), "cbr_task_complete");
  if (on != CBR_NONE) ours_must(cbr_queue_run(on, 0, NULL), "cbr_queue_run");
}

static void run_silent(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) run_task(silent, CBR_NONE);
}

static void run_lifecycle(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) run_task(lifecycle, CBR_NONE);
}

static void run_queued(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) run_task(queued, queue);
}

static cbr_session make_session(cbr_registry registry, cbr_queue on) {
  const cbr_function table[CBR_SESSION_METHODS] = {
      [CBR_DID_RECEIVE_DATA] = (cbr_function)did_receive_data,
      [CBR_DID_COMPLETE] = (cbr_function)did_complete};
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session;
  what.label = "delegate";
  what.interface = cbr_session_interface();
  what.methods = table;
  what.context = &bench_context;
  ours_must(cbr_register(registry, &what, &options.delegate), "cbr_register");
  options.queue = on;
  ours_must(cbr_session_create(registry, &options, &session),
            "cbr_session_create");
  return session;
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  cbr_registry off = ours_open("silent", CBR_LEVEL_OFF);
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  ours_must(cbr_queue_create(off, &options, &queue), "cbr_queue_create");
  silent = make_session(off, CBR_NONE);
  queued = make_session(off, queue);
  lifecycle = make_session(ours_open("lifecycle", CBR_LEVEL_LIFECYCLE),
                           CBR_NONE);
  bench_group("session");
  bench_add("1 000 bare calls", run_bare);
  bench_add("a task of 1 000 data events, history off", run_silent);
  bench_add("... level lifecycle", run_lifecycle);
  bench_add("... on a pumped queue, history off", run_queued);
  bench_measure();
}

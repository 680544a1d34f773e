// SPDX-License-Identifier: Apache-2.0
//
// Calls from code that cannot be changed: by a cookie and a trampoline, and by
// a thunk; live, and too late.
#include "ours.h"

static void *live_cookie, *dead_cookie;
static void (*live_thunk)(void), (*dead_thunk)(void);
static void (*with_argument)(int64_t);
static cbr_registry silent;
static cbr_token token;

static void run_bare(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) bench_function(&bench_context);
}

static void run_guarded(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(token, count);
}

static void run_cookie(uint64_t count, unsigned thread) {
  (void)thread;
  void (*volatile call)(void *) = cbr_trampoline_notice;
  while (count--) call(live_cookie);
}

static void run_dead_cookie(uint64_t count, unsigned thread) {
  (void)thread;
  void (*volatile call)(void *) = cbr_trampoline_notice;
  while (count--) call(dead_cookie);
}

static void run_thunk(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) live_thunk();
}

static void run_argument(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) with_argument(1);
}

static void run_dead_thunk(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) dead_thunk();
}

static cbr_thunk make(cbr_token of, const cbr_type *argument) {
  cbr_signature signature = CBR_SIGNATURE_INIT;
  cbr_thunk thunk;
  signature.arguments = argument;
  signature.count = argument != NULL;
  ours_must(cbr_thunk_create(silent, of, &signature, &thunk),
            "cbr_thunk_create");
  return thunk;
}

static void run_create(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(make(token, NULL));
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  static const cbr_type argument = {CBR_TYPE_INT64, 0, NULL};
  silent = ours_open("silent", CBR_LEVEL_OFF);
  token = ours_register(silent, CBR_NONE, NULL);
  cbr_token dead = ours_register(silent, CBR_NONE, NULL);
  live_cookie = cbr_cookie(token);
  dead_cookie = cbr_cookie(dead);
  live_thunk = cbr_thunk_function(make(token, NULL));
  with_argument = (void (*)(int64_t))cbr_thunk_function(make(token, &argument));
  dead_thunk = cbr_thunk_function(make(dead, NULL));
  ours_end(dead);

  bench_group("thunks");
  bench_add("bare call", run_bare);
  bench_add("enter+call+leave, history off", run_guarded);
  bench_add("a cookie's trampoline", run_cookie);
  bench_add("a trampoline, too late", run_dead_cookie);
  bench_add("a thunk", run_thunk);
  bench_add("a thunk with an argument", run_argument);
  bench_add("a thunk, too late", run_dead_thunk);
  bench_add("making and ending a thunk", run_create);
  bench_measure();
}

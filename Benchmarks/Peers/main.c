// SPDX-License-Identifier: Apache-2.0
//
// Runs one peer beside the bare call and ours. It is linked with the file of
// the peer, which adds its cases.
#include "../ours.h"

static cbr_registry registry;
static cbr_token off, lifecycle;

static void run_off(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(off, count);
}

static void run_lifecycle(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(lifecycle, count);
}

static void run_lifetime(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(ours_register(registry, CBR_NONE, NULL));
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  registry = ours_open("silent", CBR_LEVEL_OFF);
  off = ours_register(registry, CBR_NONE, NULL);
  lifecycle = ours_register(ours_open("lifecycle", CBR_LEVEL_LIFECYCLE),
                            CBR_NONE, NULL);

  bench_group("peer calls");
  bench_add("ours, history off", run_off);
  bench_add("ours, level lifecycle", run_lifecycle);
  peer_calls();
  bench_measure();

  bench_group("peer threads");
  bench_add_threads("ours, one token", run_off);
  peer_threads();
  bench_measure();

  bench_group("peer lifetimes");
  bench_add("ours, register+invalidate", run_lifetime);
  peer_lifetimes();
  bench_measure();
}

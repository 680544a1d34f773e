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

// ----------------------------------------------------------- emissions --

static cbr_signal signals[4], lively;

static cbr_disposition hear(void *context, void *argument) {
  (void)argument;
  bench_work(context);
  return CBR_CONTINUE;
}

static cbr_token connect_to(cbr_signal signal) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token;
  what.label = "handler";
  what.function = (cbr_function)hear;
  what.context = &bench_context;
  ours_must(cbr_connect(signal, &what, NULL, &token), "cbr_connect");
  return token;
}

static cbr_signal make_signal(int handlers) {
  cbr_signal signal;
  ours_must(cbr_signal_create(registry, "fired", CBR_NONE, &signal),
            "cbr_signal_create");
  for (int each = 0; each < handlers; each++) connect_to(signal);
  return signal;
}

static void emit(cbr_signal signal, uint64_t count) {
  while (count--) ours_must(cbr_emit(signal, NULL, NULL), "cbr_emit");
}

static void run_emit_0(uint64_t count, unsigned thread) {
  (void)thread;
  emit(signals[0], count);
}

static void run_emit_1(uint64_t count, unsigned thread) {
  (void)thread;
  emit(signals[1], count);
}

static void run_emit_10(uint64_t count, unsigned thread) {
  (void)thread;
  emit(signals[2], count);
}

static void run_emit_1000(uint64_t count, unsigned thread) {
  (void)thread;
  emit(signals[3], count);
}

static void run_emit_lively(uint64_t count, unsigned thread) {
  (void)thread;
  emit(lively, count);
}

static void churn(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(connect_to(lively));
}

static void measure_emissions(void) {
  const int handlers[] = {0, 1, 10, 1000};
  for (int each = 0; each < 4; each++)
    signals[each] = make_signal(handlers[each]);
  lively = make_signal(10);
  bench_group("peer emissions");
  bench_add("ours, emit to 1", run_emit_1);
  bench_add("ours, emit to 0", run_emit_0);
  bench_add("ours, emit to 10", run_emit_10);
  bench_add("ours, emit to 1 000", run_emit_1000);
  bench_case beside = {.name = "ours, emit to 10, with churn",
                       .run = run_emit_lively, .busy = churn};
  bench_add_case(&beside);
  peer_emissions();
  bench_measure();
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

  if (peer_emissions) measure_emissions();
}

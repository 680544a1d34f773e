// SPDX-License-Identifier: Apache-2.0
//
// A guarded call on one thread and on two: calls [GROUP THREADS-GROUP]
// CBR_FORCE_FALLBACK=1 measures the protocol without membarrier.
#include "ours.h"

static cbr_token off, lifecycle, calls, counted, tokens[2];
static cbr_registry recorded;
static uint64_t made;  // calls that must be recorded

static void run_off(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(off, count);
}

static void run_lifecycle(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(lifecycle, count);
}

static void run_calls(uint64_t count, unsigned thread) {
  (void)thread;
  made += count;
  ours_call(calls, count);
}

static void run_counted(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(counted, count);
}

static void run_bare(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) bench_function(&bench_context);
}

static void run_is_live(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--)
    if (!cbr_is_live(off)) abort();
}

static void run_two_tokens(uint64_t count, unsigned thread) {
  ours_call(tokens[thread], count);
}

static void flush(void) {
  ours_must(cbr_audit_flush(recorded, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL),
            "cbr_audit_flush");
}

// Level calls without a limit: bursts that fit a thread's ring, because no
// database takes forty million rows a second.
static void open_recorded(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "recorded";
  options.level = CBR_LEVEL_CALLS;
  options.calls_per_second = UINT64_MAX;
  ours_must(cbr_registry_open(&options, &recorded), "recorded");
  calls = ours_register(recorded, CBR_NONE, NULL);
}

static void report_recorded(const char *group) {
  flush();
  cbr_statistics statistics = ours_statistics(recorded);
  uint64_t emitted = statistics.events_emitted;
  uint64_t missing = statistics.events_aggregated + statistics.events_lost;
  if (emitted < made) missing += made - emitted;
  bench_value("calls not recorded", (double)missing);
  bench_note(group, "Level calls, all recorded: of %llu calls %llu were "
             "counted, lost or unknown to the history.",
             (unsigned long long)made, (unsigned long long)missing);
  bench_note(group, "Protocol in use: %s.", statistics.asymmetric
             ? "membarrier" : "full fences (fallback)");
}

void bench_program(int count, char **arguments) {
  const char *group = count > 1 ? arguments[1] : "calls";
  const char *threads = count > 2 ? arguments[2] : "threads";
  cbr_registry silent = ours_open("silent", CBR_LEVEL_OFF);
  off = ours_register(silent, CBR_NONE, NULL);
  tokens[0] = ours_register(silent, CBR_NONE, NULL);
  tokens[1] = ours_register(silent, CBR_NONE, NULL);
  lifecycle = ours_register(ours_open("lifecycle", CBR_LEVEL_LIFECYCLE),
                            CBR_NONE, NULL);
  counted = ours_register(ours_open("counted", CBR_LEVEL_CALLS), CBR_NONE,
                          NULL);
  open_recorded();

  bench_group(group);
  bench_add("enter+call+leave, history off", run_off);
  bench_add("enter+call+leave, level lifecycle", run_lifecycle);
  bench_case all = {.name = "enter+call+leave, level calls, all recorded",
                    .run = run_calls, .after = flush,
                    .count = 20000, .bursts = 4};
  bench_add_case(&all);
  bench_add("enter+call+leave, level calls, 100 000 rows/s", run_counted);
  bench_add("cbr_is_live", run_is_live);
  bench_measure();
  report_recorded(group);

  bench_group(threads);
  bench_add_threads("bare call", run_bare);
  bench_add_threads("one token", run_off);
  bench_add_threads("two tokens", run_two_tokens);
  bench_measure();
}

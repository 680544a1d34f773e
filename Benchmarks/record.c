// SPDX-License-Identifier: Apache-2.0
//
// What it costs a thread to record an event, and how that is spread: the
// engine's own step (Record.swift), a timed call, and events of the control
// class. No event may be counted or lost: then it would be cheaper.
#include "feed.h"
#include "spread.h"

// Record.swift, where it could be built.
__attribute__((weak)) void *record_recorder(void);
__attribute__((weak)) void *record_ring(void);
__attribute__((weak)) void record_events(void *recorder, void *ring,
                                         uint64_t count);
__attribute__((weak)) void record_empty(void *ring);

static const char group[] = "record";
static void *recorder, *rings[2];
static cbr_registry registry;
static cbr_token timed[2], counted[2];

static void run_raw(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) bench_function(&bench_context);
}

static void run_record(uint64_t count, unsigned thread) {
  record_events(recorder, rings[thread], count);
}

static void run_timed(uint64_t count, unsigned thread) {
  ours_call(timed[thread], count);
}

static void run_counted(uint64_t count, unsigned thread) {
  ours_call(counted[thread], count);
}

static void run_note(uint64_t count, unsigned thread) {
  while (count--)
    ours_must(cbr_audit_note(registry, timed[thread], "a short remark"),
              "cbr_audit_note");
}

static void run_lifetime(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(ours_register(registry, CBR_NONE, NULL));
}

static void empty(void) {
  record_empty(rings[0]);
  record_empty(rings[1]);
}

static void flush(void) {
  ours_must(cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL),
            "cbr_audit_flush");
}

static cbr_token token_of_level(uint32_t level) {
  cbr_token token = ours_register(registry, CBR_NONE, NULL);
  ours_must(cbr_audit_level(token, level), "cbr_audit_level");
  return token;
}

static void open_registry(const feed_folder *folder) {
  char path[feed_path_bytes];
  feed_name(folder, "history", path);
  cbr_registry_options options = feed_options(path);
  ours_must(cbr_registry_open(&options, &registry), "recorded");
  for (unsigned i = 0; i < 2; i++) {
    timed[i] = token_of_level(CBR_LEVEL_CALLS);
    counted[i] = token_of_level(CBR_LEVEL_LIFECYCLE);
  }
}

static void measure(const char *name, bench_run run, void (*after)(void)) {
  spread_case what = {
      .group = group, .name = name, .run = run, .after = after};
  spread_measure(&what);
}

static void measure_engine(void) {
  if (!record_recorder) {
    bench_note(group, "The engine's own step skipped: Record.swift was not "
               "built.");
    return;
  }
  recorder = record_recorder();
  for (unsigned i = 0; i < 2; i++) rings[i] = record_ring();
  if (!recorder || !rings[0] || !rings[1]) abort();
  measure("record with time stamp", run_record, empty);
  spread_case single = {.group = group,
                        .name = "record with time stamp, one by one",
                        .run = run_record, .after = empty, .batch = 1};
  spread_measure(&single);
}

// Not many: each leaves some hundred bytes in the history, which is limited.
static void measure_lifetimes(void) {
  spread_case what = {.group = group,
                      .name = "register+invalidate, recorded",
                      .run = run_lifetime, .after = flush,
                      .most_bursts = 64};
  spread_measure(&what);
}

static void report(void) {
  cbr_statistics statistics = ours_statistics(registry);
  bench_note(group, "Of %llu events through the library %llu were only "
             "counted, and %llu lost.",
             (unsigned long long)statistics.events_emitted,
             (unsigned long long)statistics.events_aggregated,
             (unsigned long long)statistics.events_lost);
  bench_value("events not recorded", (double)(statistics.events_aggregated +
                                              statistics.events_lost));
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  feed_folder folder = feed_make_folder(NULL);
  open_registry(&folder);
  measure_engine();
  measure("raw call", run_raw, NULL);
  measure("call, level lifecycle", run_counted, flush);
  measure("call, level calls, recorded", run_timed, flush);
  measure("cbr_audit_note", run_note, flush);
  measure_lifetimes();
  report();
  ours_must(cbr_registry_close(registry, CBR_FOREVER), "close");
  feed_remove_folder(&folder);
}

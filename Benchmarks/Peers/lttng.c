// SPDX-License-Identifier: Apache-2.0
//
// LTTng-UST: an event with a token and a number. run.sh makes the session
// that records it.
#include <time.h>

#include "events.h"
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_event.h"

static void run_event(uint64_t count, unsigned thread) {
  while (count--)
    lttng_ust_tracepoint(cbr_bench, event, thread, (uint32_t)count);
}

// The consumer cannot be asked; a burst takes 160 KiB, and it reads at once.
static void wait(void) {
  const struct timespec pause = {.tv_nsec = 2000000};
  nanosleep(&pause, NULL);
}

void peer_events(const char *folder) {
  (void)folder;
  if (!lttng_ust_tracepoint_enabled(cbr_bench, event)) {
    bench_note("peer events", "LTTng-UST skipped: no session records its "
               "events.");
    return;
  }
  spread_case what = {.group = "peer events",
                      .name = "LTTng-UST, two numbers",
                      .run = run_event, .after = wait};
  spread_measure(&what);
}

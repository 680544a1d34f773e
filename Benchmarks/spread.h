// SPDX-License-Identifier: Apache-2.0
//
// How the cost of one event is spread: its mean and its percentiles. A sample
// is a batch of 64 events that was timed with the processor's counter, less
// the batch that does nothing, divided by 64: reading the counter takes about
// as long as what is to be measured. What holds one event up for long shows
// in its batch by a 64th; in batches of one it shows as a whole, and the
// counter's own unsteadiness, too.
//
// Batches come in bursts of 4096 events, which fit a thread's ring. After
// each, untimed, the writer catches up. The first bursts, which touch the
// ring's memory for the first time, do not count.
#ifndef BENCH_SPREAD_H
#define BENCH_SPREAD_H

#include "harness.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spread_case {
  const char *group;
  const char *name;
  bench_run run;
  void (*after)(void);  // after each burst, untimed; may be NULL
  unsigned batch;       // events in a batch; 0: 64
  unsigned most_bursts;  // 0: as many as there is time for
} spread_case;

// Measures on one thread and on two, and prints a line for each.
void spread_measure(const spread_case *what);

#ifdef __cplusplus
}
#endif

#endif

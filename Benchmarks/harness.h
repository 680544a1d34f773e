// SPDX-License-Identifier: Apache-2.0
//
// What every benchmark is written against, in C, C++, Rust and Swift.
//
// Cases are collected in a group and measured together: every round times
// each case once, starting with another one each time, so that a disturbance
// or a change of clock speed meets all of them alike. Printed are the minimum
// and the median over the rounds, and the median of the ratios and
// differences to another case of the same round. Threads are pinned while the
// clock runs, and free otherwise, so that threads that a library starts
// inherit no pin.
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Does something count times. thread is 0, or 1 on the second thread.
typedef void (*bench_run)(uint64_t count, unsigned thread);

typedef struct bench_case {
  const char *name;
  bench_run run;
  bench_run busy;  // what the second thread does meanwhile; NULL: it sleeps
  void (*before)(uint64_t count);  // before each burst, untimed; may be NULL
  void (*after)(void);             // after each burst, untimed; may be NULL
  uint64_t count;    // operations in a burst; 0: what fills a round
  unsigned bursts;   // in a round; 0: 1
  unsigned threads;  // 0: 1; 2: both do count operations at once
  const char *base;  // the case to compare with; NULL: the second one
} bench_case;

// Begins a group. Its first case is the bare call of bench_work.
void bench_group(const char *name);
void bench_add(const char *name, bench_run run);
void bench_add_case(const bench_case *what);

// Adds a case on one thread, and the same on two, compared with one.
void bench_add_threads(const char *name, bench_run run);

// Measures the cases of the group, prints a line for each, and forgets them.
void bench_measure(void);

// Prints a number by name, and a remark on a group.
void bench_value(const char *name, double value);
void bench_note(const char *group, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The callback that everybody calls: it reads its context, and counts on its
// own thread, so that two threads share nothing but what calls it.
void bench_work(void *context);
extern void (*volatile bench_function)(void *);
extern uint64_t bench_context;

// What a program runs.
void bench_program(int count, char **arguments);

// What a peer adds beside ours: guarded calls, the same on two threads, and
// the making and ending of a connection.
void peer_calls(void);
void peer_threads(void);
void peer_lifetimes(void);

// Emissions to 0, 1, 10 and 1 000 handlers, and to 10 while another thread
// connects and disconnects; only peers that have signals define it.
void peer_emissions(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif

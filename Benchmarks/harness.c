// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_cases = 32, most_rounds = 1001 };

static struct {
  const char *name;
  bench_case cases[most_cases];
  unsigned count;
  double nanoseconds[most_cases][most_rounds];  // for one operation
} group;

static unsigned rounds = 15;
static double round_nanoseconds = 20e6;
static cpu_set_t all_cores;
static int cores[2] = {-1, -1};

// ---------------------------------------------------------------- The call

uint64_t bench_context = 1;
static _Thread_local uint64_t tally;

__attribute__((noinline)) void bench_work(void *context) {
  tally += *(const uint64_t *)context;
}

void (*volatile bench_function)(void *) = bench_work;

static void run_raw(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) bench_function(&bench_context);
}

// ---------------------------------------------------------- Time and cores

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pin(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void unpin(void) { sched_setaffinity(0, sizeof all_cores, &all_cores); }

// -------------------------------------------------------- The second thread

// It sleeps between jobs. Both threads meet before a job; stop ends a job
// that has no count.
static struct {
  sem_t wanted;
  bench_run run;
  uint64_t count;  // 0: until stop
  atomic_bool ready, start, stop, done;
} second;

static void *run_second(void *unused) {
  (void)unused;
  pin(cores[1] >= 0 ? cores[1] : cores[0]);
  for (;;) {
    while (sem_wait(&second.wanted)) {}
    second.ready = true;
    while (!second.start) {}
    if (second.count) second.run(second.count, 1);
    else while (!second.stop) second.run(64, 1);
    second.done = true;
  }
  return NULL;
}

static void begin_second(bench_run run, uint64_t count) {
  second.run = run;
  second.count = count;
  second.ready = second.start = second.stop = second.done = false;
  sem_post(&second.wanted);
  while (!second.ready) sched_yield();
}

static void end_second(void) {
  second.stop = true;
  while (!second.done) {}
}

// --------------------------------------------------------------- Measuring

// Returns the time of one burst.
static double time_burst(const bench_case *what, uint64_t count) {
  if (what->before) what->before(count);
  bool both = what->threads == 2;
  if (both) begin_second(what->run, count);
  if (what->busy) begin_second(what->busy, 0);
  pin(cores[0]);
  second.start = true;
  double begin = now();
  what->run(count, 0);
  if (both) end_second();
  double end = now();
  if (what->busy) end_second();
  unpin();
  if (what->after) what->after();
  return end - begin;
}

// Finds how many operations fill a round, which warms up as well.
static void calibrate(bench_case *what) {
  if (what->count) {
    time_burst(what, what->count);
    return;
  }
  double time;
  for (what->count = 16;; what->count *= 2) {
    time = time_burst(what, what->count);
    if (time >= round_nanoseconds / 8) break;
  }
  double fill = (double)what->count * round_nanoseconds / time;
  what->count = (uint64_t)(fill / (what->bursts ? what->bursts : 1)) + 1;
}

static double time_operation(const bench_case *what) {
  unsigned bursts = what->bursts ? what->bursts : 1;
  double time = 0;
  for (unsigned i = 0; i < bursts; i++) time += time_burst(what, what->count);
  return time / bursts / (double)what->count;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median(double *values) {
  qsort(values, rounds, sizeof *values, compare);
  return rounds % 2 ? values[rounds / 2]
                    : (values[rounds / 2 - 1] + values[rounds / 2]) / 2;
}

static unsigned base_of(const bench_case *what) {
  for (unsigned i = 0; what->base && i < group.count; i++)
    if (!strcmp(group.cases[i].name, what->base)) return i;
  return group.count > 1;
}

static void print_case(unsigned index) {
  const bench_case *what = &group.cases[index];
  unsigned base = base_of(what);
  const double *own = group.nanoseconds[index];
  double sorted[most_rounds], over[most_rounds];
  double to_raw[most_rounds], to_base[most_rounds];
  for (unsigned i = 0; i < rounds; i++) {
    double raw = group.nanoseconds[0][i];
    sorted[i] = own[i];
    over[i] = own[i] - raw;
    to_raw[i] = own[i] / raw;
    to_base[i] = own[i] / group.nanoseconds[base][i];
  }
  double middle = median(sorted);
  printf("case\t%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\n", group.name,
         what->name, group.cases[base].name, sorted[0], middle, median(over),
         median(to_raw), median(to_base));
}

void bench_group(const char *name) {
  group.name = name;
  group.count = 0;
  bench_add("raw call", run_raw);
}

void bench_add_case(const bench_case *what) {
  if ((what->threads == 2 || what->busy) && cores[1] < 0) {
    static const char *told;
    if (told != group.name)
      bench_note(group.name, "Two threads skipped: there is one core only.");
    told = group.name;
    return;
  }
  if (group.count == most_cases) abort();
  group.cases[group.count++] = *what;
}

void bench_add(const char *name, bench_run run) {
  bench_case what = {.name = name, .run = run};
  bench_add_case(&what);
}

void bench_add_threads(const char *name, bench_run run) {
  static char names[most_cases][80];
  static unsigned used;
  char *two = names[used++ % most_cases];
  snprintf(two, sizeof names[0], "%s, two threads", name);
  bench_add(name, run);
  bench_case what = {.name = two, .run = run, .threads = 2, .base = name};
  bench_add_case(&what);
}

void bench_measure(void) {
  for (unsigned i = 0; i < group.count; i++) calibrate(&group.cases[i]);
  for (unsigned round = 0; round < rounds; round++) {
    for (unsigned i = 0; i < group.count; i++) {
      unsigned which = (i + round) % group.count;
      group.nanoseconds[which][round] = time_operation(&group.cases[which]);
    }
  }
  for (unsigned i = 0; i < group.count; i++) print_case(i);
  fflush(stdout);
  group.count = 0;
}

void bench_value(const char *name, double value) {
  printf("value\t%s\t%.15g\n", name, value);
}

void bench_note(const char *group_name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("note\t%s\t", group_name);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

// ------------------------------------------------------------- The program

int main(int count, char **arguments) {
  const char *text = getenv("BENCH_ROUNDS");
  if (text) rounds = (unsigned)atoi(text);
  if (rounds < 1 || rounds > most_rounds) rounds = 15;
  text = getenv("BENCH_ROUND_MS");
  if (text && atof(text) > 0) round_nanoseconds = atof(text) * 1e6;

  sched_getaffinity(0, sizeof all_cores, &all_cores);
  for (int core = 0, found = 0; core < CPU_SETSIZE && found < 2; core++)
    if (CPU_ISSET(core, &all_cores)) cores[found++] = core;

  // Also where it has nothing to do: C++ and GLib take short cuts in a
  // process that has only one thread.
  pthread_t thread;
  sem_init(&second.wanted, 0, 0);
  if (pthread_create(&thread, NULL, run_second, NULL)) return 1;

  bench_program(count, arguments);
  fflush(stdout);
  _Exit(0);  // without giving back ten million tokens one by one
}

// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "spread.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum {
  usual_batch = 64,
  burst_events = 4096,
  warming = 16,            // bursts that fill a ring of 2 MiB once
  most_samples = 262144,   // of a thread
  most_threads = 2
};

static float samples[most_threads * most_samples];  // nanoseconds

static struct {
  const spread_case *what;
  unsigned threads, bursts;
  unsigned batch, batches;  // events in a batch, batches in a burst
  pthread_barrier_t barrier;
  cpu_set_t cores;
  double nothing;  // ticks of a batch that does nothing
} job;

// ------------------------------------------------------------------- Ticks

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#if defined(__x86_64__)
static uint64_t ticks(void) { return __rdtsc(); }
#else
static uint64_t ticks(void) { return (uint64_t)now(); }
#endif

static double nanoseconds_per_tick(void) {
  static double rate;
  if (rate > 0) return rate;
  double begin = now();
  uint64_t first = ticks();
  while (now() - begin < 50e6) {}
  rate = (now() - begin) / (double)(ticks() - first);
  return rate;
}

// --------------------------------------------------------------- Measuring

static int compare(const void *left, const void *right) {
  float a = *(const float *)left, b = *(const float *)right;
  return (a > b) - (a < b);
}

static float time_batch(bench_run run, unsigned thread) {
  uint64_t begin = ticks();
  run(job.batch, thread);
  return (float)(ticks() - begin);
}

static void do_nothing(uint64_t count, unsigned thread) {
  (void)count, (void)thread;
}

// Reading the counter twice, and the call of a function.
static double time_nothing(void) {
  static float found[4096];
  bench_run volatile run = do_nothing;
  for (unsigned i = 0; i < 4096; i++) found[i] = time_batch(run, 0);
  qsort(found, 4096, sizeof *found, compare);
  return found[2048];
}

static void pin(unsigned thread) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (unsigned core = 0, found = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &job.cores) && found++ == thread) CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void *run_thread(void *argument) {
  unsigned thread = (unsigned)(uintptr_t)argument;
  const spread_case *what = job.what;
  float *own = samples + (size_t)thread * job.bursts * job.batches;
  // A thread's first event makes its ring, and perhaps the library's writer,
  // which must not inherit the pin.
  what->run(1, thread);
  pin(thread);
  for (unsigned burst = 0; burst < warming + job.bursts; burst++) {
    unsigned from = burst < warming ? 0 : (burst - warming) * job.batches;
    pthread_barrier_wait(&job.barrier);
    for (unsigned i = 0; i < job.batches; i++)
      own[from + i] = time_batch(what->run, thread);
    pthread_barrier_wait(&job.barrier);
    if (thread == 0 && what->after) what->after();
  }
  return NULL;
}

static void run_threads(void) {
  pthread_t threads[most_threads];
  pthread_barrier_init(&job.barrier, NULL, job.threads);
  for (unsigned i = 0; i < job.threads; i++)
    if (pthread_create(&threads[i], NULL, run_thread, (void *)(uintptr_t)i))
      abort();
  for (unsigned i = 0; i < job.threads; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&job.barrier);
}

static void print(unsigned threads) {
  size_t count = (size_t)threads * job.bursts * job.batches;
  double scale = nanoseconds_per_tick() / job.batch, sum = 0;
  for (size_t i = 0; i < count; i++) {
    double time = ((double)samples[i] - job.nothing) * scale;
    samples[i] = (float)(time > 0 ? time : 0);
    sum += samples[i];
  }
  qsort(samples, count, sizeof *samples, compare);
  printf("spread\t%s\t%s%s\t%.4f\t%.4f\t%.4f\t%.4f\n", job.what->group,
         job.what->name, threads == 2 ? ", two threads" : "",
         sum / (double)count, (double)samples[count / 2],
         (double)samples[count * 99 / 100],
         (double)samples[count * 999 / 1000]);
  fflush(stdout);
}

// A burst for each millisecond that another benchmark measures a case.
static unsigned burst_count(const spread_case *what) {
  const char *rounds = getenv("BENCH_ROUNDS");
  const char *time = getenv("BENCH_ROUND_MS");
  double count = (rounds ? atof(rounds) : 15) * (time ? atof(time) : 20);
  unsigned most = most_samples / job.batches;
  if (what->most_bursts && what->most_bursts < most) most = what->most_bursts;
  if (count < 16) return 16;
  return count > most ? most : (unsigned)count;
}

void spread_measure(const spread_case *what) {
  sched_getaffinity(0, sizeof job.cores, &job.cores);
  job.what = what;
  job.batch = what->batch ? what->batch : usual_batch;
  job.batches = burst_events / job.batch;
  job.bursts = burst_count(what);
  job.nothing = time_nothing();
  unsigned cores = (unsigned)CPU_COUNT(&job.cores);
  for (unsigned i = 1; i <= most_threads && i <= cores; i++) {
    job.threads = i;
    run_threads();
    print(i);
  }
}

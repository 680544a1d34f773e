// SPDX-License-Identifier: Apache-2.0
//
// Rows a second that the library's writer commits, beside bare insertions of
// such rows (bare.c), in turn: on the disk and in memory. The writer has a
// core to itself; the thread that calls has the other. The clock starts and
// stops while the writer is busy. A row counts when it is committed; it may
// still be in the log only, on both sides.
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>

#include "bare.h"
#include "feed.h"
#include "writer.h"

enum { most_rounds = 9 };

static const char group[] = "ingest";
static int cores[2] = {-1, -1};
static uint64_t not_written;
static unsigned rounds;

typedef struct cost {
  double rate;             // rows a second
  double cpu_nanoseconds;  // of the thread that writes, for a row
} cost;

typedef struct series {
  cost costs[most_rounds];
} series;

static void find_cores(void) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  for (int core = 0, found = 0; core < CPU_SETSIZE && found < 2; core++)
    if (CPU_ISSET(core, &all)) cores[found++] = core;
}

static void pin(pid_t thread, int core) {
  if (cores[1] < 0) return;  // they share the only core
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(thread, sizeof one, &one);
}

// From one moment at which the writer is busy to another.
static cost time_writer(const feed *to, pid_t writer, uint64_t rows) {
  feed_calls(to, 100000);
  double began = feed_seconds(), cpu = writer_cpu_seconds(writer);
  uint64_t written = ours_statistics(to->registry).events_written;
  feed_calls(to, rows);
  written = ours_statistics(to->registry).events_written - written;
  return (cost){(double)written / (feed_seconds() - began),
                (writer_cpu_seconds(writer) - cpu) * 1e9 / (double)written};
}

static cost ingest(const char *path, uint64_t rows) {
  cbr_registry_options options = feed_options(path);
  feed to = feed_open(&options);
  feed_flush(&to);  // now there is a writer
  pid_t writer = writer_find();
  pin(writer, cores[1]);
  pin(0, cores[0]);
  cost found = time_writer(&to, writer, rows);
  feed_flush(&to);
  cbr_statistics statistics = ours_statistics(to.registry);
  not_written += statistics.events_aggregated + statistics.events_lost;
  feed_close(&to);
  return found;
}

static cost insert_bare(const char *path, uint64_t rows) {
  pin(0, cores[1]);
  bare_cost bare = bare_insert(path, rows);
  return (cost){(double)rows / bare.seconds,
                bare.cpu_seconds * 1e9 / (double)rows};
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median(double *values) {
  qsort(values, rounds, sizeof *values, compare);
  return values[rounds / 2];
}

static void print(const char *name, const char *where, const series *what,
                  const series *base) {
  double rate[most_rounds], share[most_rounds], cpu[most_rounds];
  double cpu_share[most_rounds];
  for (unsigned i = 0; i < rounds; i++) {
    rate[i] = what->costs[i].rate;
    cpu[i] = what->costs[i].cpu_nanoseconds;
    share[i] = rate[i] / base->costs[i].rate;
    cpu_share[i] = base->costs[i].cpu_nanoseconds / cpu[i];
  }
  printf("rate\t%s\t%s, %s\t%.15g\t%.6g\t%.6g\t%.6g\n", group, name, where,
         median(rate), median(cpu), median(share), median(cpu_share));
  fflush(stdout);
}

static void measure(const char *where, const char *parent) {
  series bare, ours;
  // Whole transactions of the bare insertion.
  uint64_t rows = feed_amount(64, 256) * 8192;
  for (unsigned i = 0; i < rounds; i++) {
    char path[feed_path_bytes];
    feed_folder folder = feed_make_folder(parent);
    feed_name(&folder, "bare", path);
    bare.costs[i] = insert_bare(path, rows);
    feed_name(&folder, "ours", path);
    ours.costs[i] = ingest(path, rows);
    feed_remove_folder(&folder);
  }
  print("bare insertion", where, &bare, &bare);
  print("the library's writer", where, &ours, &bare);
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  find_cores();
  rounds = (unsigned)feed_amount(3, 7);
  measure("disk", NULL);
  if (access("/dev/shm", W_OK) == 0) measure("/dev/shm", "/dev/shm");
  else bench_note(group, "/dev/shm skipped: it is not there.");
  bench_note(group, "Of all calls %llu were only counted, or lost.",
             (unsigned long long)not_written);
  bench_value("ingest not written", (double)not_written);
}

// SPDX-License-Identifier: Apache-2.0
//
// How long a history is locked while it forgets its oldest calls (J47: never
// for 50 ms). A history is filled and then opened again with a limit of ten
// thousand calls, so that the writer drops one table of calls after the other.
// Meanwhile a second connection tries to lock the database, over and over: a
// step took at most from the last time that it could before the step to the
// first time that it could afterwards, when the table `purge` says how many
// rows are gone. The processor time is what the writer has used in between.
#define _GNU_SOURCE
#include <sqlite3.h>
#include <time.h>

#include "feed.h"
#include "writer.h"

enum { most_steps = 16, kept_calls = 10000 };

static const char group[] = "retention";

static struct {
  sqlite3 *database;
  sqlite3_stmt *purged;
  pid_t writer;
  double free_at, free_cpu;  // when the lock was last had
  uint64_t steps, rows;
  double longest;  // that it could not be had, in seconds
  double of_million[most_steps], cpu_of_million[most_steps];
} watch;

static void must(int code) {
  if (code == SQLITE_OK) return;
  fprintf(stderr, "retention: %s\n", sqlite3_errmsg(watch.database));
  exit(1);
}

static void begin_watch(const char *path) {
  must(sqlite3_open(path, &watch.database));
  must(sqlite3_exec(watch.database, "PRAGMA wal_autocheckpoint = 0", 0, 0,
                    0));
  must(sqlite3_prepare_v2(watch.database, "SELECT count(*), "
                          "coalesce(sum(rows), 0) FROM purge", -1,
                          &watch.purged, NULL));
}

static void note_free(void) {
  watch.free_at = feed_seconds();
  watch.free_cpu = writer_cpu_seconds(watch.writer);
}

static void end_watch(void) {
  sqlite3_finalize(watch.purged);
  sqlite3_close(watch.database);
}

// Called with the lock. A step that came together with another one is no step
// of its own here.
static void look(void) {
  double time = feed_seconds() - watch.free_at;
  double cpu = writer_cpu_seconds(watch.writer) - watch.free_cpu;
  if (sqlite3_step(watch.purged) != SQLITE_ROW) abort();
  uint64_t steps = (uint64_t)sqlite3_column_int64(watch.purged, 0);
  uint64_t rows = (uint64_t)sqlite3_column_int64(watch.purged, 1);
  sqlite3_reset(watch.purged);
  if (time > watch.longest) watch.longest = time;
  if (steps > watch.steps && watch.steps < most_steps) {
    double millions = (double)(rows - watch.rows) / 1e6;
    watch.of_million[watch.steps] = time / millions;
    watch.cpu_of_million[watch.steps] = cpu / millions;
  }
  watch.steps = steps;
  watch.rows = rows;
}

static void try_lock(void) {
  const struct timespec pause = {.tv_nsec = 50000};
  int code = sqlite3_exec(watch.database, "BEGIN IMMEDIATE", 0, 0, 0);
  if (code == SQLITE_OK) {
    look();
    note_free();
    must(sqlite3_exec(watch.database, "ROLLBACK", 0, 0, 0));
  } else if (code != SQLITE_BUSY) {
    must(code);
  }
  nanosleep(&pause, NULL);
}

static void fill(const char *path, uint64_t rows) {
  cbr_registry_options options = feed_options(path);
  feed to = feed_open(&options);
  feed_calls(&to, rows);
  feed_close(&to);
}

// A step follows a batch, so there must be some.
static void forget(const char *path, uint64_t rows) {
  cbr_registry_options options = feed_options(path);
  options.max_calls = kept_calls;
  begin_watch(path);
  feed to = feed_open(&options);
  watch.writer = writer_find();
  note_free();
  double give_up = feed_seconds() + 60;
  while (watch.rows < rows && feed_seconds() < give_up) {
    feed_calls(&to, 1);
    for (int i = 0; i < 20; i++) try_lock();
  }
  feed_close(&to);
  end_watch();
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double median(const double *of_steps) {
  double found[most_steps];
  size_t count = 0;
  for (size_t i = 0; i < most_steps; i++)
    if (of_steps[i] > 0) found[count++] = of_steps[i];
  qsort(found, count, sizeof *found, compare);
  return count ? found[count / 2] : 0;
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  uint64_t rows = feed_amount(1000000, 5000000);
  char path[feed_path_bytes];
  feed_folder folder = feed_make_folder(NULL);
  feed_name(&folder, "history", path);
  fill(path, rows);
  forget(path, rows);
  feed_remove_folder(&folder);
  if (watch.steps > 0) {
    bench_value("retention of a million", median(watch.of_million) * 1e9);
    bench_value("retention cpu of a million",
                median(watch.cpu_of_million) * 1e9);
    bench_value("retention longest", watch.longest * 1e9);
  }
  bench_note(group, "%llu steps deleted %llu rows.",
             (unsigned long long)watch.steps,
             (unsigned long long)watch.rows);
}

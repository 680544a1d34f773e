// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "feed.h"

#include <ftw.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// A ring of 2 MiB has room for 65 536.
enum { most_waiting = 49152, at_once = 4096 };

// ----------------------------------------------------------------- Folders

feed_folder feed_make_folder(const char *parent) {
  feed_folder folder;
  if (!parent) parent = getenv("BENCH_FOLDER");
  snprintf(folder.path, sizeof folder.path, "%s/cbr-bench.XXXXXX",
           parent ? parent : ".");
  if (mkdtemp(folder.path)) return folder;
  perror(folder.path);
  exit(1);
}

static int remove_entry(const char *path, const struct stat *status, int kind,
                        struct FTW *where) {
  (void)status, (void)kind, (void)where;
  return remove(path);
}

void feed_remove_folder(const feed_folder *folder) {
  nftw(folder->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void feed_name(const feed_folder *folder, const char *name, char *path) {
  int length = snprintf(path, feed_path_bytes, "%s/%s", folder->path, name);
  if (length >= feed_path_bytes) abort();
}

// --------------------------------------------------------------- Histories

cbr_registry_options feed_options(const char *path) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "benchmark";
  options.history_path = path;
  options.calls_per_second = UINT64_MAX;
  return options;
}

feed feed_open(const cbr_registry_options *options) {
  feed to;
  ours_must(cbr_registry_open(options, &to.registry), options->history_path);
  to.token = ours_register(to.registry, CBR_NONE, NULL);
  return to;
}

static uint64_t waiting(const feed *to) {
  cbr_statistics statistics = ours_statistics(to->registry);
  return statistics.events_emitted - statistics.events_written -
         statistics.events_aggregated - statistics.events_lost;
}

void feed_calls(const feed *to, uint64_t count) {
  const struct timespec pause = {.tv_nsec = 100000};
  while (count) {
    if (waiting(to) > most_waiting) {
      nanosleep(&pause, NULL);
      continue;
    }
    uint64_t calls = count < at_once ? count : at_once;
    ours_call(to->token, calls);
    count -= calls;
  }
}

void feed_flush(const feed *to) {
  ours_must(cbr_audit_flush(to->registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                            NULL), "cbr_audit_flush");
}

void feed_close(const feed *to) {
  ours_must(cbr_registry_close(to->registry, CBR_FOREVER), "close");
}

// -------------------------------------------------------------- Time, size

double feed_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

uint64_t feed_amount(uint64_t quick, uint64_t normal) {
  const char *mode = getenv("BENCH_MODE");
  return mode && !strcmp(mode, "quick") ? quick : normal;
}

// SPDX-License-Identifier: Apache-2.0
//
// Taking over what a process has left that was killed with a full ring of
// 64 MiB, none of which was in the database: until the registry is open,
// which writes all of it first, and until a query has answered what was in
// flight.
//
// The process is this program again. While it records, the database is locked
// here, so that its writer cannot write.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed.h"

extern char **environ;

enum {
  ring_bytes = 64 << 20,
  records = ring_bytes / 32,
  calls = records - 1024  // there is more in a ring than calls
};

static const char group[] = "recovery";
static uint64_t missing;

static void must(sqlite3 *database, int code) {
  if (code == SQLITE_OK) return;
  fprintf(stderr, "recovery: %s\n", sqlite3_errmsg(database));
  exit(1);
}

// ------------------------------------------------- The process that dies --

// It is told on its standard input to begin, and tells on its standard output
// how far it is.
static void tell(void) {
  if (write(STDOUT_FILENO, "!", 1) != 1) exit(1);
}

static void live(const char *path) {
  char byte;
  cbr_registry_options options = feed_options(path);
  options.ring_bytes = ring_bytes;
  feed to = feed_open(&options);
  feed_flush(&to);
  tell();
  if (read(STDIN_FILENO, &byte, 1) != 1) exit(1);
  ours_call(to.token, calls);
  cbr_call call;
  ours_must(cbr_enter(to.token, &call), "cbr_enter");
  tell();
  pause();
}

// ------------------------------------------------ The one that takes over --

typedef struct child {
  pid_t process;
  int to, from;
} child;

static child start(const char *program, const char *path) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC)) abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  char *words[] = {(char *)program, (char *)"live", (char *)path, NULL};
  child started = {.to = to[1], .from = from[0]};
  if (posix_spawn(&started.process, program, &actions, NULL, words, environ))
    abort();
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  return started;
}

static void await(const child *of) {
  char byte;
  if (read(of->from, &byte, 1) == 1) return;
  fprintf(stderr, "the process that records has ended\n");
  exit(1);
}

static void kill_it(const child *of) {
  kill(of->process, SIGKILL);
  waitpid(of->process, NULL, 0);
  close(of->to);
  close(of->from);
}

static void leave_full_ring(const char *program, const char *path) {
  child recording = start(program, path);
  await(&recording);
  sqlite3 *database;
  must(NULL, sqlite3_open(path, &database));
  sqlite3_busy_timeout(database, 10000);
  must(database, sqlite3_exec(database, "BEGIN IMMEDIATE", 0, 0, 0));
  if (write(recording.to, "!", 1) != 1) abort();
  await(&recording);
  kill_it(&recording);
  must(database, sqlite3_exec(database, "ROLLBACK", 0, 0, 0));
  sqlite3_close(database);
}

// The first column of the only row.
static uint64_t ask(sqlite3 *database, const char *question) {
  sqlite3_stmt *statement;
  must(database, sqlite3_prepare_v2(database, question, -1, &statement, 0));
  if (sqlite3_step(statement) != SQLITE_ROW) abort();
  uint64_t answer = (uint64_t)sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return answer;
}

typedef struct times {
  double opened, answered, cpu;  // seconds since the beginning
} times;

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static times take_over(const char *path) {
  cbr_registry_options options = feed_options(path);
  cbr_registry registry;
  sqlite3 *database;
  times found;
  double began = feed_seconds(), cpu = cpu_seconds();
  ours_must(cbr_registry_open(&options, &registry), path);
  found.opened = feed_seconds() - began;
  must(NULL, sqlite3_open(path, &database));
  uint64_t inside = ask(database, "SELECT count(*) FROM in_flight_at_crash");
  found.answered = feed_seconds() - began;
  found.cpu = cpu_seconds() - cpu;
  uint64_t rows = ask(database, "SELECT count(*) FROM call");
  missing += calls - (rows < calls ? rows : calls) + (inside != 1);
  sqlite3_close(database);
  ours_must(cbr_registry_close(registry, CBR_FOREVER), "close");
  return found;
}

static int compare(const void *left, const void *right) {
  double a = ((const times *)left)->answered;
  double b = ((const times *)right)->answered;
  return (a > b) - (a < b);
}

void bench_program(int count, char **arguments) {
  if (count > 2 && !strcmp(arguments[1], "live")) return live(arguments[2]);
  unsigned rounds = (unsigned)feed_amount(1, 5);
  times found[5];
  for (unsigned i = 0; i < rounds; i++) {
    char path[feed_path_bytes];
    feed_folder folder = feed_make_folder(NULL);
    feed_name(&folder, "history", path);
    leave_full_ring("/proc/self/exe", path);
    found[i] = take_over(path);
    feed_remove_folder(&folder);
  }
  qsort(found, rounds, sizeof *found, compare);
  times middle = found[rounds / 2];
  bench_value("recovery records", calls);
  bench_value("recovery rate", calls / middle.opened);
  bench_value("recovery cpu", middle.cpu * 1e9 / calls);
  bench_value("recovery opened", middle.opened * 1e9);
  bench_value("recovery answered", middle.answered * 1e9);
  bench_value("recovery missing", (double)missing);
  bench_note(group, "Median of %u. %llu of the calls are missing in the "
             "history.", rounds, (unsigned long long)missing);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A history file of a test: where it is, and what it must say (A1, A2, A5).
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "gates.h"

#include <dirent.h>
#include <sqlite3.h>

typedef struct history {
  char directory[64];
  char path[80];
} history;

static inline void make_history_in(const char *place, history *it) {
  snprintf(it->directory, sizeof it->directory, "%s/cbr-test-XXXXXX", place);
  CHECK(mkdtemp(it->directory) != NULL);
  snprintf(it->path, sizeof it->path, "%.63s/history", it->directory);
}

/* A new directory for one history file. */
static inline void make_history(history *it) { make_history_in(P_tmpdir, it); }

/* The same in memory, for tests that make a thousand of them. */
static inline void make_fast_history(history *it) {
  const char *place = "/dev/shm";
  make_history_in(access(place, W_OK) == 0 ? place : P_tmpdir, it);
}

/* Opens a registry that writes each call to a history file. */
static inline cbr_registry open_to_history(const history *it,
                                           const char *label,
                                           uint32_t level) {
  cbr_registry registry = CBR_NONE;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = label;
  options.history_path = it->path;
  options.level = level;
  options.calls_per_second = UINT64_MAX;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  return registry;
}

/* Removes what a process that was not closed has left of its rings. */
static inline void remove_rings_(const history *it) {
  char directory[96], path[384];
  snprintf(directory, sizeof directory, "%s.rings", it->path);
  DIR *listing = opendir(directory);
  if (!listing) return;
  for (struct dirent *each; (each = readdir(listing));) {
    snprintf(path, sizeof path, "%s/%s", directory, each->d_name);
    unlink(path);
  }
  closedir(listing);
  CHECK(rmdir(directory) == 0);
}

static inline cbr_registry open_with_history(history *it, const char *label,
                                             uint32_t level) {
  make_history(it);
  return open_to_history(it, label, level);
}

static inline void remove_files(const history *it) {
  remove_rings_(it);
  const char *const ends[] = {"", "-wal", "-shm", "-journal", ".lease"};
  for (int each = 0; each < 5; each++) {
    char path[96];
    snprintf(path, sizeof path, "%.79s%s", it->path, ends[each]);
    unlink(path);
  }
}

static inline void remove_history(const history *it) {
  remove_files(it);
  CHECK(rmdir(it->directory) == 0);
}

/* Enters a token and leaves it, so many times. */
static inline void call_repeatedly(cbr_token token, int times) {
  for (int each = 0; each < times; each++) {
    cbr_call call;
    EXPECT(CBR_OK, cbr_enter(token, &call));
    EXPECT(CBR_OK, cbr_leave(&call));
  }
}

/* Prints a row, as a part of what went wrong. */
static inline int print_row_(void *context, int count, char **values,
                             char **names) {
  int *rows = context;
  if (++*rows > 10) return 0;
  for (int each = 0; each < count; each++)
    fprintf(stderr, "%s%s=%s", each ? ", " : "  ", names[each],
            values[each] ? values[each] : "NULL");
  fputc('\n', stderr);
  return 0;
}

/* Opens a history for reading; who closes it may have it for a moment. */
static inline sqlite3 *look_into_(const history *it) {
  sqlite3 *database = NULL;
  EQUAL(SQLITE_OK, sqlite3_open_v2(it->path, &database,
                                   SQLITE_OPEN_READWRITE, NULL));
  sqlite3_busy_timeout(database, PATIENCE_SECONDS * 1000);
  return database;
}

/* Expects that a query of a history finds nothing, and shows what it finds. */
static inline void expect_no_rows(const history *it, const char *query) {
  sqlite3 *database = look_into_(it);
  char *problem = NULL;
  int rows = 0;
  EQUAL(SQLITE_OK,
        sqlite3_exec(database, query, print_row_, &rows, &problem));
  if (problem || rows) fprintf(stderr, "%s: %s\n", query,
                               problem ? problem : "found");
  EQUAL(0, rows);
  sqlite3_free(problem);
  sqlite3_close(database);
}

/* The number that a query of a history finds. */
static inline int64_t number_in(const history *it, const char *query) {
  sqlite3 *database = look_into_(it);
  sqlite3_stmt *statement = NULL;
  int64_t number = -1;
  EQUAL(SQLITE_OK,
        sqlite3_prepare_v2(database, query, -1, &statement, NULL));
  if (sqlite3_step(statement) == SQLITE_ROW)
    number = sqlite3_column_int64(statement, 0);
  else
    CHECK(!"a row");
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return number;
}

/* Each attempt has one outcome, no call began after its end, and nothing is
 * missing. */
static inline void check_history(const history *it) {
  expect_no_rows(it, "SELECT * FROM conservation WHERE difference <> 0");
  expect_no_rows(it, "SELECT * FROM violations");
  expect_no_rows(it, "SELECT * FROM queues WHERE difference <> 0");
  expect_no_rows(it, "SELECT * FROM fault");
  expect_no_rows(it, "SELECT * FROM pragma_integrity_check "
                     "WHERE integrity_check <> 'ok'");
}

/* The shell finds the chain of blocks whole. Run from the repository's root.
 */
static inline void expect_intact(const history *it) {
  char command[192], line[192] = "";
  snprintf(command, sizeof command,
           "sqlite3 -init /dev/null -readonly %.79s < packaging/verify.sql",
           it->path);
  FILE *shell = popen(command, "r");
  CHECK(shell != NULL && fgets(line, sizeof line, shell) != NULL);
  if (!CHECK(strncmp(line, "intact: ", 8) == 0)) fputs(line, stderr);
  if (shell) CHECK(pclose(shell) == 0);
}

/* Closes a registry, expects a right history to its end, and removes it. */
static inline void close_with_history(cbr_registry registry, history *it) {
  close_registry(registry);
  check_history(it);
  expect_no_rows(it, "SELECT * FROM live");
  remove_history(it);
}

/* The same of a registry that was closed without waiting for its history,
 * which is still being written. */
static inline void end_history(history *it) {
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  while (number_in(it, "SELECT count(*) FROM run "
                       "WHERE ended = 'closed'") != 1) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_(it->path, "is never closed");
    sched_yield();
  }
  check_history(it);
  expect_no_rows(it, "SELECT * FROM live");
  remove_history(it);
}

#endif

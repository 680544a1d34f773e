// SPDX-License-Identifier: Apache-2.0
#include "bare.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { rows_at_once = 32, rows_of_transaction = 8192 };

// The library's, and its copying of the log after 2048 pages.
static const char set_up[] =
    "PRAGMA page_size = 8192; PRAGMA synchronous = NORMAL;"
    "PRAGMA journal_mode = WAL; PRAGMA trusted_schema = OFF;"
    "PRAGMA secure_delete = FAST; PRAGMA mmap_size = 0;"
    "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192;"
    "PRAGMA wal_autocheckpoint = 2048;"
    "CREATE TABLE call ("
    "  sequence INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL,"
    "  ring INTEGER NOT NULL, kind INTEGER NOT NULL,"
    "  token INTEGER NOT NULL, callback INTEGER NOT NULL,"
    "  argument INTEGER NOT NULL) STRICT;";

static void must(sqlite3 *database, int code) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
  fprintf(stderr, "bare insertion: %s\n", sqlite3_errmsg(database));
  exit(1);
}

static double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// The kind is a constant there, too.
static sqlite3_stmt *prepare(sqlite3 *database) {
  char sql[64 + rows_at_once * 20] = "INSERT INTO call VALUES (?,?,?,1,?,?,?)";
  for (int i = 1; i < rows_at_once; i++) strcat(sql, ",(?,?,?,1,?,?,?)");
  sqlite3_stmt *statement;
  must(database, sqlite3_prepare_v3(database, sql, -1,
                                    SQLITE_PREPARE_PERSISTENT, &statement,
                                    NULL));
  return statement;
}

static void bind_row(sqlite3_stmt *to, int from, uint64_t sequence) {
  sqlite3_int64 number = (sqlite3_int64)sequence;
  sqlite3_bind_int64(to, from + 1, number);
  sqlite3_bind_int64(to, from + 2, 1000000000000 + number * 31);
  sqlite3_bind_int64(to, from + 3, 1);
  sqlite3_bind_int64(to, from + 4, 0x0100000200000040);
  sqlite3_bind_int64(to, from + 5, 2);
  sqlite3_bind_int64(to, from + 6, 20 + number % 64);
}

static void insert(sqlite3 *database, uint64_t rows) {
  sqlite3_stmt *statement = prepare(database);
  for (uint64_t row = 0; row < rows;) {
    must(database, sqlite3_exec(database, "BEGIN IMMEDIATE", 0, 0, 0));
    for (int i = 0; i < rows_of_transaction / rows_at_once; i++) {
      for (int j = 0; j < rows_at_once; j++)
        bind_row(statement, j * 6, ++row);
      must(database, sqlite3_step(statement));
      must(database, sqlite3_reset(statement));
    }
    must(database, sqlite3_exec(database, "COMMIT", 0, 0, 0));
  }
  sqlite3_finalize(statement);
}

bare_cost bare_insert(const char *path, uint64_t rows) {
  sqlite3 *database;
  must(NULL, sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE |
                             SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
  must(database, sqlite3_exec(database, set_up, 0, 0, 0));
  double began = seconds_of(CLOCK_MONOTONIC);
  double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  insert(database, rows);
  bare_cost cost = {
      .seconds = seconds_of(CLOCK_MONOTONIC) - began,
      .cpu_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu};
  sqlite3_close(database);
  return cost;
}

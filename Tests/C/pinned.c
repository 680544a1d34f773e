/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader that holds a history at one moment, while calls go on as fast as
 * they can (I1, J36): the log cannot be copied and grows; every event but a
 * call is there, calls are rows or are counted; and when the reader has gone,
 * the log is copied.
 */
#include "history.h"

#include <sys/stat.h>

/* Calls of each thread, and tokens that they are of. CBR_SOAK_CALLS asks for
 * more calls: a minute takes some hundred million. */
enum { THREADS = 2, USUAL_CALLS = TIMES(300000, 60000), TOKENS = 200 };

/* What the log may grow to while a reader holds it: the last limit, past
 * which nothing is written (Writer+Bounds.swift), and a batch. */
enum { MOST_LOG_BYTES = 8 * 2048 * 8192 + (8 << 20) };

static history kept;
static cbr_registry registry;
static int calls_of_thread;

static void nothing(void *context) { (void)context; }

static void work(void *unused) {
  (void)unused;
  for (int each = 0; each < TOKENS; each++) {
    cbr_token token = CBR_NONE;
    EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                                CBR_NONE, &token));
    call_repeatedly(token, calls_of_thread / TOKENS);
    EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  }
}

/* They may take longer than a test's patience. */
static void work_in_all_threads(void) {
  static worker threads[THREADS];
  for (int each = 0; each < THREADS; each++)
    start(&threads[each], "worker", work, NULL);
  for (int each = 0; each < THREADS; each++)
    pthread_join(threads[each].thread, NULL);
}

static int64_t bytes_of_log(void) {
  char path[96];
  struct stat found = {0};
  snprintf(path, sizeof path, "%s-wal", kept.path);
  stat(path, &found);
  return found.st_size;
}

static int64_t number(sqlite3 *database, const char *query) {
  sqlite3_stmt *statement = NULL;
  int64_t number = -1;
  sqlite3_prepare_v2(database, query, -1, &statement, NULL);
  if (sqlite3_step(statement) == SQLITE_ROW)
    number = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return number;
}

static void flush(void) {
  EXPECT(CBR_OK,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

/* A copy of the database without its log, made by another process: to close
 * the file in this one would drop SQLite's locks. */
static void expect_copied(int64_t events) {
  char command[256];
  history copy = kept;
  snprintf(copy.path, sizeof copy.path, "%.63s/copy", kept.directory);
  snprintf(command, sizeof command, "cp %s %s", kept.path, copy.path);
  EQUAL(0, system(command));
  EQUAL(events, number_in(&copy, "SELECT count(*) FROM control_event"));
  remove_files(&copy);
}

static void expect_all(void) {
  const int64_t calls = (int64_t)THREADS * calls_of_thread;
  const int64_t tokens = THREADS * TOKENS;
  EQUAL(calls, number_in(&kept, "SELECT (SELECT count(*) FROM call) + "
                                "coalesce(sum(calls), 0) FROM aggregate"));
  for (int kind = 5; kind <= 7; kind++) {
    char query[96];
    snprintf(query, sizeof query, "SELECT count(*) FROM control_event "
             "WHERE kind = %d AND token >> 2 & 15 = 2", kind);
    EQUAL(tokens, number_in(&kept, query));
  }
  expect_no_rows(&kept, "SELECT * FROM losses");
  check_history(&kept);
}

/* Waits for a copying, which takes as long as it takes. */
static void await_copying(gate *copied) {
  CHECK(comes_to_within(copied, 60));
}

/* The writer has nothing to do, and copies as much as the reader allows; when
 * that has gone, the rest. */
static void let_go(sqlite3 *reader, gate *part) {
  static gate rest = GATE(LOG_COPIED, CBR_NONE, NULL);
  await_copying(part);
  close_gate(&rest);
  EQUAL(SQLITE_OK, sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL));
  sqlite3_close(reader);
  open_gate(part);
  await_copying(&rest);
  expect_copied(number_in(&kept, "SELECT count(*) FROM control_event"));
  open_gate(&rest);
}

static void I1_aReaderHoldsTheLog(void) {
  const char *soak = getenv("CBR_SOAK_CALLS");
  calls_of_thread = soak ? atoi(soak) : USUAL_CALLS;
  registry = open_with_history(&kept, "pinned", CBR_LEVEL_CALLS);
  flush();
  sqlite3 *reader = look_into_(&kept);
  EQUAL(SQLITE_OK, sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL));
  int64_t seen = number(reader, "SELECT count(*) FROM event");
  work_in_all_threads();
  /* The writer may be about to leave it when this function has returned. */
  static gate part = GATE(LOG_COPIED, CBR_NONE, NULL);
  close_gate(&part);
  flush();
  EQUAL(CBR_HISTORY_GOOD, statistics_of(registry).history_state);
  EQUAL(seen, number(reader, "SELECT count(*) FROM event"));
  CHECK(bytes_of_log() > (1 << 20));
  CHECK(bytes_of_log() <= MOST_LOG_BYTES);
  let_go(reader, &part);
  close_registry(registry);
  expect_all();
  remove_history(&kept);
}

int main(void) {
  TEST(I1_aReaderHoldsTheLog);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a history whose file is removed, replaced or damaged while
 * it is open or before, and of one whose log a reader holds (J36, J41, J44).
 */
#include "history.h"
#include "subject.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

static history it;
static cbr_registry registry;
static cbr_token token;

static void nothing(void *context) { (void)context; }

static void begin(void) {
  registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, CBR_REGISTER(registry, "called", nothing, NULL, NULL,
                              CBR_NONE, &token));
}

static void call_times(int times) {
  call_repeatedly(token, times);
}

static cbr_status flush(void) {
  return cbr_audit_flush(registry, CBR_FLUSH_DATABASE, 10000000000u, NULL);
}

static const char *beside(const char *ending) {
  static char path[128];
  snprintf(path, sizeof path, "%s%s", it.path, ending);
  return path;
}

/* How many files have been set aside, whose names end so. */
static int set_aside(const char *ending) {
  char pattern[128];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s.set-aside-*%s", it.path, ending);
  int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
  globfree(&found);
  return count;
}

/* Puts a text into the place of the history. */
static void spoil(void) {
  FILE *text = fopen(beside(".text"), "w");
  for (int each = 0; text && each < 99; each++) fputs("A text.\n", text);
  CHECK(text && fclose(text) == 0);
  CHECK(rename(beside(".text"), it.path) == 0);
}

/* Like check_history, but there is one fault, which says this. */
static void check_fault(const char *cause) {
  char query[256];
  snprintf(query, sizeof query, "SELECT count(*) FROM fault "
           "WHERE cause LIKE '%%%s%%'", cause);
  EQUAL(1, number_in(&it, query));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM fault"));
  expect_no_rows(&it, "SELECT * FROM conservation WHERE difference <> 0");
  expect_no_rows(&it, "SELECT * FROM violations");
  expect_no_rows(&it, "SELECT * FROM pragma_integrity_check "
                      "WHERE integrity_check <> 'ok'");
}

static void end(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", it.directory);
  EQUAL(0, system(command));
}

/* ---------------------------------------------------- While it is open -- */

static void J41_aRemovedDatabaseIsMadeAnew(void) {
  begin();
  call_times(5);
  EXPECT(CBR_OK, flush());
  CHECK(unlink(it.path) == 0);
  call_times(7);
  EXPECT(CBR_OK, flush());
  EQUAL(7, number_in(&it, "SELECT count(*) FROM call"));
  call_times(1);
  EXPECT(CBR_OK, cbr_audit_note(registry, token, "later"));
  close_registry(registry);
  EQUAL(8, number_in(&it, "SELECT count(*) FROM call"));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM run WHERE ended = 'closed' "
                          "AND predecessor LIKE '%removed%'"));
  expect_no_rows(&it, "SELECT * FROM history WHERE thread IS NULL");
  check_fault("was removed while it was open");
  EQUAL(1, set_aside("-wal"));
  end();
}

static void J41_anotherHistoryInItsPlaceIsUsed(void) {
  history other;
  begin();
  call_times(5);
  EXPECT(CBR_OK, flush());
  close_registry(open_with_history(&other, "other", CBR_LEVEL_CALLS));
  CHECK(rename(other.path, it.path) == 0);
  call_times(7);
  EXPECT(CBR_OK, flush());
  close_registry(registry);
  EQUAL(7, number_in(&it, "SELECT count(*) FROM call"));
  EQUAL(2, number_in(&it, "SELECT count(*) FROM run WHERE ended = 'closed'"));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM token_life "
                          "WHERE label = 'other'"));
  check_fault("another file has taken the place");
  EQUAL(1, set_aside("-wal"));
  remove_history(&other);
  end();
}

/* Nothing that is there is touched, nothing is lost, and calls go on. */
static void J41_aTextInItsPlaceIsLeftAlone(void) {
  begin();
  EXPECT(CBR_OK, flush());
  spoil();
  call_times(7);
  EXPECT(CBR_E_AUDIT, flush());
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(CBR_OK, cbr_registry_statistics(registry, &statistics));
  EQUAL(CBR_HISTORY_DEGRADED, statistics.history_state);
  call_times(2);
  struct stat found;
  CHECK(stat(it.path, &found) == 0 && found.st_size == 99 * 8);
  CHECK(unlink(it.path) == 0);
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  while (flush() != CBR_OK) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_(it.path, "is never written");
  }
  EXPECT(CBR_OK, cbr_registry_statistics(registry, &statistics));
  EQUAL(CBR_HISTORY_GOOD, statistics.history_state);
  EQUAL(0, statistics.events_lost);
  close_registry(registry);
  EQUAL(9, number_in(&it, "SELECT count(*) FROM call"));
  check_fault("");
  end();
}

/* What was in the log and not yet in the database is not lost. */
static void J41_aRemovedLogIsSaved(void) {
  begin();
  call_times(5);
  EXPECT(CBR_OK, flush());
  call_times(5);
  EXPECT(CBR_OK, flush());
  CHECK(unlink(beside("-wal")) == 0);
  call_times(7);
  EXPECT(CBR_OK, flush());
  close_registry(registry);
  EQUAL(17, number_in(&it, "SELECT count(*) FROM call"));
  check_fault("log was removed");
  end();
}

/* ---------------------------------------------------------- Being told -- */

typedef struct listener {
  _Atomic int degraded, good;
  _Atomic bool is_named, is_flushed, is_closed;
  cbr_registry closes; /* this one when it hears of a failure */
} listener;

static void hear(void *context, cbr_history_state state,
                 const char *sentence) {
  listener *self = context;
  cbr_registry closes = self->closes;
  if (state == CBR_HISTORY_GOOD) self->good++;
  if (state != CBR_HISTORY_DEGRADED) return;
  self->is_named = strstr(sentence, it.path) && strstr(sentence, "move it");
  self->is_flushed = cbr_audit_flush(registry, CBR_FLUSH_DATABASE,
                                     CBR_FOREVER, NULL) ==
                     CBR_E_WOULD_DEADLOCK;
  if (closes)
    self->is_closed = cbr_registry_close(closes, CBR_FOREVER) == CBR_DEFERRED;
  self->degraded++;
}

static cbr_registry listen_as(listener *self) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_registry listening = CBR_NONE;
  options.history_path = it.path;
  options.history_changed = hear;
  options.history_context = self;
  EXPECT(CBR_OK, cbr_registry_open(&options, &listening));
  return listening;
}

static void await_count(_Atomic int *count) {
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  while (*count == 0) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_("an observer", "is never told");
    sched_yield();
  }
}

/* I2: who wants to know is told that nothing is written, and when it is
 * again. */
static void I2_observersAreTold(void) {
  listener one = {0}, other = {0};
  begin();
  cbr_registry first = listen_as(&one), second = listen_as(&other);
  EXPECT(CBR_OK, flush());
  EXPECT(CBR_OK, cbr_registry_close(first, CBR_FOREVER));
  spoil();
  call_times(1);
  EXPECT(CBR_E_AUDIT, flush());
  await_count(&other.degraded);
  CHECK(other.is_named && other.is_flushed);
  CHECK(unlink(it.path) == 0);
  await_count(&other.good);
  EQUAL(1, other.degraded);
  EQUAL(0, one.degraded + one.good);
  close_registry(second);
  close_registry(registry);
  check_fault("");
  end();
}

static void anObserverMayCloseItsRegistry(void) {
  listener one = {0};
  make_history(&it);
  registry = listen_as(&one);
  one.closes = registry;
  EXPECT(CBR_OK, cbr_audit_note(registry, CBR_NONE, "spoilt"));
  EXPECT(CBR_OK, flush());
  spoil();
  EXPECT(CBR_OK, cbr_audit_note(registry, CBR_NONE, "last"));
  await_count(&one.degraded);
  CHECK(one.is_closed);
  CHECK(unlink(it.path) == 0);
  /* The writer goes on alone. */
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  while (access(it.path, F_OK) != 0 ||
         number_in(&it, "SELECT count(*) FROM sqlite_schema "
                        "WHERE name = 'run'") == 0 ||
         number_in(&it, "SELECT count(*) FROM run "
                        "WHERE ended = 'closed'") == 0) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_("the history", "is never closed");
    sched_yield();
  }
  EQUAL(1, number_in(&it, "SELECT count(*) FROM note WHERE text = 'last'"));
  EQUAL(1, one.degraded);
  end();
}

/* ------------------------------------------------- Before it is opened -- */

static void overwrite(off_t offset, size_t bytes) {
  int file = open(it.path, O_WRONLY);
  CHECK(file >= 0);
  for (size_t each = 0; each < bytes; each++)
    CHECK(pwrite(file, "\xA5", 1, offset + (off_t)each) == 1);
  close(file);
}

static void J44_aDamagedHistoryIsSetAside(void) {
  begin();
  call_times(5);
  close_registry(registry);
  struct stat before, after;
  CHECK(stat(it.path, &before) == 0);
  overwrite(100, 4000); /* the first page of the schema */
  registry = open_to_history(&it, "here", CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, CBR_REGISTER(registry, "called", nothing, NULL, NULL,
                              CBR_NONE, &token));
  call_times(3);
  close_registry(registry);
  EQUAL(3, number_in(&it, "SELECT count(*) FROM call"));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM run "
                          "WHERE predecessor LIKE '%.set-aside-%'"));
  check_fault("was damaged");
  EQUAL(1, set_aside(""));
  glob_t found;
  char pattern[128];
  snprintf(pattern, sizeof pattern, "%s.set-aside-*", it.path);
  if (glob(pattern, 0, NULL, &found) == 0) {
    CHECK(stat(found.gl_pathv[0], &after) == 0);
    CHECK(before.st_ino == after.st_ino && before.st_size == after.st_size);
    globfree(&found);
  }
  end();
}

static void J44_whatMayBeAnothersIsNotSetAside(void) {
  begin();
  close_registry(registry);
  overwrite(0, 100); /* nothing says that it was a history */
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = it.path;
  EXPECT(CBR_E_AUDIT, cbr_registry_open(&options, &registry));
  CHECK(strstr(cbr_last_error(), "move it away") != NULL);
  EQUAL(0, set_aside(""));
  end();
}

static void J41_aLogWithoutItsDatabaseIsSetAside(void) {
  make_history(&it);
  FILE *log = fopen(beside("-wal"), "w");
  CHECK(log && fputs("a log of something", log) >= 0 && fclose(log) == 0);
  registry = open_to_history(&it, "here", CBR_LEVEL_CALLS);
  close_registry(registry);
  EQUAL(1, set_aside("-wal"));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM run"));
  end();
}

/* Another process makes the database, with a log of its own, just when an old
 * log was found to have none. */
static sqlite3 *other;

static void make_database_at(int32_t point, uint64_t handle) {
  if (point != LOG_FOUND || other) return;
  (void)handle;
  CHECK(sqlite3_open(it.path, &other) == SQLITE_OK);
  CHECK(sqlite3_exec(other,
                     "PRAGMA journal_mode = WAL; CREATE TABLE t (a);"
                     "INSERT INTO t VALUES (1)",
                     NULL, NULL, NULL) == SQLITE_OK);
}

static void J25_theLogOfAnothersNewDatabaseStays(void) {
  make_history(&it);
  FILE *log = fopen(beside("-wal"), "w");
  CHECK(log && fputs("a log of something", log) >= 0 && fclose(log) == 0);
  cbr_test_set_hook(make_database_at);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = it.path;
  EXPECT(CBR_E_AUDIT, cbr_registry_open(&options, &registry));
  cbr_test_set_hook(reach);
  CHECK(other != NULL);
  EQUAL(0, set_aside("-wal"));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM t"));
  CHECK(sqlite3_close(other) == SQLITE_OK);
  end();
}

/* ------------------------------------------- A reader that does not end -- */

static void J36_aReaderCannotMakeTheLogGrowForEver(void) {
  make_history(&it);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = it.path;
  options.calls_per_second = UINT64_MAX;
  options.max_bytes = 256 << 20;
  options.ring_bytes = 1 << 16;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "called", nothing, NULL, NULL,
                              CBR_NONE, &token));
  EXPECT(CBR_OK, flush());
  sqlite3 *reader = look_into_(&it);
  EQUAL(SQLITE_OK, sqlite3_exec(reader, "BEGIN; SELECT * FROM meta", NULL,
                                NULL, NULL));
  int notes = 0;
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  while (statistics.events_aggregated == 0 && notes < 1000) {
    call_times(1000);
    EXPECT(CBR_OK, cbr_audit_note(registry, token, "control"));
    notes++;
    EXPECT(CBR_OK, flush());
    EXPECT(CBR_OK, cbr_registry_statistics(registry, &statistics));
  }
  CHECK(statistics.events_aggregated > 0);
  EQUAL(CBR_HISTORY_GOOD, statistics.history_state);
  /* Twice the pages after which it is copied, and a batch. */
  struct stat log;
  CHECK(stat(beside("-wal"), &log) == 0 && log.st_size < 10 << 20);
  for (int each = 0; each < 50; each++) {
    EXPECT(CBR_OK, cbr_audit_note(registry, token, "control"));
    call_times(100);
  }
  sqlite3_close(reader);
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  EXPECT(CBR_OK, flush());
  int64_t rows = number_in(&it, "SELECT count(*) FROM call");
  /* It goes on. */
  while (number_in(&it, "SELECT count(*) FROM call") <= rows) {
    call_times(10);
    EXPECT(CBR_OK, flush());
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_("calls", "are never written again");
  }
  close_registry(registry);
  EQUAL(notes + 50, number_in(&it, "SELECT count(*) FROM note"));
  CHECK(stat(it.path, &log) == 0);
  expect_no_rows(&it, "SELECT * FROM losses");
  check_history(&it);
  end();
}

/* ------------------------------------------------ Where it cannot be -- */

static uint32_t pretended_file_system;

int statfs(const char *path, struct statfs *out) {
  (void)path;
  out->f_type = pretended_file_system;
  return 0;
}

static void aNetworkFileSystemIsRefused(void) {
  make_history(&it);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = it.path;
  const uint32_t remote[] = {0x6969, 0xFF534D42, 0x01021997};
  for (int each = 0; each < 3; each++) {
    pretended_file_system = remote[each];
    EXPECT(CBR_E_AUDIT, cbr_registry_open(&options, &registry));
    CHECK(strstr(cbr_last_error(), "network file system") != NULL);
    CHECK(strstr(cbr_last_error(), "name a path on a local one") != NULL);
    CHECK(access(it.path, F_OK) != 0);
  }
  pretended_file_system = 0xEF53;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  close_registry(registry);
  end();
}

int main(void) {
  TEST(J41_aRemovedDatabaseIsMadeAnew);
  TEST(J41_anotherHistoryInItsPlaceIsUsed);
  TEST(J41_aTextInItsPlaceIsLeftAlone);
  TEST(J41_aRemovedLogIsSaved);
  TEST(I2_observersAreTold);
  TEST(anObserverMayCloseItsRegistry);
  TEST(J44_aDamagedHistoryIsSetAside);
  TEST(J44_whatMayBeAnothersIsNotSetAside);
  TEST(J41_aLogWithoutItsDatabaseIsSetAside);
  TEST(J25_theLogOfAnothersNewDatabaseStays);
  TEST(J36_aReaderCannotMakeTheLogGrowForEver);
  TEST(aNetworkFileSystemIsRefused);
  return finish();
}

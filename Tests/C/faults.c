/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that fail (I2, I3, J38, J39, J50): at every call of each kind once,
 * and from some call on until there is room again. The program goes on as if
 * nothing were, and its history is whole, then or after the next opening; or
 * says exactly what it has lost.
 */
#include "crash.h"
#include "failing.h"
#include "saved.h"

typedef struct kind {
  const char *name;
  operation what;
  int code;
} kind;

static const kind kinds[] = {
  {"writing fails", WRITE, SQLITE_IOERR_WRITE},
  {"the disk is full", WRITE, SQLITE_FULL},
  {"half is written", SHORT_WRITE, SQLITE_IOERR_WRITE},
  {"reading fails", READ, SQLITE_IOERR_READ},
  {"syncing fails", SYNC, SQLITE_IOERR_FSYNC},
  {"opening fails", OPEN, SQLITE_CANTOPEN},
  {"truncating fails", TRUNCATE, SQLITE_IOERR_TRUNCATE},
  {"the size is not known", SIZE, SQLITE_IOERR_FSTAT},
  {"the file is locked", LOCK, SQLITE_BUSY},
  {"locking the file fails", LOCK, SQLITE_IOERR_LOCK},
  {"mapping the index fails", SHM_MAP, SQLITE_IOERR_SHMMAP},
  {"the index is locked", SHM_LOCK, SQLITE_BUSY},
  {"locking the index fails", SHM_LOCK, SQLITE_IOERR_SHMLOCK},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What the script records. */
enum { TOKENS = 3, CALLS = 10, ALL_CALLS = 50, ENDS = 2 };

static cbr_registry registry;

static void nothing(void *context) { (void)context; }

static cbr_token added(void) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "callback", nothing, NULL, NULL,
                              CBR_NONE, &token));
  return token;
}

/* Something that waits for the history is done or says that it could not be:
 * these, and no others. */
static bool is_kept(cbr_status status) {
  CHECK(status == CBR_OK || status == CBR_E_AUDIT);
  if (status == CBR_E_AUDIT) CHECK(strlen(cbr_last_error()) > 10);
  return status == CBR_OK;
}

static bool opens(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = 1 << 14;
  registry = CBR_NONE;
  return is_kept(cbr_registry_open(&options, &registry));
}

static int flushes_failed;

static bool flushes(uint32_t level) {
  bool is_done = is_kept(cbr_audit_flush(registry, level, CBR_FOREVER, NULL));
  flushes_failed += !is_done;
  return is_done;
}

/* The same each time: all of it succeeds, whatever becomes of the history. */
static void act(void) {
  cbr_token tokens[TOKENS];
  for (int each = 0; each < TOKENS; each++) {
    tokens[each] = added();
    call_repeatedly(tokens[each], CALLS);
  }
  EXPECT(CBR_OK, cbr_audit_note(registry, tokens[0], "a note"));
  flushes(CBR_FLUSH_DISK);
  for (int each = 0; each < ENDS; each++) {
    call_repeatedly(tokens[each], CALLS);
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  }
  flushes(CBR_FLUSH_DATABASE);
  EQUAL(0, statistics_of(registry).events_lost);
}

/* A1, A2, A5. */
static const char *const sums =
    "SELECT * FROM conservation WHERE difference <> 0;"
    "SELECT * FROM violations;"
    "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok';";

/* All of it once, and nothing lost: ALL_CALLS, TOKENS, a note and ENDS. */
static const char *const all =
    "SELECT 'calls', count(*) FROM call HAVING count(*) <> 50;"
    "SELECT 'registrations', count(*) FROM control_event WHERE kind = 5"
    " HAVING count(*) <> 3;"
    "SELECT 'notes', count(*) FROM note HAVING count(*) <> 1;"
    "SELECT 'ends', count(*) FROM control_event WHERE kind = 6"
    " AND argument = 1 HAVING count(*) <> 2;"
    "SELECT * FROM losses;";

static void expect_all(void) {
  expect_no_rows(&kept, all);
  expect_no_rows(&kept, sums);
}

/* Nothing is left open, and no rings beside the history. */
static int files_open(void) {
  int count = 0;
  DIR *listing = opendir("/proc/self/fd");
  while (readdir(listing)) count++;
  closedir(listing);
  return count;
}

static bool has_rings(void) {
  char path[96];
  snprintf(path, sizeof path, "%s.rings", kept.path);
  return access(path, F_OK) == 0;
}

/* Lives with one failure; false when it did not come to that. */
static bool lives_with(failure it) {
  int files = files_open();
  flushes_failed = 0;
  begin_failing(it);
  if (!opens()) {
    end_failing();
    CHECK(opens());
    begin_failing((failure){it.what, it.code, 0, false});
    atomic_store(&calls_failed, 1);
  }
  act();
  bool is_closed = is_kept(cbr_registry_close(registry, CBR_FOREVER));
  bool has_failed = end_failing() > 0;
  if (!is_closed) recover();
  expect_all();
  expect_no_rows(&kept, "SELECT * FROM live");
  if (is_closed && flushes_failed)
    CHECK(number_in(&kept, "SELECT count(*) FROM fault") > 0);
  CHECK(!has_rings());
  EQUAL(files, files_open());
  return has_failed;
}

/* The k-th call of a kind fails, for each k that there is. */
static void fail_each(const remains *before, int step,
                      bool (*lives)(failure)) {
  for (int each = 0; each < KINDS; each++) {
    bool has_failed = true;
    for (int k = 1; has_failed; k += step) {
      WITHIN("%s, %d", kinds[each].name, k);
      if (before) restore_remains(&kept, before, before->rings.size);
      has_failed =
          lives((failure){kinds[each].what, kinds[each].code, k, false});
      remove_files(&kept);
    }
  }
}

static void I2_eachCallFailsOnce(void) {
  make_fast_history(&kept);
  recover();
  remains before = save_remains(&kept);
  fail_each(&before, TIMES(1, 5), lives_with);
  forget_remains(&before);
  remove_history(&kept);
}

static void I2_eachCallFailsOnceOfANewHistory(void) {
  make_fast_history(&kept);
  fail_each(NULL, TIMES(7, 31), lives_with);
  remove_history(&kept);
}

/* ------------------------------------------------------------- recovery -- */

/* Does all that is to be found, and dies with it in its ring. */
static void live_and_die(void) {
  gate held = GATE(BATCH_BEGAN, CBR_NONE, NULL);
  close_gate(&held);
  CHECK(opens());
  cbr_token tokens[TOKENS];
  for (int each = 0; each < TOKENS; each++) tokens[each] = added();
  EXPECT(CBR_OK, cbr_audit_note(registry, tokens[0], "a note"));
  call_repeatedly(tokens[0], ALL_CALLS);
  for (int each = 0; each < ENDS; each++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  await_gate(&held);
  die(SIGKILL);
}

static void leave_remains(void) {
  make_fast_history(&kept);
  recover();
  await_death(spawn_self("live", NULL, 0), SIGKILL);
}

static void expect_recovered(void) {
  expect_all();
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                            "WHERE ended = 'crash'"));
  CHECK(!has_rings());
}

/* Recovers with one failure, and then without if something is left. */
static bool recovers_with(failure it) {
  int files = files_open();
  begin_failing(it);
  if (opens()) is_kept(cbr_registry_close(registry, CBR_FOREVER));
  bool has_failed = end_failing() > 0;
  if (has_rings()) recover();
  expect_recovered();
  EQUAL(files, files_open());
  return has_failed;
}

static void J39_eachCallOfARecoveryFailsOnce(void) {
  leave_remains();
  remains left = save_remains(&kept);
  fail_each(&left, TIMES(1, 5), recovers_with);
  forget_remains(&left);
  remove_history(&kept);
}

/* Rings of the dead are removed when what was in them is on the disk: not
 * while that cannot be synced. */
static void J50_ringsStayUntilAllIsDurable(void) {
  leave_remains();
  remains left = save_remains(&kept);
  begin_failing((failure){SYNC, SQLITE_IOERR_FSYNC, 1, true});
  CHECK(opens());
  CHECK(access(left.rings.path, F_OK) == 0);
  is_kept(cbr_registry_close(registry, CBR_FOREVER));
  CHECK(access(left.rings.path, F_OK) == 0);
  CHECK(end_failing() > 0);
  recover();
  expect_recovered();
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault"));
  forget_remains(&left);
  remove_history(&kept);
}

/* ------------------------------------------------------------- lasting -- */

enum { BURST = 400, NOTES = 20 };

/* Notes find no room; each says so. */
static int notes_lost(cbr_token token) {
  int lost = 0;
  for (int each = 0; each < NOTES; each++)
    lost += !is_kept(cbr_audit_note(registry, token, "a note"));
  return lost;
}

static void open_small(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = 4096;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
}

/* Everything recorded is written, counted or lost. Besides the notes, each
 * flush has told how often the token was called so far. */
static int lost_in_balance(void) {
  cbr_statistics now = statistics_of(registry);
  EQUAL(CBR_HISTORY_GOOD, now.history_state);
  CHECK(now.events_lost >= NOTES);
  EQUAL(now.events_emitted,
        now.events_written + now.events_aggregated + now.events_lost);
  return (int)now.events_lost;
}

/* One fault, with its code and what it has cost; every call is a row or is
 * counted. */
static void expect_fault(int code, int lost, int calls) {
  char query[256];
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault"));
  snprintf(query, sizeof query, "SELECT count(*) FROM fault WHERE "
           "sqlite_code = %d AND failures > 0 AND lost = %d", code, lost);
  EQUAL(1, number_in(&kept, query));
  EQUAL(calls, number_in(&kept, "SELECT (SELECT count(*) FROM call) + "
                                "coalesce(sum(calls), 0) FROM aggregate"));
  EQUAL(lost, number_in(&kept, "SELECT coalesce(sum(events), 0) FROM losses "
                               "WHERE cause LIKE '%not be written%'"));
  expect_no_rows(&kept, sums);
}

/* The writer cannot write: the program's calls are called, the state can be
 * read, and rings are kept until it can (J50); then it goes on by itself. */
static void live_through(failure it) {
  make_fast_history(&kept);
  open_small();
  cbr_token token = added();
  CHECK(flushes(CBR_FLUSH_DISK));
  begin_failing(it);
  call_repeatedly(token, BURST);
  CHECK(!flushes(CBR_FLUSH_DATABASE));
  EQUAL(CBR_HISTORY_DEGRADED, statistics_of(registry).history_state);
  call_repeatedly(token, BURST);
  EQUAL(NOTES, notes_lost(token));
  end_failing();
  while (!flushes(CBR_FLUSH_DATABASE)) sched_yield();
  int lost = lost_in_balance();
  call_repeatedly(token, BURST / 10);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  close_registry(registry);
  expect_fault(it.code, lost, 2 * BURST + BURST / 10);
  remove_history(&kept);
}

static void I3_J38_fullUntilThereIsRoom(void) {
  for (int k = 1; k < 6; k += 2)
    live_through((failure){WRITE, SQLITE_FULL, k, true});
}

static void I2_nothingCanBeWritten(void) {
  live_through((failure){WRITE, SQLITE_IOERR_WRITE, 1, true});
  live_through((failure){SHORT_WRITE, SQLITE_FULL, 1, true});
  live_through((failure){SHM_LOCK, SQLITE_IOERR_SHMLOCK, 1, true});
}

/* What is not on the disk is not said to be there. */
static void A4_aFlushThatCannotSyncSaysSo(void) {
  make_fast_history(&kept);
  open_small();
  call_repeatedly(added(), 1);
  begin_failing((failure){SYNC, SQLITE_IOERR_FSYNC, 1, true});
  CHECK(flushes(CBR_FLUSH_DATABASE));
  CHECK(!flushes(CBR_FLUSH_DISK));
  CHECK(end_failing() > 0);
  while (!flushes(CBR_FLUSH_DISK)) sched_yield();
  close_registry(registry);
  expect_fault(SQLITE_IOERR_FSYNC, 0, 1);
  remove_history(&kept);
}

/* The program is closed and opened again and again on a full disk: what was
 * there stays as it was, and what was in the rings comes once, when there is
 * room. */
static void J39_openedAgainWhileTheDiskIsFull(void) {
  make_fast_history(&kept);
  open_small();
  cbr_token token = added();
  call_repeatedly(token, 30);
  CHECK(flushes(CBR_FLUSH_DATABASE));
  begin_failing((failure){WRITE, SQLITE_FULL, 1, true});
  call_repeatedly(token, 30);
  CHECK(!flushes(CBR_FLUSH_DATABASE));
  EXPECT(CBR_E_AUDIT, cbr_registry_close(registry, 0));
  for (int each = 0; each < 3; each++) CHECK(!opens());
  EQUAL(30, number_in(&kept, "SELECT count(*) FROM call"));
  end_failing();
  recover();
  EQUAL(60, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(2, number_in(&kept, "SELECT count(*) FROM run"));
  expect_no_rows(&kept, "SELECT * FROM losses");
  expect_no_rows(&kept, sums);
  CHECK(!has_rings());
  remove_history(&kept);
}

int main(int count, char **arguments) {
  put_failing_files_before_sqlite();
  if (count > 1) {
    snprintf(kept.path, sizeof kept.path, "%s", arguments[2]);
    prepare_to_die(SIGKILL, 0, 0);
    live_and_die();
  }
  alarm(TIMES(120, 600)); /* hangs are failures */
  TEST(I2_eachCallFailsOnce);
  TEST(I2_eachCallFailsOnceOfANewHistory);
  TEST(J39_eachCallOfARecoveryFailsOnce);
  TEST(J50_ringsStayUntilAllIsDurable);
  TEST(I3_J38_fullUntilThereIsRoom);
  TEST(I2_nothingCanBeWritten);
  TEST(A4_aFlushThatCannotSyncSaysSo);
  TEST(J39_openedAgainWhileTheDiskIsFull);
  return finish();
}

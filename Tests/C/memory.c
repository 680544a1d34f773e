/* SPDX-License-Identifier: Apache-2.0
 *
 * No memory, at every allocation of the library's and of SQLite's while a
 * history is opened, recorded and closed (A5): a documented status, what is
 * missing is counted, and the next try works.
 */
#include "crash.h"
#include "saved.h"

/* ------------------------------------------------ SQLite's allocations -- */

static sqlite3_mem_methods ordinary;
static _Atomic int64_t until_failure = -1;

static bool fails(void) {
  return atomic_load(&until_failure) >= 0 &&
         atomic_fetch_sub(&until_failure, 1) == 0;
}

static void *allocate(int bytes) {
  return fails() ? NULL : ordinary.xMalloc(bytes);
}

static void *grow(void *memory, int bytes) {
  return fails() ? NULL : ordinary.xRealloc(memory, bytes);
}

static void put_failing_memory_before_sqlite(void) {
  EQUAL(SQLITE_OK, sqlite3_config(SQLITE_CONFIG_GETMALLOC, &ordinary));
  sqlite3_mem_methods failing = ordinary;
  failing.xMalloc = allocate;
  failing.xRealloc = grow;
  EQUAL(SQLITE_OK, sqlite3_config(SQLITE_CONFIG_MALLOC, &failing));
}

static int64_t fail_allocation_of_sqlite(int64_t after) {
  return atomic_exchange(&until_failure, after);
}

/* -------------------------------------------------------------- a life -- */

typedef int64_t (*fail_allocation)(int64_t after);

enum { TOKENS = 3, CALLS = 10 };

static cbr_registry registry;
/* Where the rings are; NULL: beside the history. */
static const char *rings;

static void nothing(void *context) { (void)context; }

/* What fails for want of memory fails once, and has changed nothing. */
#define TRY(call)                                    \
  do {                                               \
    cbr_status status_ = (call);                     \
    if (status_ == CBR_E_NOMEM) status_ = (call);    \
    EXPECT(CBR_OK, status_);                         \
  } while (0)

static cbr_status open_once(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  options.ring_directory = rings;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = 1 << 14;
  return cbr_registry_open(&options, &registry);
}

static void call_often(cbr_token token) {
  for (int each = 0; each < CALLS; each++) {
    cbr_call call;
    TRY(cbr_enter(token, &call));
    EXPECT(CBR_OK, cbr_leave(&call));
  }
}

static void flush(void) {
  cbr_status status =
      cbr_audit_flush(registry, CBR_FLUSH_DISK, CBR_FOREVER, NULL);
  CHECK(status == CBR_OK || status == CBR_E_AUDIT);
}

static void act(void) {
  cbr_token tokens[TOKENS];
  for (int each = 0; each < TOKENS; each++) {
    TRY(CBR_REGISTER(registry, "callback", nothing, NULL, NULL, CBR_NONE,
                     &tokens[each]));
    call_often(tokens[each]);
  }
  cbr_status noted = cbr_audit_note(registry, tokens[0], "a note");
  CHECK(noted == CBR_OK || noted == CBR_E_AUDIT);
  flush();
  for (int each = 0; each < TOKENS; each++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
}

static const char *const sums =
    "SELECT * FROM conservation WHERE difference <> 0;"
    "SELECT * FROM violations;"
    "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok';";

static const char *const all =
    "SELECT 'calls', count(*) FROM call HAVING count(*) <> 30;"
    "SELECT 'registrations', count(*) FROM control_event WHERE kind = 5"
    " HAVING count(*) <> 3;"
    "SELECT 'notes', count(*) FROM note HAVING count(*) <> 1;"
    "SELECT 'ends', count(*) FROM control_event WHERE kind = 6"
    " HAVING count(*) <> 3;"
    "SELECT * FROM live;";

/* All is there, or as much is missing as is said to be lost. */
static void expect_history(uint64_t lost) {
  EQUAL(lost, number_in(&kept, "SELECT coalesce(sum(events), 0) "
                               "FROM loss"));
  expect_no_rows(&kept, sums);
  if (lost == 0) expect_no_rows(&kept, all);
}

/* Lives with one failure; false when it did not come to that. */
static bool lives_with(fail_allocation fail, int64_t after) {
  fail(after);
  cbr_status opened = open_once();
  if (opened != CBR_OK) {
    EXPECT(CBR_E_NOMEM, opened);
    CHECK(strstr(cbr_last_error(), "memory") != NULL);
    EXPECT(CBR_OK, open_once());
  }
  act();
  uint64_t lost = statistics_of(registry).events_lost;
  cbr_status closed = cbr_registry_close(registry, CBR_FOREVER);
  bool has_failed = fail(-1) < 0;
  CHECK(closed == CBR_OK || closed == CBR_E_AUDIT);
  if (closed == CBR_E_AUDIT) recover();
  expect_history(lost);
  return has_failed;
}

/* Each `step`th allocation fails, beginning with one that chance says. */
static void fail_each(fail_allocation fail, int64_t step) {
  make_fast_history(&kept);
  recover();
  remains before = save_remains(&kept);
  bool has_failed = true;
  for (int64_t after = getpid() % step; has_failed; after += step) {
    WITHIN("allocation %d", (int)after);
    restore_remains(&kept, &before, 0);
    has_failed = lives_with(fail, after);
    remove_files(&kept);
  }
  forget_remains(&before);
  remove_history(&kept);
}

static void A5_noMemoryForTheLibrary(void) {
  fail_each(cbr_test_fail_any_allocation, 1);
}

/* Nothing stays in the directory, or it could not be removed. */
static void A5_noMemoryWithRingsElsewhere(void) {
  rings = kept.directory;
  fail_each(cbr_test_fail_any_allocation, 1);
  rings = NULL;
}

/* There are nine thousand: CBR_SOAK_EACH asks for all of them. */
static void A5_noMemoryForSQLite(void) {
  fail_each(fail_allocation_of_sqlite,
            getenv("CBR_SOAK_EACH") ? 1 : TIMES(37, 211));
}

int main(void) {
  put_failing_memory_before_sqlite();
  TEST(A5_noMemoryForTheLibrary);
  TEST(A5_noMemoryWithRingsElsewhere);
  TEST(A5_noMemoryForSQLite);
  return finish();
}

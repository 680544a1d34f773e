/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of events for which there is no room (A5, J51, J53): each
 * policy, with a writer that stands still while a ring of 128 records is
 * filled.
 */
#include "history.h"
#include "subject.h"

#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

enum { EVENTS = 300 };

static history it;
static cbr_registry registry;
static cbr_token token;
static gate written = GATE(BATCH_BEGAN, CBR_NONE, NULL);

static void nothing(void *context) { (void)context; }

/* Opens a history whose writer stands still from now on. */
static void begin(uint32_t calls, uint32_t events, uint64_t timeout) {
  make_history(&it);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = it.path;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = 4096;
  options.calls_overflow = calls;
  options.events_overflow = events;
  options.block_timeout_ns = timeout;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "called", nothing, NULL, NULL,
                              CBR_NONE, &token));
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  written = (gate)GATE(BATCH_BEGAN, CBR_NONE, NULL);
  close_gate(&written);
  EXPECT(CBR_OK, cbr_audit_note(registry, CBR_NONE, "the writer stops"));
  await_gate(&written);
}

static void call_it(void *unused) {
  (void)unused;
  for (int each = 0; each < EVENTS; each++) {
    cbr_call call;
    EXPECT(CBR_OK, cbr_enter(token, &call));
    EXPECT(CBR_OK, cbr_leave(&call));
  }
}

/* Closing records something, too, and must find room. */
static void go_on_and_close(void) {
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  cbr_statistics at = CBR_STATISTICS_INIT;
  open_gate(&written);
  do {
    EXPECT(CBR_OK, cbr_registry_statistics(registry, &at));
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_("the writer", "does not go on");
    sched_yield();
  } while (at.events_written + at.events_aggregated + at.events_lost <
           at.events_emitted);
  close_registry(registry);
}

static int64_t rows(void) {
  return number_in(&it, "SELECT count(*) FROM call");
}

static int64_t counted(void) {
  return number_in(&it, "SELECT coalesce(sum(calls), 0) FROM aggregate");
}

static int64_t lost(void) {
  return number_in(&it, "SELECT coalesce(sum(events), 0) FROM losses");
}

static void A5_callsAreCounted(void) {
  begin(0, 0, 0);
  call_it(NULL);
  go_on_and_close();
  CHECK(rows() > 0 && counted() > 0);
  EQUAL(EVENTS, rows() + counted());
  EQUAL(0, lost());
  expect_no_rows(&it, "SELECT * FROM aggregate WHERE cause <> 2");
  check_history(&it);
  remove_history(&it);
}

/* J24: however long the writer stands still, nothing grows. */
static void J24_memoryDoesNotGrow(void) {
  begin(0, 0, 0);
  call_it(NULL);
  size_t before = mallinfo2().uordblks;
  for (int round = 0; round < TIMES(10000, 500); round++) call_it(NULL);
  size_t after = mallinfo2().uordblks;
  CHECK(after <= before + 65536);
  go_on_and_close();
  EQUAL(EVENTS * (TIMES(10000, 500) + 1), rows() + counted());
  EQUAL(0, lost());
  check_history(&it);
  remove_history(&it);
}

static void A5_callsWaitForRoom(void) {
  begin(CBR_OVERFLOW_BLOCK, 0, UINT64_C(60000000000));
  worker caller;
  gate full = GATE(RING_FULL, CBR_NONE, &caller);
  close_gate(&full);
  start(&caller, "caller", call_it, NULL);
  await_gate(&full);
  open_gate(&full);
  open_gate(&written);
  join(&caller);
  close_registry(registry);
  EQUAL(EVENTS, rows());
  EQUAL(0, counted() + lost());
  check_history(&it);
  remove_history(&it);
}

static void A5_callsThatHaveWaitedAreCounted(void) {
  begin(CBR_OVERFLOW_BLOCK, 0, 1);
  call_it(NULL);
  go_on_and_close();
  CHECK(counted() > 0);
  EQUAL(EVENTS, rows() + counted());
  EQUAL(0, lost());
  check_history(&it);
  remove_history(&it);
}

static void J51_callsAreDropped(void) {
  begin(CBR_OVERFLOW_DROP, 0, 0);
  call_it(NULL);
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(CBR_OK, cbr_registry_statistics(registry, &statistics));
  int64_t dropped = (int64_t)statistics.events_lost;
  go_on_and_close();
  CHECK(dropped > 0);
  EQUAL(dropped, lost());
  EQUAL(EVENTS, rows() + lost());
  EQUAL(0, counted());
  expect_no_rows(&it, "SELECT * FROM loss WHERE cause <> 6");
  expect_no_rows(&it, "SELECT * FROM violations");
  /* What is missing at the token is what was lost. */
  EQUAL(dropped, number_in(&it, "SELECT difference FROM conservation "
                                "WHERE token <> 'total'"));
  remove_history(&it);
}

static int64_t notes_refused(void) {
  int64_t refused = 0;
  for (int each = 0; each < EVENTS; each++) {
    cbr_status status = cbr_audit_note(registry, token, "a note");
    if (status == CBR_E_AUDIT) refused++;
    else EXPECT(CBR_OK, status);
  }
  return refused;
}

static void notes_are_lost(uint32_t policy, const char *query) {
  begin(0, policy, 1);
  int64_t refused = notes_refused();
  go_on_and_close();
  CHECK(refused > 0);
  EQUAL(refused, lost());
  EQUAL(EVENTS + 1 - refused, number_in(&it, "SELECT count(*) FROM note"));
  expect_no_rows(&it, query);
  check_history(&it);
  remove_history(&it);
}

static void J53_eventsThatHaveWaitedAreLost(void) {
  notes_are_lost(0, "SELECT * FROM loss WHERE cause <> 1");
}

static void J53_eventsAreDropped(void) {
  notes_are_lost(CBR_OVERFLOW_DROP, "SELECT * FROM loss WHERE cause <> 6");
}

/* ---------------------------------------------------------- Aborting -- */

static void overflow_and_abort(const char *what) {
  signal(SIGABRT, SIG_DFL); /* sanitizers have handlers of their own */
  if (strcmp(what, "calls") == 0) {
    begin(CBR_OVERFLOW_ABORT, 0, 0);
    call_it(NULL);
  } else {
    begin(0, CBR_OVERFLOW_ABORT, 0);
    (void)notes_refused();
  }
}

static void expect_abort(const char *what) {
  char *arguments[] = {"overload", (char *)what, NULL};
  pid_t child = -1;
  int status = 0;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
  EQUAL(0, posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments,
                       environ));
  posix_spawn_file_actions_destroy(&actions);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void A5_aProgramMayPreferToEnd(void) {
  expect_abort("calls");
  expect_abort("notes");
}

int main(int count, char **arguments) {
  if (count > 1) {
    overflow_and_abort(arguments[1]);
    return 1;
  }
  TEST(A5_callsAreCounted);
  TEST(J24_memoryDoesNotGrow);
  TEST(A5_callsWaitForRoom);
  TEST(A5_callsThatHaveWaitedAreCounted);
  TEST(J51_callsAreDropped);
  TEST(J53_eventsThatHaveWaitedAreLost);
  TEST(J53_eventsAreDropped);
  TEST(A5_aProgramMayPreferToEnd);
  return finish();
}

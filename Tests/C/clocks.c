/* SPDX-License-Identifier: Apache-2.0
 *
 * The wall clock is set by an hour while a history is written (I5, J57): what
 * is in it does not change, and a row says so.
 *
 * This program's clock_gettime takes the place of the system's in the library,
 * too.
 */
#include "history.h"
#include "subject.h"

static _Atomic int64_t wall_clock_is_set_by; /* seconds */

int clock_gettime(clockid_t clock, struct timespec *out) {
  int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME) out->tv_sec += wall_clock_is_set_by;
  return result;
}

static void nothing(void *context) { (void)context; }

static void call_it(cbr_token token) {
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_OK, cbr_leave(&call));
}

/* Calls until the history has noticed how often the clock was set. */
static int await_steps(cbr_registry registry, cbr_token token,
                       const history *it, int steps) {
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  int calls = 0;
  while (number_in(it, "SELECT count(*) FROM clock_sync "
                       "WHERE step_ns <> 0") < steps) {
    call_it(token);
    calls++;
    EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                   NULL));
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_("a step", "is never noticed");
  }
  return calls;
}

static void I5_stepsOfTheWallClockChangeNothing(void) {
  history it;
  cbr_token token = CBR_NONE;
  cbr_registry registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, CBR_REGISTER(registry, "called", nothing, NULL, NULL,
                              CBR_NONE, &token));
  call_it(token);
  int calls = 1;
  wall_clock_is_set_by = 3600;
  calls += await_steps(registry, token, &it, 1);
  wall_clock_is_set_by = 0;
  calls += await_steps(registry, token, &it, 2);
  wall_clock_is_set_by = -3600;
  calls += await_steps(registry, token, &it, 3);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  close_registry(registry);
  wall_clock_is_set_by = 0;
  EQUAL(calls, number_in(&it, "SELECT count(*) FROM call"));
  EQUAL(1, number_in(&it, "SELECT abs(step_ns - 3600000000000) < 1000000000 "
                          "FROM clock_sync WHERE step_ns <> 0 LIMIT 1"));
  EQUAL(3, number_in(&it, "SELECT value FROM health "
                          "WHERE name = 'steps of the wall clock'"));
  /* In order, each shorter than a minute, all within one. */
  expect_no_rows(&it, "SELECT * FROM (SELECT time, lag(time) OVER "
                      "(ORDER BY sequence) AS before FROM history "
                      "WHERE event = 'call') WHERE time < before");
  expect_no_rows(&it, "SELECT * FROM call WHERE argument > 60000000000");
  EQUAL(1, number_in(&it, "SELECT max(life_ns) < 60000000000 "
                          "FROM token_life"));
  EQUAL(1, number_in(&it, "SELECT julianday(max(time)) - "
                          "julianday(min(time)) < 1.0 / 1440 FROM history"));
  expect_no_rows(&it, "SELECT * FROM purge");
  check_history(&it);
  remove_history(&it);
}

/* J58: a note says between which times it was made. CBR_SOAK_SECONDS asks for
 * more than a second. */
static void J58_timesAreThoseOfTheMonotonicClock(void) {
  history it;
  const char *soak = getenv("CBR_SOAK_SECONDS");
  int rounds = (soak ? atoi(soak) : 1) * 100;
  cbr_registry registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  for (int round = 0; round < rounds; round++) {
    struct timespec before, hundredth = {0, 10000000};
    char text[32];
    clock_gettime(CLOCK_MONOTONIC, &before);
    snprintf(text, sizeof text, "%lld", (long long)before.tv_sec * 1000000000 +
                                            before.tv_nsec);
    EXPECT(CBR_OK, cbr_audit_note(registry, CBR_NONE, text));
    nanosleep(&hundredth, NULL);
  }
  close_registry(registry);
  /* Not before the text was made, but for a millisecond; and, as nobody knows
   * for how long a thread was held up, mostly not much after it. */
  const char *const off = "SELECT e.time_ns - n.text FROM note n "
                          "JOIN control_event e USING (sequence) ";
  char query[256];
  EQUAL(rounds, number_in(&it, "SELECT count(*) FROM note"));
  snprintf(query, sizeof query, "%s WHERE e.time_ns < n.text - 1000000", off);
  expect_no_rows(&it, query);
  snprintf(query, sizeof query,
           "%s ORDER BY 1 LIMIT 1 OFFSET (SELECT count(*) / 2 FROM note)",
           off);
  CHECK(number_in(&it, query) < 1000000);
  check_history(&it);
  remove_history(&it);
}

int main(void) {
  TEST(I5_stepsOfTheWallClockChangeNothing);
  TEST(J58_timesAreThoseOfTheMonotonicClock);
  return finish();
}

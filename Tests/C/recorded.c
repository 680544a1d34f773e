/* SPDX-License-Identifier: Apache-2.0
 *
 * What the history says of operations that met (A1, A2): registrations before
 * what follows from them, ends after the last call that could begin, each
 * handle once and to its end, and all of it there when close returns.
 */
#include "history.h"
#include "subject.h"

#include <sys/wait.h>

static cbr_registry registry;
static history kept;

static void open_kept(uint32_t level) {
  registry = open_with_history(&kept, "recorded", level);
}

static void close_kept(void) { close_with_history(registry, &kept); }

static void flush(void) {
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
}

typedef struct registering {
  life life;
  cbr_owner owner;
  cbr_token token;
  cbr_status status;
} registering;

static void register_it(void *argument) {
  registering *it = argument;
  it->status = subject_register(registry, &it->life, it->owner, &it->token);
}

static void own_it(void *argument) {
  registering *it = argument;
  it->status = cbr_owner_create(registry, "owner", &it->owner);
}

/* A token is called and ended by others before cbr_register has returned, and
 * all of that is written before its registration is. */
static void A1_endedBeforeItsRegistrationIsRecorded(void) {
  open_kept(CBR_LEVEL_CALLS);
  registering it = {.owner = add_owner(registry, "owner")};
  worker registrar;
  gate published = GATE(REGISTER_PUBLISHED, CBR_NONE, &registrar);
  close_gate(&published);
  start(&registrar, "registrar", register_it, &it);
  await_gate(&published);
  EXPECT(CBR_OK, subject_visit(it.token, &it.life));
  EXPECT(CBR_PENDING, cbr_invalidate(it.owner, CBR_REASON_ENDED));
  EXPECT(CBR_E_STALE, subject_visit(it.token, &it.life));
  flush();
  open_gate(&published);
  join(&registrar);
  EXPECT(CBR_OK, it.status);
  EQUAL(1, it.life.destroyed);
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(it.owner, CBR_REASON_ENDED, CBR_FOREVER));
  flush();
  check_history(&kept);
  close_kept();
}

static void A1_ownerEndedBeforeItsRegistrationIsRecorded(void) {
  open_kept(CBR_LEVEL_LIFECYCLE);
  registering it = {.status = CBR_E_USER};
  worker registrar;
  gate published = GATE(REGISTER_PUBLISHED, CBR_NONE, &registrar);
  close_gate(&published);
  start(&registrar, "registrar", own_it, &it);
  await_gate(&published);
  EXPECT(CBR_PENDING, cbr_invalidate(it.owner, CBR_REASON_ENDED));
  flush();
  open_gate(&published);
  join(&registrar);
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(it.owner, CBR_REASON_ENDED, CBR_FOREVER));
  close_kept();
}

/* The ender is put off before it marks: calls go on beginning. */
static void A2_callsBeginWhileTheEnderWaitsForALock(void) {
  open_kept(CBR_LEVEL_CALLS);
  life life = {0};
  cbr_token token;
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
  registering it = {.owner = CBR_NONE};
  worker registrar, ender;
  gate allocated = GATE(REGISTER_ALLOCATED, CBR_NONE, &registrar);
  close_gate(&allocated);
  start(&registrar, "registrar", register_it, &it); /* has the lock */
  await_gate(&allocated);
  ending ending = ENDING(token);
  start(&ender, "ender", end_it, &ending);
  CHECK(!run_far(&ender));
  for (int each = 0; each < 100; each++)
    EXPECT(CBR_OK, subject_visit(token, &life));
  open_gate(&allocated);
  join(&registrar);
  join(&ender);
  EXPECT(CBR_OK, ending.status);
  EXPECT(CBR_OK, cbr_invalidate(it.token, CBR_REASON_ENDED));
  flush();
  EQUAL(100, number_in(&kept, "SELECT count(*) FROM call"));
  close_kept();
}

/* What the history knows of is followed to its end when it is switched off;
 * what it does not know is not told of. */
static void A1_switchedOffBeforeItsEnd(void) {
  open_kept(CBR_LEVEL_CALLS);
  life lives[3] = {{0}, {0}, {0}};
  cbr_token tokens[3];
  for (int each = 0; each < 2; each++)
    EXPECT(CBR_OK, subject_register(registry, &lives[each], CBR_NONE,
                                    &tokens[each]));
  EXPECT(CBR_OK, cbr_audit_level(tokens[0], CBR_LEVEL_OFF));
  EXPECT(CBR_OK, cbr_audit_level(registry, CBR_LEVEL_OFF));
  EXPECT(CBR_OK,
         subject_register(registry, &lives[2], CBR_NONE, &tokens[2]));
  for (int each = 0; each < 3; each++) {
    EXPECT(CBR_OK, subject_visit(tokens[each], &lives[each]));
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  }
  flush();
  EQUAL(2, number_in(&kept, "SELECT count(*) FROM token_life "
                            "WHERE kind = 'token' AND state = 'settled'"));
  EQUAL(2, number_in(&kept, "SELECT count(*) FROM token_life "
                            "WHERE kind = 'token'"));
  close_kept();
}

/* Threads switch one unknown token on at once, while it is ended. */
static void switch_on(void *argument) {
  ending *it = argument;
  for (int each = 0; each < 4; each++)
    it->status =
        cbr_audit_level(it->handle, each % 2 ? CBR_LEVEL_LIFECYCLE
                                             : CBR_LEVEL_CALLS);
}

static void A1_switchedOnByTwoAtOnce(void) {
  open_kept(CBR_LEVEL_OFF);
  for (int round = 0; round < TIMES(200, 60); round++) {
    life life = {0};
    cbr_token token;
    EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
    ending switches[2] = {ENDING(token), ENDING(token)};
    worker workers[2];
    for (int each = 0; each < 2; each++)
      start(&workers[each], "switching", switch_on, &switches[each]);
    if (round % 2) run_far(&workers[0]);
    cbr_status status = subject_visit(token, &life);
    EXPECT(CBR_OK, status);
    status = cbr_invalidate(token, CBR_REASON_ENDED);
    CHECK(status == CBR_OK || status == CBR_PENDING);
    for (int each = 0; each < 2; each++) {
      join(&workers[each]);
      CHECK(switches[each].status == CBR_OK ||
            switches[each].status == CBR_E_STALE);
    }
    EQUAL(1, life.destroyed);
  }
  close_kept();
}

/* Another program that has opened the history. */
static void tell(sqlite3 *other, const char *what) {
  char *problem = NULL;
  EQUAL(SQLITE_OK, sqlite3_exec(other, what, NULL, NULL, &problem));
  if (problem) fprintf(stderr, "%s: %s\n", what, problem);
  sqlite3_free(problem);
}

static void visit_often(cbr_token token, life *life) {
  for (int each = 0; each < 10; each++)
    EXPECT(CBR_OK, subject_visit(token, life));
}

/* While another program is writing, a flush that does not wait says so; then
 * everything is written. */
static void J37_anotherProgramIsWriting(void) {
  open_kept(CBR_LEVEL_CALLS);
  life life = {0};
  cbr_token token;
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
  flush();
  sqlite3 *other = look_into_(&kept);
  uint64_t achieved = 0;
  tell(other, "BEGIN IMMEDIATE");
  visit_often(token, &life);
  for (uint32_t level = CBR_FLUSH_DATABASE; level <= CBR_FLUSH_DISK; level++) {
    EXPECT(CBR_E_TIMEOUT, cbr_audit_flush(registry, level, 0, &achieved));
    CHECK(achieved < statistics_of(registry).events_emitted);
  }
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_RING, 0, &achieved));
  EQUAL(0, number_in(&kept, "SELECT count(*) FROM call"));
  tell(other, "COMMIT");
  flush();
  EQUAL(10, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(CBR_HISTORY_GOOD, statistics_of(registry).history_state);
  sqlite3_close(other);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  close_kept();
}

/* What cannot be written for another reason than a lock fails at once, and is
 * written when that is mended. */
static void J37_anotherProgramTakesATableAway(void) {
  open_kept(CBR_LEVEL_CALLS);
  life lives[2] = {{0}, {0}};
  cbr_token tokens[2];
  EXPECT(CBR_OK, subject_register(registry, &lives[0], CBR_NONE, &tokens[0]));
  flush();
  sqlite3 *other = look_into_(&kept);
  tell(other, "PRAGMA legacy_alter_table = ON");
  tell(other, "ALTER TABLE token RENAME TO elsewhere");
  EXPECT(CBR_OK, subject_register(registry, &lives[1], CBR_NONE, &tokens[1]));
  visit_often(tokens[1], &lives[1]);
  EXPECT(CBR_E_AUDIT, cbr_audit_flush(registry, CBR_FLUSH_DATABASE,
                                      CBR_FOREVER, NULL));
  EQUAL(CBR_HISTORY_DEGRADED, statistics_of(registry).history_state);
  visit_often(tokens[0], &lives[0]);
  tell(other, "ALTER TABLE elsewhere RENAME TO token");
  sqlite3_close(other);
  while (cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL) ==
         CBR_E_AUDIT)
    sched_yield();
  EQUAL(CBR_HISTORY_GOOD, statistics_of(registry).history_state);
  EQUAL(0, statistics_of(registry).events_lost);
  for (int each = 0; each < 2; each++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  close_registry(registry);
  EQUAL(20, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM fault"));
  expect_no_rows(&kept, "SELECT * FROM conservation WHERE difference <> 0");
  expect_no_rows(&kept, "SELECT * FROM violations");
  remove_history(&kept);
}

/* A fork is an event of the thread that forked, in the parent's history. */
static void H1_aForkIsRecorded(void) {
  open_kept(CBR_LEVEL_LIFECYCLE);
  pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  flush();
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM history "
                            "WHERE event = 'forked' AND thread IS NOT NULL"));
  close_kept();
}

/* Another thread is the last to leave, and finishes the registry: close
 * returns when everything is in the file. */
static void G14_closeReturnsWhenAllIsWritten(void) {
  for (int round = 0; round < TIMES(15, 8); round++) {
    open_kept(CBR_LEVEL_CALLS);
    life life = {0};
    cbr_token token;
    EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
    visit call = VISIT(token, &life);
    ending ending = ENDING(registry);
    worker caller, closer;
    gate inside;
    start_inside(&caller, &call, &inside);
    start(&closer, "closer", close_it, &ending);
    CHECK(!run_far(&closer));
    open_gate(&inside);
    join(&closer);
    EXPECT(CBR_OK, ending.status);
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                              "WHERE ended = 'closed'"));
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM call"));
    expect_no_rows(&kept, "SELECT * FROM live");
    check_history(&kept);
    join(&caller);
    remove_history(&kept);
  }
}

int main(void) {
  TEST(A1_endedBeforeItsRegistrationIsRecorded);
  TEST(A1_ownerEndedBeforeItsRegistrationIsRecorded);
  TEST(A2_callsBeginWhileTheEnderWaitsForALock);
  TEST(A1_switchedOffBeforeItsEnd);
  TEST(A1_switchedOnByTwoAtOnce);
  TEST(J37_anotherProgramIsWriting);
  TEST(J37_anotherProgramTakesATableAway);
  TEST(H1_aForkIsRecorded);
  TEST(G14_closeReturnsWhenAllIsWritten);
  return finish();
}

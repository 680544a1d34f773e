/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting (G9, G14, G15): it covers what is running and nothing else, and it
 * never hangs, whatever is parked, pending or left behind meanwhile.
 */
#include "history.h"
#include "subject.h"

static cbr_registry registry;
static history kept;

static void nothing(void *context) { (void)context; }

/* A token without destroy: ending it is only a mark (G14). */
static cbr_token add_plain(cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "plain", nothing, NULL, NULL, owner,
                              &token));
  return token;
}

static cbr_token add_subject(life *life, cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, subject_register(registry, life, owner, &token));
  return token;
}

/* ------------------------------------------------------- what it covers -- */

static void A1_waitCoversCallInFlight(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  ending ending = ENDING(token);
  worker caller, waiter;
  gate inside;
  start_inside(&caller, &call, &inside);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  EQUAL(0, life.destroyed);
  EXPECT(CBR_E_STALE, subject_visit(token, &life));
  open_gate(&inside);
  join(&waiter);
  EXPECT(CBR_OK, ending.status);
  EQUAL(1, life.calls);
  EQUAL(1, life.destroyed);
  join(&caller);
  EXPECT(CBR_OK, call.status);
  EXPECT(CBR_E_STALE, subject_visit(token, &life));
  EQUAL(1, life.calls);
}

/* The owner's memory goes as soon as the wait has returned. */
static void A14_ownerIsFreedAfterTheWait(void) {
  struct node { life life; } *node = calloc(1, sizeof *node);
  cbr_owner owner = CBR_NONE;
  EXPECT(CBR_OK, cbr_owner_for_object(registry, node, "node", &owner));
  cbr_token token = add_subject(&node->life, owner);
  visit call = VISIT(token, &node->life);
  ending ending = ENDING(owner);
  worker caller, waiter;
  gate inside;
  start_inside(&caller, &call, &inside);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  open_gate(&inside);
  join(&waiter);
  EXPECT(CBR_OK, ending.status);
  EQUAL(1, node->life.destroyed);
  free(node);
  join(&caller);
}

static void A3_waiterIsWokenWhileAnotherCallRuns(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit calls[2] = {VISIT(token, &life), VISIT(token, &life)};
  worker callers[2], waiter;
  gate inside[2];
  for (int each = 0; each < 2; each++)
    start_inside(&callers[each], &calls[each], &inside[each]);
  ending ending = ENDING(token);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  gate woken = GATE(WAIT_WOKEN, token, &waiter);
  close_gate(&woken);
  open_gate(&inside[0]);
  join(&callers[0]);
  await_gate(&woken);
  open_gate(&woken);
  CHECK(!run_far(&waiter));
  EQUAL(0, life.destroyed);
  open_gate(&inside[1]);
  join(&callers[1]);
  join(&waiter);
  EXPECT(CBR_OK, ending.status);
  EQUAL(1, life.destroyed);
}

/* B3, B19: what is held up is named. A timeout of 0 asks. */
static void B3_timeoutNamesTheCall(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  worker caller;
  gate inside;
  start_inside(&caller, &call, &inside);
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  CHECK(strstr(cbr_last_error(), "\"subject\"") != NULL);
  CHECK(strstr(cbr_last_error(), "on thread") != NULL);
  EXPECT(CBR_E_TIMEOUT,
         cbr_invalidate_wait(token, CBR_REASON_ENDED, 1000000));
  open_gate(&inside);
  join(&caller);
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  EQUAL(1, life.destroyed);
}

/* A waiter waits for a lease, too: destroy runs where it ends. */
static void G14_waitCoversALease(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  cbr_lease_handle lease;
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  ending ending = ENDING(token);
  worker waiter;
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  EQUAL(0, life.destroyed);
  EXPECT(CBR_OK, cbr_lease_end(lease));
  EQUAL(1, life.destroyed);
  join(&waiter);
  EXPECT(CBR_OK, ending.status);
}

/* ---------------------------------------------------------------- parked -- */

static void G14_ownerWithParkedToken(void) {
  void (*const ways[])(void *) = {end_it, wait_for};
  for (int each = 0; each < 2; each++) {
    cbr_owner owner = add_owner(registry, "owner");
    EXPECT(CBR_OK, cbr_invalidate(add_plain(owner), CBR_REASON_ENDED));
    ending ending = ENDING(owner);
    worker ender;
    start(&ender, "ender", ways[each], &ending);
    join(&ender);
    EXPECT(CBR_OK, ending.status);
  }
}

/* A token is marked, but not parked yet, when its waiter looks. */
static void G15_parkedAfterTheWaitBegan(void) {
  for (int owned = 0; owned < 2; owned++) {
    cbr_owner owner = owned ? add_owner(registry, "owner") : CBR_NONE;
    ending first = ENDING(add_plain(owner));
    ending second = ENDING(owned ? owner : first.handle);
    worker ender, waiter;
    gate marked = GATE(END_MARKED, first.handle, &ender);
    close_gate(&marked);
    start(&ender, "ender", end_it, &first);
    await_gate(&marked);
    start(&waiter, "waiter", wait_for, &second);
    CHECK(!run_far(&waiter));
    open_gate(&marked);
    join(&ender);
    EXPECT(CBR_OK, first.status);
    join(&waiter);
    EXPECT(owned ? CBR_OK : CBR_ALREADY, second.status);
  }
}

/* More are parked than one fence is kept waiting for; one has a call. */
static void G14_waitForOneOfManyParked(void) {
  enum { MANY = 700 };
  static cbr_token tokens[MANY];
  life life = {0};
  subject context = {subject_alive, &life};
  for (int each = 0; each < MANY; each++)
    EXPECT(CBR_OK, CBR_REGISTER(registry, "parked", subject_call, &context,
                                NULL, CBR_NONE, &tokens[each]));
  cbr_token busy = tokens[MANY - 5];
  visit call = VISIT(busy, &life);
  worker caller, waiter;
  gate inside;
  start_inside(&caller, &call, &inside);
  for (int each = 0; each < MANY; each++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  EQUAL(MANY % 512, statistics_of(registry).unsettled);
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(tokens[MANY - 4], CBR_REASON_ENDED,
                                          CBR_FOREVER));
  EQUAL(0, statistics_of(registry).unsettled);
  ending ending = ENDING(busy);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  open_gate(&inside);
  join(&caller);
  join(&waiter);
  EXPECT(CBR_ALREADY, ending.status);
  cbr_call dead;
  EXPECT(CBR_E_STALE, cbr_enter(busy, &dead));
}

/* --------------------------------------------- inside what is waited for -- */

/* Waits inside a call of its own. */
static void wait_in_call(void *argument) {
  ending *it = argument;
  note_ending_(it, cbr_invalidate_wait(it->handle, CBR_REASON_ENDED,
                                       CBR_FOREVER));
}

static void B1_waitInOwnCall(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  ending ending = ENDING(token);
  life.on_call = wait_in_call;
  life.argument = &ending;
  EXPECT(CBR_OK, subject_visit(token, &life));
  EXPECT(CBR_DEFERRED, ending.status);
  EQUAL(1, life.destroyed);
  EXPECT(CBR_E_STALE, subject_visit(token, &life));
}

/* Another thread is inside as well: that one is waited for. */
static void B4_waitInOwnCallCoversOthers(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit calls[2] = {VISIT(token, &life), VISIT(token, &life)};
  ending ending = ENDING(token);
  worker caller, waiter;
  gate inside;
  start_inside(&caller, &calls[0], &inside);
  life.argument = &ending;
  life.on_call = wait_in_call;
  start(&waiter, "waiter", visit_it, &calls[1]);
  CHECK(!run_far(&waiter));
  EXPECT(CBR_E_USER, ending.status);
  open_gate(&inside);
  join(&caller);
  join(&waiter);
  EXPECT(CBR_DEFERRED, ending.status);
  EXPECT(CBR_OK, calls[1].status);
  EQUAL(1, life.destroyed);
}

static void B15_oneShotWaitsForItself(void) {
  life life = {0};
  cbr_token token;
  EXPECT(CBR_OK, subject_register_flags(registry, &life, CBR_NONE,
                                        CBR_ONE_SHOT, &token));
  ending ending = ENDING(token);
  life.on_call = wait_in_call;
  life.argument = &ending;
  EXPECT(CBR_OK, subject_visit(token, &life));
  EXPECT(CBR_DEFERRED, ending.status);
  EQUAL(1, life.destroyed);
  EXPECT(CBR_E_CONSUMED, subject_visit(token, &life));
}

/* A visitor on another thread, which pins the registry only, goes. */
static cbr_disposition stop_in_visitor(void *context, const cbr_item *item) {
  (void)item;
  reach(IN_VISITOR, *(cbr_handle *)context);
  return CBR_STOP;
}

static void look_at(void *argument) {
  EXPECT(CBR_STOPPED, cbr_registry_each_live(*(cbr_registry *)argument,
                                             stop_in_visitor, argument));
}

static void close_in_call(void *argument) {
  ending *it = argument;
  note_ending_(it, cbr_registry_close(it->handle, CBR_FOREVER));
}

static void G15_visitorEndsWhileACloserWaits(void) {
  cbr_registry closing = open_registry("closing", test_level());
  ending ending = ENDING(closing);
  life life = {.on_call = close_in_call, .argument = &ending};
  cbr_token token;
  EXPECT(CBR_OK, subject_register(closing, &life, CBR_NONE, &token));
  visit call = VISIT(token, &life);
  worker visitor, closer;
  gate visiting = GATE(IN_VISITOR, closing, &visitor);
  close_gate(&visiting);
  start(&visitor, "visitor", look_at, &closing);
  await_gate(&visiting);
  start(&closer, "closer", visit_it, &call);
  CHECK(!run_far(&closer));
  open_gate(&visiting);
  join(&visitor);
  join(&closer);
  EXPECT(CBR_DEFERRED, ending.status);
  EQUAL(1, life.destroyed);
  EXPECT(CBR_E_CLOSED, cbr_invalidate(token, CBR_REASON_ENDED));
}

/* A waiter that is cancelled waits to its end, and leaves no lock behind. */
static void G15_cancelledWaiter(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  ending endings[2] = {ENDING(token), ENDING(token)};
  worker caller, waiters[2];
  gate inside;
  start_inside(&caller, &call, &inside);
  for (int each = 0; each < 2; each++) {
    start(&waiters[each], "waiter", wait_for, &endings[each]);
    CHECK(!run_far(&waiters[each]));
  }
  EQUAL(0, pthread_cancel(waiters[0].thread));
  CHECK(!run_far(&waiters[0]));
  open_gate(&inside);
  join(&caller);
  for (int each = 0; each < 2; each++) join(&waiters[each]);
  EXPECT(CBR_OK, endings[0].status);
  EXPECT(CBR_ALREADY, endings[1].status);
  EQUAL(1, life.destroyed);
}

/* DEFERRED means that nothing else runs: another thread has claimed what
 * belongs to the same owner, and has not begun its destroy. */
static void G15_deferredAfterWhatOthersHaveClaimed(void) {
  cbr_owner owner = add_owner(registry, "owner");
  life lives[2] = {{0}, {0}};
  cbr_token leased = add_subject(&lives[0], owner);
  cbr_token called = add_subject(&lives[1], owner);
  ending first = ENDING(owner), second = ENDING(owner);
  lives[1].on_call = wait_in_call;
  lives[1].argument = &second;
  visit visits[2] = {VISIT(leased, &lives[0]), VISIT(called, &lives[1])};
  worker caller, waiter, ender;
  gate inside, claimed = GATE(TRY_CLAIMED, leased, &caller);
  start_inside(&caller, &visits[0], &inside);
  gate entered = GATE(ENTER_CHECKED, called, &waiter);
  close_gate(&entered);
  start(&waiter, "waiter", visit_it, &visits[1]);
  await_gate(&entered);
  start(&ender, "ender", end_it, &first);
  join(&ender);
  EXPECT(CBR_PENDING, first.status);
  close_gate(&claimed);
  open_gate(&inside);
  await_gate(&claimed);
  open_gate(&entered);
  CHECK(!run_far(&waiter));
  EXPECT(CBR_E_USER, second.status);
  open_gate(&claimed);
  join(&caller);
  join(&waiter);
  EXPECT(CBR_DEFERRED, second.status);
  EQUAL(1, lives[0].destroyed);
  EQUAL(1, lives[1].destroyed);
}

/* A waiter inside what belongs to the owner has looked while another thread
 * had only marked it: it is woken when that thread has gone on, though no call
 * is left and nothing is destroyed. */
static void G15_wokenWhenWhatWasMarkedIsDrained(void) {
  cbr_owner owner = add_owner(registry, "owner");
  life life = {0};
  cbr_token token = add_subject(&life, owner);
  ending first = ENDING(owner), second = ENDING(owner);
  life.on_call = wait_in_call;
  life.argument = &second;
  visit call = VISIT(token, &life);
  worker ender, waiter;
  gate entered = GATE(ENTER_CHECKED, token, &waiter);
  close_gate(&entered);
  start(&waiter, "waiter", visit_it, &call);
  await_gate(&entered);
  gate marked = GATE(END_MARKED, owner, &ender);
  gate deferred = GATE(IN_CALLBACK, (uintptr_t)&life, &waiter);
  close_gate(&marked);
  close_gate(&deferred);
  start(&ender, "ender", end_it, &first);
  await_gate(&marked);
  open_gate(&entered);
  CHECK(!run_far(&waiter));
  EXPECT(CBR_E_USER, second.status);
  open_gate(&marked);
  join(&ender);
  EXPECT(CBR_PENDING, first.status);
  await_gate(&deferred);
  EXPECT(CBR_DEFERRED, second.status);
  open_gate(&deferred);
  join(&waiter);
  EQUAL(1, life.destroyed);
}

static void A1_theHistorySaysTheSame(void) {
  close_with_history(registry, &kept);
}

int main(void) {
  registry = open_with_history(&kept, "waiting", test_level());
  TEST(A1_waitCoversCallInFlight);
  TEST(A14_ownerIsFreedAfterTheWait);
  TEST(A3_waiterIsWokenWhileAnotherCallRuns);
  TEST(B3_timeoutNamesTheCall);
  TEST(G14_waitCoversALease);
  TEST(G14_ownerWithParkedToken);
  TEST(G15_parkedAfterTheWaitBegan);
  TEST(G14_waitForOneOfManyParked);
  TEST(B1_waitInOwnCall);
  TEST(B4_waitInOwnCallCoversOthers);
  TEST(B15_oneShotWaitsForItself);
  TEST(G15_visitorEndsWhileACloserWaits);
  TEST(G15_cancelledWaiter);
  TEST(G15_deferredAfterWhatOthersHaveClaimed);
  TEST(G15_wokenWhenWhatWasMarkedIsDrained);
  TEST(A1_theHistorySaysTheSame);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls against endings, one interleaving each (G7, G8, G9, G27): between
 * check and call, in and out of callbacks, one-shots. pairs.c goes through
 * all pairs of operations; these are the scenarios by name.
 */
#include "history.h"
#include "subject.h"

static cbr_registry registry;
static history kept;

static cbr_token add_subject(life *life, cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, subject_register(registry, life, owner, &token));
  return token;
}

static cbr_token add_one_shot(life *life) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, subject_register_flags(registry, life, CBR_NONE,
                                        CBR_ONE_SHOT, &token));
  return token;
}

/* --------------------------------------------------- between check and call */

/* The reader has read the token and was put off before the check: what ends
 * meanwhile has ended. */
static void A18_endedBeforeTheCheck(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  worker reader, waiter;
  gate pinned = GATE(ENTER_PINNED, token, &reader);
  close_gate(&pinned);
  start(&reader, "reader", visit_it, &call);
  await_gate(&pinned);
  ending ending = ENDING(token);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter)); /* the pin may be a call */
  open_gate(&pinned);
  join(&reader);
  join(&waiter);
  EXPECT(CBR_E_STALE, call.status);
  EXPECT(CBR_OK, ending.status);
  EQUAL(0, life.calls);
  EQUAL(1, life.destroyed);
}

/* The check said live: then it is, until the reader leaves. */
static void A18_endedAfterTheCheck(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  worker reader, waiter;
  gate checked = GATE(ENTER_CHECKED, token, &reader);
  close_gate(&checked);
  start(&reader, "reader", visit_it, &call);
  await_gate(&checked);
  ending ending = ENDING(token);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  EQUAL(0, life.destroyed);
  open_gate(&checked);
  join(&reader);
  join(&waiter);
  EXPECT(CBR_OK, call.status);
  EXPECT(CBR_OK, ending.status);
  EQUAL(1, life.calls);
  EQUAL(1, life.destroyed);
}

static void other_function(void *context) { *(int *)context += 1; }

/* The slot is another's, with another function and context, when the reader
 * goes on: it gets neither. */
static void A4_slotIsReusedBetweenPinAndCheck(void) {
  life life = {0};
  int other = 0;
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  worker reader;
  gate pinned = GATE(ENTER_PINNED, token, &reader);
  close_gate(&pinned);
  start(&reader, "reader", visit_it, &call);
  await_gate(&pinned);
  EXPECT(CBR_PENDING, cbr_invalidate(token, CBR_REASON_ENDED));
  /* The pin, which may be a call, keeps the slot. */
  cbr_token taken[300];
  for (int each = 0; each < 300; each++) {
    EXPECT(CBR_OK, CBR_REGISTER(registry, "other", other_function, &other,
                                NULL, CBR_NONE, &taken[each]));
    CHECK(slot_of(taken[each]) != slot_of(token));
  }
  open_gate(&pinned);
  join(&reader);
  EXPECT(CBR_E_STALE, call.status);
  EQUAL(1, life.destroyed);
  EQUAL(0, life.calls);
  for (int each = 0; each < 300; each++)
    EXPECT(CBR_OK, cbr_invalidate(taken[each], CBR_REASON_ENDED));
}

/* A stale token is used while its slot is another's and is called: the short
 * pin of the old one holds up nobody, and is nobody's call. */
static void G16_staleUseDuringANewerCall(void) {
  life old = {0}, new = {0};
  cbr_token stale = add_subject(&old, CBR_NONE), token;
  EXPECT(CBR_OK, cbr_invalidate(stale, CBR_REASON_ENDED));
  for (;;) {
    token = add_subject(&new, CBR_NONE);
    if (slot_of(token) == slot_of(stale)) break;
    EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
    atomic_store(&new.destroyed, 0);
  }
  visit call = VISIT(stale, &old);
  worker reader;
  gate pinned = GATE(ENTER_PINNED, stale, &reader);
  close_gate(&pinned);
  start(&reader, "reader", visit_it, &call);
  await_gate(&pinned);
  EXPECT(CBR_OK, subject_visit(token, &new));
  EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  EQUAL(1, new.destroyed);
  open_gate(&pinned);
  join(&reader);
  EXPECT(CBR_E_STALE, call.status);
  EQUAL(0, old.calls);
  EQUAL(1, old.destroyed);
}

/* ------------------------------------------------------- in the callback -- */

static void end_own(void *argument) {
  ending *it = argument;
  end_it(it);
  EXPECT(CBR_DEFERRED, it->status);
}

/* What the callback uses stays until it has returned. */
static void A7_endsItselfAndGoesOn(void) {
  life life = {0};
  ending ending = ENDING(add_subject(&life, CBR_NONE));
  life.on_call = end_own; /* subject_call uses its context afterwards */
  life.argument = &ending;
  EXPECT(CBR_OK, subject_visit(ending.handle, &life));
  EQUAL(1, life.destroyed);
}

/* The replacement of a callback by itself. */
typedef struct replacing {
  cbr_token token, replacement;
  life *life, *next;
} replacing;

static void replace_self(void *argument) {
  replacing *it = argument;
  EXPECT(CBR_DEFERRED, cbr_invalidate(it->token, CBR_REASON_REPLACED));
  it->replacement = add_subject(it->next, CBR_NONE);
  EXPECT(CBR_OK, subject_visit(it->replacement, it->next));
  EXPECT(CBR_E_STALE, subject_visit(it->token, it->life));
  EQUAL(0, it->life->destroyed);
}

static void A6_replacesItself(void) {
  life life = {0}, next = {0};
  replacing it = {add_subject(&life, CBR_NONE), CBR_NONE, &life, &next};
  life.on_call = replace_self;
  life.argument = &it;
  EXPECT(CBR_OK, subject_visit(it.token, &life));
  EQUAL(1, life.destroyed);
  EQUAL(1, life.calls);
  EQUAL(1, next.calls);
  EXPECT(CBR_OK, cbr_invalidate(it.replacement, CBR_REASON_ENDED));
  EQUAL(1, next.destroyed);
}

/* Items for one callback, which ends itself at the third. */
typedef struct drain {
  cbr_token token;
  int calls;
} drain;

static void end_at_third(void *argument) {
  drain *it = argument;
  if (++it->calls == 3)
    EXPECT(CBR_DEFERRED, cbr_invalidate(it->token, CBR_REASON_ENDED));
}

static void A10_endsItselfInTheMiddleOfADrain(void) {
  life life = {0};
  drain it = {add_subject(&life, CBR_NONE), 0};
  life.on_call = end_at_third;
  life.argument = &it;
  int refused = 0;
  for (int item = 0; item < 10; item++)
    refused += subject_visit(it.token, &life) == CBR_E_STALE;
  EQUAL(3, it.calls);
  EQUAL(7, refused);
  EQUAL(1, life.destroyed);
}

/* A callback ends the one whose turn is next, and its memory goes. */
static void A11_endsTheNextOne(void) {
  life lives[3] = {{0}};
  cbr_token tokens[3];
  for (int each = 0; each < 3; each++)
    tokens[each] = add_subject(&lives[each], CBR_NONE);
  ending ending = ENDING(tokens[1]);
  lives[0].on_call = end_it;
  lives[0].argument = &ending;
  EXPECT(CBR_OK, subject_visit(tokens[0], &lives[0]));
  EXPECT(CBR_OK, ending.status);
  EQUAL(1, lives[1].destroyed);
  EXPECT(CBR_E_STALE, subject_visit(tokens[1], &lives[1]));
  EXPECT(CBR_OK, subject_visit(tokens[2], &lives[2]));
  for (int each = 0; each < 3; each += 2)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
}

/* B12: a completion registers what follows while its owner is cancelled. */
typedef struct follow {
  cbr_owner owner;
  cbr_status status;
  life life;
} follow;

static void register_follow_up(void *argument) {
  follow *it = argument;
  cbr_token token;
  reach(BEFORE_ACT, it->owner);
  it->status = subject_register(registry, &it->life, it->owner, &token);
}

static void B12_registersWhileItsOwnerDies(void) {
  follow it = {.owner = add_owner(registry, "owner"), .status = CBR_E_USER};
  life life = {.on_call = register_follow_up, .argument = &it};
  cbr_token token = add_subject(&life, it.owner);
  visit call = VISIT(token, &life);
  ending ending = ENDING(it.owner);
  worker caller, canceller;
  gate before = GATE(BEFORE_ACT, it.owner, &caller);
  close_gate(&before);
  start(&caller, "caller", visit_it, &call);
  await_gate(&before);
  start(&canceller, "canceller", wait_for, &ending);
  CHECK(!run_far(&canceller));
  open_gate(&before);
  join(&caller);
  join(&canceller);
  EXPECT(CBR_E_DYING, it.status);
  EXPECT(CBR_OK, ending.status);
  EQUAL(1, life.destroyed);
  EQUAL(0, it.life.destroyed);
}

/* A12: producers call what belongs to an object while it dies. */
typedef struct observed {
  life lives[8];
  cbr_token tokens[8];
  _Atomic bool is_gone; /* its death has returned */
} observed;

static void produce(void *argument) {
  observed *it = argument;
  for (int each = 0; each < 400; each++) {
    bool was_gone = atomic_load(&it->is_gone);
    cbr_status status = subject_visit(it->tokens[each % 8],
                                      &it->lives[each % 8]);
    CHECK(status == CBR_OK ? !was_gone : status == CBR_E_STALE);
  }
}

static void A12_objectDiesUnderItsProducers(void) {
  for (int round = 0; round < TIMES(150, 40); round++) {
    observed it = {0};
    int *object = malloc(sizeof *object);
    cbr_owner owner = CBR_NONE;
    worker producers[3];
    EXPECT(CBR_OK, cbr_owner_for_object(registry, object, "object", &owner));
    for (int each = 0; each < 8; each++)
      it.tokens[each] = add_subject(&it.lives[each], owner);
    for (int each = 0; each < 3; each++)
      start(&producers[each], "producer", produce, &it);
    if (round % 2) sched_yield();
    cbr_status status = cbr_object_died(registry, object);
    CHECK(status == CBR_OK || status == CBR_PENDING);
    atomic_store(&it.is_gone, true);
    free(object);
    for (int each = 0; each < 3; each++) join(&producers[each]);
    for (int each = 0; each < 8; each++) EQUAL(1, it.lives[each].destroyed);
  }
}

/* ----------------------------------------------------- freeing what when -- */

/* PENDING says that the context is in use; destroy says that it is not. */
static void A16_pendingUntilDestroyHasRun(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  visit call = VISIT(token, &life);
  worker caller;
  gate inside;
  start_inside(&caller, &call, &inside);
  EXPECT(CBR_PENDING, cbr_invalidate(token, CBR_REASON_CANCELLED));
  EQUAL(0, life.destroyed);
  open_gate(&inside);
  join(&caller);
  EQUAL(1, life.destroyed);
}

/* A21: a context that only destroy frees, ended in each of the ways. */
static void A21_destroyAloneFrees(void) {
  for (int way = 0; way < 5; way++) {
    life life = {0};
    cbr_owner owner = CBR_NONE;
    EXPECT(CBR_OK, cbr_owner_for_object(registry, &life, "life", &owner));
    ending ending = ENDING(add_subject(&life, owner));
    if (way == 4) {
      life.on_call = end_it;
      life.argument = &ending;
    }
    EXPECT(CBR_OK, subject_visit(ending.handle, &life));
    if (way == 0) end_it(&ending);
    if (way == 1) wait_for(&ending);
    if (way == 2) EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
    EXPECT(CBR_OK, way == 3 ? cbr_object_died(registry, &life) : CBR_OK);
    EQUAL(1, life.destroyed);
    EXPECT(CBR_OK, cbr_object_died(registry, &life));
  }
}

/* ------------------------------------------------------------- one-shots -- */

/* Another thread comes while the first has consumed it, and is inside. */
static void G27_oneShotOfTwoCallers(void) {
  const int points[] = {ENTER_CHECKED, CONSUMED_MARKED, IN_CALLBACK};
  for (int each = 0; each < 3; each++) {
    life life = {0};
    cbr_token token = add_one_shot(&life);
    visit calls[2] = {VISIT(token, &life), VISIT(token, &life)};
    worker callers[2];
    gate at = GATE(points[each],
                   each == 2 ? (cbr_handle)(uintptr_t)&life : token,
                   &callers[0]);
    close_gate(&at);
    start(&callers[0], "first", visit_it, &calls[0]);
    await_gate(&at);
    start(&callers[1], "second", visit_it, &calls[1]);
    join(&callers[1]);
    open_gate(&at);
    join(&callers[0]);
    /* At its check the first has not consumed it: the second does. */
    EXPECT(each == 0 ? CBR_E_CONSUMED : CBR_OK, calls[0].status);
    EXPECT(each == 0 ? CBR_OK : CBR_E_CONSUMED, calls[1].status);
    EQUAL(1, life.calls);
    EQUAL(1, life.destroyed);
    EXPECT(CBR_E_CONSUMED, subject_visit(token, &life));
    EXPECT(CBR_ALREADY, cbr_invalidate(token, CBR_REASON_ENDED));
  }
}

/* It is ended between the check and the consumption, or after that. */
static void G27_oneShotAgainstEnding(void) {
  for (int consumed = 0; consumed < 2; consumed++) {
    life life = {0};
    cbr_token token = add_one_shot(&life);
    visit call = VISIT(token, &life);
    worker caller;
    gate at = GATE(consumed ? CONSUMED_MARKED : ENTER_CHECKED, token, &caller);
    close_gate(&at);
    start(&caller, "caller", visit_it, &call);
    await_gate(&at);
    EXPECT(consumed ? CBR_ALREADY : CBR_PENDING,
           cbr_invalidate(token, CBR_REASON_ENDED));
    open_gate(&at);
    join(&caller);
    EXPECT(consumed ? CBR_OK : CBR_E_STALE, call.status);
    EQUAL(consumed, life.calls);
    EQUAL(1, life.destroyed);
    EXPECT(consumed ? CBR_E_CONSUMED : CBR_E_STALE,
           subject_visit(token, &life));
  }
}

/* D1, D9: it is called by itself. */
static void call_again(void *argument) {
  visit *it = argument;
  it->status = subject_visit(it->token, it->life);
}

static void D1_oneShotCallsItself(void) {
  life life = {0};
  visit again = VISIT(add_one_shot(&life), &life);
  life.on_call = call_again;
  life.argument = &again;
  EXPECT(CBR_OK, subject_visit(again.token, &life));
  EXPECT(CBR_E_CONSUMED, again.status);
  EQUAL(1, life.calls);
  EQUAL(1, life.destroyed);
}

static void A1_theHistorySaysTheSame(void) {
  close_with_history(registry, &kept);
}

int main(void) {
  registry = open_with_history(&kept, "races", test_level());
  TEST(A18_endedBeforeTheCheck);
  TEST(A18_endedAfterTheCheck);
  TEST(A4_slotIsReusedBetweenPinAndCheck);
  TEST(G16_staleUseDuringANewerCall);
  TEST(A7_endsItselfAndGoesOn);
  TEST(A6_replacesItself);
  TEST(A10_endsItselfInTheMiddleOfADrain);
  TEST(A11_endsTheNextOne);
  TEST(B12_registersWhileItsOwnerDies);
  TEST(A12_objectDiesUnderItsProducers);
  TEST(A16_pendingUntilDestroyHasRun);
  TEST(A21_destroyAloneFrees);
  TEST(G27_oneShotOfTwoCallers);
  TEST(G27_oneShotAgainstEnding);
  TEST(D1_oneShotCallsItself);
  TEST(A1_theHistorySaysTheSame);
  return finish();
}

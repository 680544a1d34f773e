/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases against everything that ends (G7, G14): while one lasts, or is about
 * to be counted, the context stays; the last to go destroys, once.
 */
#include "subject.h"

static cbr_registry registry;

static cbr_token add_subject(life *life, cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, subject_register(registry, life, owner, &token));
  return token;
}

typedef struct leasing {
  cbr_token token;
  cbr_lease_handle lease;
  cbr_status status;
} leasing;

static void take_lease(void *argument) {
  leasing *it = argument;
  it->status = cbr_lease(it->token, &it->lease);
}

static void end_lease(void *argument) {
  leasing *it = argument;
  it->status = cbr_lease_end(it->lease);
}

/* The context of a leased token is there, and is the right one. */
static void expect_held(cbr_lease_handle lease, life *life) {
  cbr_call call;
  EQUAL(0, life->destroyed);
  EXPECT(CBR_OK, cbr_lease_get(lease, &call));
  subject_run(&call);
}

/* The token ends while a lease on it is being taken. */
static void G7_leaseAgainstEnding(void) {
  const int points[] = {ENTER_PINNED,       ENTER_CHECKED,
                        LEASE_ADDED,        REGISTER_ALLOCATED,
                        REGISTER_PUBLISHED, LEAVE_CLEARED, LEAVE_CHECKED};
  for (int each = 0; each < 7; each++) {
    WITHIN("point %d", points[each]);
    life life = {0};
    leasing it = {add_subject(&life, CBR_NONE), CBR_NONE, CBR_E_USER};
    worker leaser, ender;
    gate at = GATE(points[each], CBR_NONE, &leaser);
    close_gate(&at);
    start(&leaser, "leaser", take_lease, &it);
    await_gate(&at);
    ending ending = ENDING(it.token);
    start(&ender, "ender", end_it, &ending);
    run_far(&ender); /* a lock may be held here */
    open_gate(&at);
    join(&leaser);
    join(&ender);
    EXPECT(CBR_PENDING, ending.status);
    if (points[each] == ENTER_PINNED) {
      EXPECT(CBR_E_STALE, it.status);
      EQUAL(CBR_NONE, it.lease);
    } else {
      EXPECT(CBR_OK, it.status);
      expect_held(it.lease, &life);
      EXPECT(CBR_OK, cbr_lease_end(it.lease));
    }
    EQUAL(1, life.destroyed);
  }
}

/* Whoever is about to destroy has seen no pin: then there will be no lease.
 * (Reading the leases before the pins destroys under this one.) */
static void G7_leaseIsCountedWhileItsTakerPins(void) {
  life life = {0};
  leasing it = {add_subject(&life, CBR_NONE), CBR_NONE, CBR_E_USER};
  worker leaser, ender;
  gate checked = GATE(ENTER_CHECKED, it.token, &leaser);
  gate scanned = GATE(TRY_SCANNED, it.token, &ender);
  close_gate(&checked);
  start(&leaser, "leaser", take_lease, &it);
  await_gate(&checked);
  ending ending = ENDING(it.token);
  close_gate(&scanned);
  start(&ender, "ender", end_it, &ending);
  run_far(&ender);
  CHECK(!is_at(&scanned)); /* it sees the pin and goes */
  open_gate(&checked);
  join(&leaser);
  open_gate(&scanned);
  join(&ender);
  expect_held(it.lease, &life);
  EXPECT(CBR_OK, cbr_lease_end(it.lease));
  EQUAL(1, life.destroyed);
}

/* Two leases, or a lease and a call, end at the same time: of the one that is
 * stopped and the other, either may be the last. */
static void G7_lastHoldDestroysOnce(void) {
  const int points[] = {SLOT_FREED, LEASE_DROPPED, TRY_SCANNED, TRY_CLAIMED,
                        IN_DESTROY};
  for (int each = 0; each < 5; each++)
    for (int with_call = 0; with_call < 2; with_call++) {
      WITHIN("point %d, %s", points[each], with_call ? "call" : "lease");
      life life = {0};
      cbr_token token = add_subject(&life, CBR_NONE);
      leasing first = {token, CBR_NONE, CBR_E_USER}, second = first;
      EXPECT(CBR_OK, cbr_lease(token, &first.lease));
      cbr_call call;
      if (with_call)
        EXPECT(CBR_OK, subject_enter(token, &life, &call));
      else
        EXPECT(CBR_OK, cbr_lease(token, &second.lease));
      EXPECT(with_call ? CBR_DEFERRED : CBR_PENDING,
             cbr_invalidate(token, CBR_REASON_ENDED));
      worker ender;
      gate at = GATE(points[each],
                     points[each] == IN_DESTROY ? (uintptr_t)&life : token,
                     &ender);
      close_gate(&at);
      start(&ender, "lease ender", end_lease, &first);
      /* The other hold is there. It drops its own, looks for pins, and comes
       * no further. */
      bool is_reached = !run_far(&ender);
      EQUAL(points[each] == LEASE_DROPPED ||
                (points[each] == TRY_SCANNED && !with_call),
            is_reached);
      if (with_call)
        EXPECT(CBR_OK, subject_leave(&call, &life));
      else
        EXPECT(CBR_OK, cbr_lease_end(second.lease));
      EQUAL(1, life.destroyed);
      open_gate(&at);
      join(&ender);
      EXPECT(CBR_OK, first.status);
      EQUAL(1, life.destroyed);
    }
}

/* The last lease is stopped on its way to destroy; others come meanwhile. */
static void G7_othersMeetTheLastLease(void) {
  const int points[] = {LEASE_DROPPED, TRY_SCANNED, TRY_CLAIMED, IN_DESTROY,
                        DESTROYED, SLOT_FREED};
  for (int each = 0; each < 6; each++) {
    WITHIN("point %d", points[each]);
    life life = {0};
    leasing it = {add_subject(&life, CBR_NONE), CBR_NONE, CBR_E_USER};
    EXPECT(CBR_OK, cbr_lease(it.token, &it.lease));
    EXPECT(CBR_PENDING, cbr_invalidate(it.token, CBR_REASON_ENDED));
    worker ender, waiter;
    gate at = GATE(points[each],
                   points[each] == IN_DESTROY ? (uintptr_t)&life : it.token,
                   &ender);
    close_gate(&at);
    start(&ender, "lease ender", end_lease, &it);
    await_gate(&at);
    cbr_lease_handle more;
    EXPECT(CBR_ALREADY, cbr_lease_end(it.lease));
    EXPECT(CBR_E_STALE, cbr_lease(it.token, &more));
    EXPECT(CBR_E_STALE, subject_visit(it.token, &life));
    cbr_call call;
    EXPECT(CBR_E_STALE, cbr_lease_get(it.lease, &call));
    ending ending = ENDING(it.token);
    start(&waiter, "waiter", wait_for, &ending);
    run_far(&waiter);
    open_gate(&at);
    join(&ender);
    join(&waiter);
    EXPECT(CBR_OK, it.status);
    EXPECT(CBR_ALREADY, ending.status);
    EQUAL(1, life.destroyed);
  }
}

/* Ending one lease twice at once: one of the two is told. */
static void G16_leaseIsEndedTwiceAtOnce(void) {
  life life = {0};
  cbr_token token = add_subject(&life, CBR_NONE);
  leasing first = {token, CBR_NONE, CBR_E_USER}, second;
  EXPECT(CBR_OK, cbr_lease(token, &first.lease));
  second = first;
  worker ender;
  gate dropped = GATE(LEASE_DROPPED, token, &ender);
  close_gate(&dropped);
  start(&ender, "lease ender", end_lease, &first);
  await_gate(&dropped);
  end_lease(&second);
  EXPECT(CBR_ALREADY, second.status);
  open_gate(&dropped);
  join(&ender);
  EXPECT(CBR_OK, first.status);
  EQUAL(0, life.destroyed);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(1, life.destroyed);
}

/* A lease outlives its registry's closing, which ends with it. */
static void G14_leaseAtClose(void) {
  cbr_registry closing = open_registry("closing", CBR_LEVEL_OFF);
  life life = {0};
  cbr_token token;
  cbr_lease_handle lease;
  EXPECT(CBR_OK, subject_register(closing, &life, CBR_NONE, &token));
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  EXPECT(CBR_E_TIMEOUT, cbr_registry_close(closing, 0));
  EXPECT(CBR_E_STALE, subject_visit(token, &life));
  expect_held(lease, &life);
  ending ending = ENDING(closing);
  worker closer;
  start(&closer, "closer", close_it, &ending);
  CHECK(!run_far(&closer));
  EXPECT(CBR_OK, cbr_lease_end(lease));
  join(&closer);
  EXPECT(CBR_ALREADY, ending.status);
  EQUAL(1, life.destroyed);
  EXPECT(CBR_E_CLOSED, cbr_lease_end(lease));
  EXPECT(CBR_E_CLOSED, subject_visit(token, &life));
}

/* A callback leases itself and ends: the lease is used on another thread. */
static void lease_and_end(void *argument) {
  leasing *it = argument;
  EXPECT(CBR_OK, cbr_lease(it->token, &it->lease));
  EXPECT(CBR_DEFERRED, cbr_invalidate(it->token, CBR_REASON_ENDED));
}

static void G7_leaseOutlivesItsCall(void) {
  life life = {0};
  leasing it = {add_subject(&life, CBR_NONE), CBR_NONE, CBR_E_USER};
  life.on_call = lease_and_end;
  life.argument = &it;
  EXPECT(CBR_OK, subject_visit(it.token, &life));
  life.on_call = NULL;
  expect_held(it.lease, &life);
  worker ender;
  start(&ender, "lease ender", end_lease, &it);
  join(&ender);
  EXPECT(CBR_OK, it.status);
  EQUAL(1, life.destroyed);
}

int main(void) {
  registry = open_registry("leases", CBR_LEVEL_OFF);
  TEST(G7_leaseAgainstEnding);
  TEST(G7_leaseIsCountedWhileItsTakerPins);
  TEST(G7_lastHoldDestroysOnce);
  TEST(G7_othersMeetTheLastLease);
  TEST(G16_leaseIsEndedTwiceAtOnce);
  TEST(G14_leaseAtClose);
  TEST(G7_leaseOutlivesItsCall);
  EQUAL(0, statistics_of(registry).live_leases);
  close_registry(registry);
  return finish();
}

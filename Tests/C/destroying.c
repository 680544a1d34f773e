/* SPDX-License-Identifier: Apache-2.0
 *
 * What a destroy may do (G7, G12, G13): wait, end other things, register,
 * close the registry, never return. It runs under no lock (B8, B20), and
 * whatever it does, everything else is destroyed exactly once.
 */
#include "history.h"
#include "subject.h"

#include <setjmp.h>

static cbr_registry registry;
static history kept;

static cbr_token add_subject(life *life, cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, subject_register(registry, life, owner, &token));
  return token;
}

/* Runs what would hang for ever if the library were wrong. */
static void on_worker(void (*body)(void *), void *argument) {
  worker worker;
  start(&worker, "worker", body, argument);
  join(&worker);
}

/* --------------------------------------------------------------- waiting -- */

/* What is waited for in a destroy of the first of two tokens of an owner. */
static void wait_in_destroy(int which, cbr_status expected) {
  cbr_owner parent = add_owner(registry, "parent"), owner;
  EXPECT(CBR_OK, cbr_owner_create_child(parent, "owner", &owner));
  life other = {0}, life = {.on_destroy = wait_for};
  cbr_token sibling = add_subject(&other, owner);
  cbr_token own = add_subject(&life, owner);
  cbr_handle handles[] = {own, sibling, owner, parent};
  ending inner = ENDING(handles[which]), outer = ENDING(parent);
  life.argument = &inner;
  on_worker(end_it, &outer);
  EXPECT(CBR_OK, outer.status);
  EXPECT(expected, inner.status);
  EQUAL(1, life.destroyed);
  EQUAL(1, other.destroyed);
}

static void G15_destroyWaitsForItself(void) {
  wait_in_destroy(0, CBR_DEFERRED);
}

/* Its turn comes when the destroy that waits has returned. */
static void G15_destroyWaitsForItsSibling(void) {
  wait_in_destroy(1, CBR_DEFERRED);
}

static void G15_destroyWaitsForItsOwner(void) {
  wait_in_destroy(2, CBR_DEFERRED);
  wait_in_destroy(3, CBR_DEFERRED);
}

/* Elsewhere a call is in flight: a destroy may wait for that. */
static void G15_destroyWaitsForAStranger(void) {
  life stranger = {0}, life = {.on_destroy = wait_for};
  cbr_token busy = add_subject(&stranger, CBR_NONE);
  visit call = VISIT(busy, &stranger);
  ending inner = ENDING(busy), outer = ENDING(add_subject(&life, CBR_NONE));
  life.argument = &inner;
  worker caller, ender;
  gate inside;
  start_inside(&caller, &call, &inside);
  start(&ender, "ender", end_it, &outer);
  CHECK(!run_far(&ender));
  open_gate(&inside);
  join(&caller);
  join(&ender);
  EXPECT(CBR_OK, inner.status);
  EXPECT(CBR_OK, outer.status);
  EQUAL(1, stranger.destroyed);
  EQUAL(1, life.destroyed);
}

static void G12_destroyClosesItsRegistry(void) {
  cbr_registry closing = open_registry("closing", test_level());
  ending inner = ENDING(closing);
  life other = {0}, life = {.on_destroy = close_it, .argument = &inner};
  cbr_token token, sibling;
  EXPECT(CBR_OK, subject_register(closing, &other, CBR_NONE, &sibling));
  EXPECT(CBR_OK, subject_register(closing, &life, CBR_NONE, &token));
  ending outer = ENDING(token);
  on_worker(end_it, &outer);
  EXPECT(CBR_OK, outer.status);
  EXPECT(CBR_DEFERRED, inner.status);
  EQUAL(1, life.destroyed);
  EQUAL(1, other.destroyed);
  EXPECT(CBR_ALREADY, cbr_registry_close(closing, CBR_FOREVER));
}

/* -------------------------------------------------- ending other things -- */

typedef struct pair {
  life outer, inner;
  cbr_token other;
  int depth;
} pair;

static __thread int nesting, deepest;

static void end_other(void *argument) {
  pair *self = argument;
  if (++nesting > deepest) deepest = nesting;
  EXPECT(CBR_OK, cbr_invalidate(self->other, CBR_REASON_ENDED));
  EQUAL(1, self->inner.destroyed);
  nesting--;
}

/* Each destroy of a large group ends one more token: one after the other,
 * none within another one's, so that the stack does not grow. */
static void destroy_group(void *argument) {
  enum { COUNT = TIMES(20000, 2000) };
  (void)argument;
  pair *pairs = calloc(COUNT, sizeof *pairs);
  cbr_owner owner = add_owner(registry, "group");
  for (int each = 0; each < COUNT; each++) {
    pair *it = &pairs[each];
    it->other = add_subject(&it->inner, CBR_NONE);
    it->outer.on_destroy = end_other;
    it->outer.argument = it;
    add_subject(&it->outer, owner);
  }
  deepest = 0;
  EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
  EQUAL(1, deepest);
  int destroyed = 0;
  for (int each = 0; each < COUNT; each++)
    destroyed += pairs[each].outer.destroyed;
  EQUAL(COUNT, destroyed);
  free(pairs);
}

static void G7_destroysOfAGroupDoNotNest(void) {
  on_worker(destroy_group, NULL);
}

/* Each destroy ends the next one: a chain that its maker wanted to nest. */
typedef struct link {
  life life;
  cbr_token next;
} link_;

static void end_next(void *argument) {
  link_ *self = argument;
  if (self->next != CBR_NONE)
    EXPECT(CBR_OK, cbr_invalidate(self->next, CBR_REASON_ENDED));
}

static void G7_destroyEndsTheNextOne(void) {
  enum { COUNT = 100 };
  static link_ links[COUNT];
  cbr_token next = CBR_NONE;
  for (int each = 0; each < COUNT; each++) {
    links[each].next = next;
    links[each].life.on_destroy = end_next;
    links[each].life.argument = &links[each];
    next = add_subject(&links[each].life, CBR_NONE);
  }
  EXPECT(CBR_OK, cbr_invalidate(next, CBR_REASON_ENDED));
  for (int each = 0; each < COUNT; each++)
    EQUAL(1, links[each].life.destroyed);
}

/* --------------------------------------------------------- under no lock -- */

/* Another thread uses everything that takes a lock; it is waited for. */
typedef struct use {
  cbr_owner owner;
  cbr_status registered;
} use;

static cbr_disposition see(void *context, const cbr_item *item) {
  (void)context;
  (void)item;
  return CBR_CONTINUE;
}

static void use_everything(void *argument) {
  use *self = argument;
  life life = {0}, other = {0};
  cbr_token token;
  cbr_lease_handle lease;
  cbr_owner owner;
  char text[256];
  self->registered = subject_register(registry, &other, self->owner, &token);
  if (self->registered == CBR_OK)
    EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
  EXPECT(CBR_OK, subject_visit(token, &life));
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  EXPECT(CBR_OK, cbr_lease_end(lease));
  EXPECT(CBR_OK, cbr_registry_each_live(registry, see, NULL));
  EXPECT(CBR_OK, cbr_impact(token, see, NULL));
  CHECK(cbr_explain(token, text, sizeof text, NULL) != CBR_E_STALE);
  EXPECT(CBR_OK, cbr_audit_level(token, CBR_LEVEL_OFF));
  EXPECT(CBR_OK, cbr_owner_for_object(registry, &life, "object", &owner));
  EXPECT(CBR_OK, cbr_object_died(registry, &life));
  EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(0, statistics_of(registry).live_leases);
  EQUAL(1, life.destroyed);
}

static void use_elsewhere(void *argument) {
  on_worker(use_everything, argument);
  use_everything(argument);
}

static void B8_destroyRunsUnderNoLock(void) {
  use use = {CBR_NONE, CBR_E_USER};
  life life = {.on_destroy = use_elsewhere, .argument = &use};
  EXPECT(CBR_OK, cbr_invalidate(add_subject(&life, CBR_NONE),
                                CBR_REASON_ENDED));
  EQUAL(1, life.destroyed);
  EXPECT(CBR_OK, use.registered);
}

static void B20_ownersDeathRunsUnderNoLock(void) {
  cbr_owner owner = add_owner(registry, "owner");
  use use = {owner, CBR_E_USER};
  life life = {.on_destroy = use_elsewhere, .argument = &use};
  add_subject(&life, owner);
  EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
  EQUAL(1, life.destroyed);
  EXPECT(CBR_E_DYING, use.registered);
}

/* The last one to leave destroys, and may do so, too. */
static void B8_leavingRunsUnderNoLock(void) {
  use use = {CBR_NONE, CBR_E_USER};
  life life = {.on_destroy = use_elsewhere, .argument = &use};
  cbr_token token = add_subject(&life, CBR_NONE);
  cbr_call call;
  EXPECT(CBR_OK, subject_enter(token, &life, &call));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, subject_leave(&call, &life));
  EQUAL(1, life.destroyed);
}

/* ------------------------------------------------------- never returning -- */

static void end_thread(void *argument) {
  (void)argument;
  pthread_exit(NULL);
}

/* Every other destroy ends its thread, while the thread ends, too. */
static void G11_threadEndsInDestroyOfAGroup(void) {
  enum { COUNT = 5 };
  cbr_owner owner = add_owner(registry, "owner");
  life lives[COUNT] = {{0}};
  for (int each = 0; each < COUNT; each++) {
    if (each % 2 == 0) lives[each].on_destroy = end_thread;
    add_subject(&lives[each], owner);
  }
  ending ending = ENDING(owner), again = ENDING(owner);
  on_worker(end_it, &ending);
  EXPECT(CBR_E_USER, ending.status);
  for (int each = 0; each < COUNT; each++) EQUAL(1, lives[each].destroyed);
  on_worker(wait_for, &again);
  EXPECT(CBR_ALREADY, again.status);
}

static jmp_buf jump;

static void jump_away(void *argument) {
  (void)argument;
  longjmp(jump, 1);
}

static void G11_jumpOutOfDestroyOfAGroup(void) {
  enum { COUNT = 5 };
  cbr_owner owner = add_owner(registry, "owner");
  static life lives[COUNT];
  for (int each = 0; each < COUNT; each++) {
    if (each % 2 == 0) lives[each].on_destroy = jump_away;
    add_subject(&lives[each], owner);
  }
  size_t mark = cbr_mark();
  volatile int jumps = 0;
  if (setjmp(jump) != 0) {
    jumps++;
    EXPECT(CBR_OK, cbr_unwind(mark));
  } else {
    EXPECT(CBR_E_USER, cbr_invalidate(owner, CBR_REASON_ENDED));
  }
  for (int each = 0; each < COUNT; each++) EQUAL(1, lives[each].destroyed);
  EQUAL(3, jumps);
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(mark, cbr_mark());
}

static void A1_theHistorySaysTheSame(void) {
  close_with_history(registry, &kept);
}

int main(void) {
  registry = open_with_history(&kept, "destroying", test_level());
  TEST(G15_destroyWaitsForItself);
  TEST(G15_destroyWaitsForItsSibling);
  TEST(G15_destroyWaitsForItsOwner);
  TEST(G15_destroyWaitsForAStranger);
  TEST(G12_destroyClosesItsRegistry);
  TEST(G7_destroysOfAGroupDoNotNest);
  TEST(G7_destroyEndsTheNextOne);
  TEST(B8_destroyRunsUnderNoLock);
  TEST(B20_ownersDeathRunsUnderNoLock);
  TEST(B8_leavingRunsUnderNoLock);
  TEST(G11_threadEndsInDestroyOfAGroup);
  TEST(G11_jumpOutOfDestroyOfAGroup);
  TEST(A1_theHistorySaysTheSame);
  return finish();
}

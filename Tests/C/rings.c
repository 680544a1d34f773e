/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that wait for each other (G15, B5, B14): a ring is found, one of
 * its threads is told, and the others come through; and what is no ring is
 * not taken for one.
 */
#include "history.h"
#include "subject.h"

static cbr_registry registry;
static history kept;

/* A thread that is inside a token, and waits there for something. */
typedef struct member {
  cbr_registry registry;
  cbr_owner owner;
  cbr_token token;
  life life;
  void (*wait)(void *); /* wait_for, close_it or NULL */
  ending ending;
  visit call;
  worker worker;
  gate inside;
} member;

static void wait_inside(void *argument) {
  member *self = argument;
  reach(BEFORE_ACT, self->token);
  if (self->wait) self->wait(&self->ending);
}

static member make_member(cbr_registry registry, cbr_owner owner) {
  return (member){.registry = registry, .owner = owner, .wait = wait_for};
}

/* Lets a member enter its token, and stop before it waits. */
static void enter_member(member *it) {
  it->life.on_call = wait_inside;
  it->life.argument = it;
  it->ending.timeout = CBR_FOREVER;
  it->ending.status = CBR_E_USER;
  EXPECT(CBR_OK,
         subject_register(it->registry, &it->life, it->owner, &it->token));
  it->call = (visit)VISIT(it->token, &it->life);
  it->inside = (gate)GATE(BEFORE_ACT, it->token, &it->worker);
  close_gate(&it->inside);
  start(&it->worker, "member", visit_it, &it->call);
  await_gate(&it->inside);
}

/* Lets a member go on until it waits. */
static void let_wait(member *it) {
  open_gate(&it->inside);
  CHECK(!run_far(&it->worker));
}

static void expect_told(member *it) {
  join(&it->worker);
  EXPECT(CBR_E_WOULD_DEADLOCK, it->ending.status);
  CHECK(strstr(it->ending.sentence, "the ring goes through") != NULL);
  CHECK(strstr(it->ending.sentence, "on thread") != NULL);
}

/* Every member is named, by what it waits for, in the order of the ring. */
static void expect_named(member *told, member *members, int count) {
  const char *place = told->ending.sentence;
  for (int each = -1; each < count - 1 && each < 7; each++) {
    char handle[32];
    snprintf(handle, sizeof handle, "0x%016llx",
             (unsigned long long)(each < 0 ? told : &members[each])
                 ->ending.handle);
    place = strstr(place, handle);
    CHECK(place != NULL);
    if (!place) return;
  }
}

static void expect_through(member *it) {
  join(&it->worker);
  EXPECT(CBR_OK, it->call.status);
  CHECK(it->ending.status == CBR_OK || it->ending.status == CBR_ALREADY);
}

/* One after the other begins to wait. The last one closes the ring and is
 * told; as it leaves, the others come through. */
static void run_ring(member *members, int count) {
  for (int each = 0; each < count - 1; each++) let_wait(&members[each]);
  open_gate(&members[count - 1].inside);
  expect_told(&members[count - 1]);
  expect_named(&members[count - 1], members, count);
  for (int each = 0; each < count - 1; each++) expect_through(&members[each]);
  for (int each = 0; each < count; each++)
    EQUAL(1, members[each].life.destroyed);
}

/* ----------------------------------------------------------------- rings -- */

/* Each waits for the next one's token; returns what the last one is told. */
static const char *run_ring_of(int count) {
  static member members[11];
  for (int each = 0; each < count; each++) {
    members[each] = make_member(registry, CBR_NONE);
    enter_member(&members[each]);
  }
  for (int each = 0; each < count; each++)
    members[each].ending.handle = members[(each + 1) % count].token;
  run_ring(members, count);
  return members[count - 1].ending.sentence;
}

static void B5_ringsOfTwoToFive(void) {
  for (int count = 2; count <= 5; count++) run_ring_of(count);
}

/* The sentence has room for eight. */
static void B5_aLongRing(void) {
  const char *told = run_ring_of(11);
  CHECK(strstr(told, " and 2 more") != NULL);
}
/* Each waits for the owner, or its parent, of the next one's token. */
static void B14_ringsByOwner(void) {
  for (int count = 2; count <= 3; count++) {
    member members[3];
    cbr_owner parents[3], owners[3];
    for (int each = 0; each < count; each++) {
      parents[each] = add_owner(registry, "parent");
      EXPECT(CBR_OK,
             cbr_owner_create_child(parents[each], "child", &owners[each]));
      members[each] = make_member(registry, owners[each]);
      enter_member(&members[each]);
    }
    for (int each = 0; each < count; each++) {
      int next = (each + 1) % count;
      members[each].ending.handle = each == 1 ? parents[next] : owners[next];
    }
    run_ring(members, count);
  }
}

/* Each closes the registry that the other's token is of. */
static void B14_ringByRegistry(void) {
  member members[2];
  cbr_registry registries[2];
  for (int each = 0; each < 2; each++) {
    registries[each] = open_registry("ring", test_level());
    members[each] = make_member(registries[each], CBR_NONE);
    members[each].wait = close_it;
    enter_member(&members[each]);
  }
  for (int each = 0; each < 2; each++)
    members[each].ending.handle = registries[!each];
  run_ring(members, 2);
  for (int each = 0; each < 2; each++)
    EXPECT(CBR_ALREADY, cbr_registry_close(registries[each], CBR_FOREVER));
}

/* Both are inside one token and wait for it. The second is told; the first
 * learns that nobody else is inside when that one has left. */
static void B5_bothInsideOneToken(void) {
  member first = make_member(registry, CBR_NONE);
  enter_member(&first);
  member second = make_member(registry, CBR_NONE);
  enter_member(&second);
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(first.token, &call));
  ending ending = ENDING(first.token);
  first.ending.handle = first.token;
  let_wait(&first);
  wait_for(&ending);
  EXPECT(CBR_E_WOULD_DEADLOCK, ending.status);
  EXPECT(CBR_OK, cbr_leave(&call));
  join(&first.worker);
  EXPECT(CBR_DEFERRED, first.ending.status);
  second.wait = NULL;
  open_gate(&second.inside);
  join(&second.worker);
  EXPECT(CBR_OK, cbr_invalidate(second.token, CBR_REASON_ENDED));
}

/* A destroy that runs, and one whose turn comes after it, are inside, too. */
static void run_destroying(void *argument) {
  member *self = argument;
  reach(BEFORE_ACT, self->token);
  wait_for(&self->ending);
}

static void B5_ringThroughADestroy(void) {
  for (int later = 0; later < 2; later++) {
    cbr_owner owner = add_owner(registry, "owner");
    member caller = make_member(registry, CBR_NONE);
    enter_member(&caller);
    /* Of the two, the one that was registered last is destroyed first. */
    life other = {0};
    cbr_token pending;
    EXPECT(CBR_OK, subject_register(registry, &other, owner, &pending));
    member dying = make_member(registry, owner);
    dying.life.on_destroy = run_destroying;
    dying.life.argument = &dying;
    EXPECT(CBR_OK, subject_register(registry, &dying.life, owner,
                                    &dying.token));
    dying.inside = (gate)GATE(BEFORE_ACT, dying.token, &dying.worker);
    dying.ending = (ending)ENDING(caller.token);
    ending ending = ENDING(owner);
    close_gate(&dying.inside);
    start(&dying.worker, "ender", end_it, &ending);
    await_gate(&dying.inside);
    caller.ending.handle = later ? pending : dying.token;
    let_wait(&caller);
    open_gate(&dying.inside);
    expect_told(&dying);
    EXPECT(CBR_OK, ending.status);
    expect_through(&caller);
    EQUAL(1, dying.life.destroyed);
    EQUAL(1, other.destroyed);
    EQUAL(1, caller.life.destroyed);
  }
}

/* -------------------------------------------------------------- no rings -- */

/* Some wait for one, which waits for another, which only runs. */
static void G15_chainIsNoRing(void) {
  enum { COUNT = 5 };
  member members[COUNT];
  for (int each = 0; each < COUNT; each++) {
    members[each] = make_member(registry, CBR_NONE);
    enter_member(&members[each]);
  }
  /* 0, 1 and 2 wait for 3; 3 waits for 4. */
  for (int each = 0; each < COUNT - 1; each++) {
    members[each].ending.handle = members[each < 3 ? 3 : 4].token;
    let_wait(&members[each]);
  }
  members[COUNT - 1].wait = NULL;
  open_gate(&members[COUNT - 1].inside);
  join(&members[COUNT - 1].worker);
  for (int each = 0; each < COUNT - 1; each++) expect_through(&members[each]);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, cbr_invalidate(members[each].token, CBR_REASON_ENDED));
}

/* Siblings are not inside each other: no ring, nothing deferred. */
static void G15_siblingsAreNotInsideEachOther(void) {
  cbr_owner parent = add_owner(registry, "parent"), child;
  EXPECT(CBR_OK, cbr_owner_create_child(parent, "child", &child));
  member in_parent = make_member(registry, parent);
  enter_member(&in_parent);
  member in_child = make_member(registry, child);
  enter_member(&in_child);
  /* The one inside the parent waits for the child, not the other way. */
  in_parent.ending.handle = child;
  let_wait(&in_parent);
  in_child.wait = NULL;
  open_gate(&in_child.inside);
  join(&in_child.worker);
  expect_through(&in_parent);
  EXPECT(CBR_OK, in_parent.ending.status);
  EQUAL(1, in_child.life.destroyed);
  EQUAL(0, in_parent.life.destroyed);
  EXPECT(CBR_OK, cbr_invalidate(parent, CBR_REASON_ENDED));
}

/* What a third thread is inside, and waits for, is not the waiter's own. */
static void G15_othersAreNotOneself(void) {
  member bystander = make_member(registry, CBR_NONE);
  enter_member(&bystander);
  member busy = make_member(registry, CBR_NONE);
  enter_member(&busy);
  bystander.ending.handle = bystander.token;
  open_gate(&bystander.inside); /* it waits for itself */
  join(&bystander.worker);
  EXPECT(CBR_DEFERRED, bystander.ending.status);
  worker waiter;
  ending ending = ENDING(busy.token);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  busy.wait = NULL;
  open_gate(&busy.inside);
  join(&busy.worker);
  join(&waiter);
  EXPECT(CBR_OK, ending.status);
}

static void A1_theHistorySaysTheSame(void) {
  close_with_history(registry, &kept);
}

int main(void) {
  registry = open_with_history(&kept, "rings", test_level());
  TEST(B5_ringsOfTwoToFive);
  TEST(B5_aLongRing);
  TEST(B14_ringsByOwner);
  TEST(B14_ringByRegistry);
  TEST(B5_bothInsideOneToken);
  TEST(B5_ringThroughADestroy);
  TEST(G15_chainIsNoRing);
  TEST(G15_siblingsAreNotInsideEachOther);
  TEST(G15_othersAreNotOneself);
  TEST(A1_theHistorySaysTheSame);
  return finish();
}

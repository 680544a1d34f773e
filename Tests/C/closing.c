/* SPDX-License-Identifier: Apache-2.0
 *
 * Closing a registry against everything else (G12, G13, A8, C7, D3): what it
 * ends is destroyed once, who comes too late is told, and nobody waits for
 * ever or touches what is gone.
 */
#include "history.h"
#include "subject.h"

/* What another thread does while the registry is closed. */
enum operation {
  CALL, REGISTER, END, END_PLAIN, LEASE, LEASE_END, ONE_SHOT, OWN, OWN_OBJECT,
  OWNER_END, LOOK, EXPLAIN, CLOSE, INVALIDATE_REGISTRY
};

/* Where it is stopped; the handle of the point is any but for IN_VISITOR. */
static const struct row {
  enum operation operation;
  const char *name;
  int point;
} rows[] = {
  {CALL, "call", ENTER_PINNED},
  {CALL, "call", ENTER_CHECKED},
  {CALL, "call", IN_CALLBACK},
  {CALL, "call", LEAVE_CLEARED},
  {CALL, "call", LEAVE_CHECKED},
  {REGISTER, "register", REGISTER_ALLOCATED},
  {REGISTER, "register", REGISTER_PUBLISHED},
  {END, "end", END_MARKED},
  {END, "end", END_FENCED},
  {END, "end", END_SCANNED},
  {END, "end", IN_DESTROY},
  {END, "end", DESTROYED},
  {END, "end", SLOT_FREED},
  {END_PLAIN, "end without destroy", END_MARKED},
  {END_PLAIN, "end without destroy", PARKED},
  {LEASE, "lease", ENTER_CHECKED},
  {LEASE, "lease", LEASE_ADDED},
  {LEASE, "lease", REGISTER_PUBLISHED},
  {LEASE, "lease", LEAVE_CLEARED},
  {LEASE_END, "lease_end", LEASE_DROPPED},
  {ONE_SHOT, "one-shot", ENTER_CHECKED},
  {ONE_SHOT, "one-shot", CONSUMED_MARKED},
  {ONE_SHOT, "one-shot", END_FENCED},
  {ONE_SHOT, "one-shot", LEAVE_CLEARED},
  {OWN, "owner_create", REGISTER_PUBLISHED},
  {OWN_OBJECT, "owner_for_object", REGISTER_PUBLISHED},
  {OWNER_END, "end owner", END_MARKED},
  {OWNER_END, "end owner", END_DRAINED},
  {OWNER_END, "end owner", SLOT_FREED},
  {LOOK, "each_live", IN_VISITOR},
  {EXPLAIN, "impact", IN_VISITOR},
  {CLOSE, "close", END_MARKED},
  {CLOSE, "close", END_FENCED},
  {CLOSE, "close", IN_DESTROY},
  {CLOSE, "close", SLOT_FREED},
  {INVALIDATE_REGISTRY, "invalidate", END_MARKED},
  {INVALIDATE_REGISTRY, "invalidate", END_SCANNED},
  {INVALIDATE_REGISTRY, "invalidate", SLOT_FREED},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* What a cell is about. */
static struct world {
  const struct row *row;
  cbr_registry registry;
  cbr_owner owner;
  cbr_token token, plain, one_shot, fresh;
  cbr_lease_handle lease, more;
  life life, one_shot_life, fresh_life;
  cbr_status status;
} world;

static history kept;

/* The registry of one test, or cell, with a history of its own. */
static cbr_registry open_kept(void) {
  return open_with_history(&kept, "closing", test_level());
}

static void nothing(void *context) { (void)context; }

static void make_world(const struct row *row) {
  memset(&world, 0, sizeof world);
  world.row = row;
  cbr_registry registry = world.registry = open_kept();
  world.owner = add_owner(registry, "owner");
  EXPECT(CBR_OK, subject_register(registry, &world.life, world.owner,
                                  &world.token));
  EXPECT(CBR_OK, subject_register_flags(registry, &world.one_shot_life,
                                        CBR_NONE, CBR_ONE_SHOT,
                                        &world.one_shot));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "plain", nothing, NULL, NULL,
                              world.owner, &world.plain));
  if (row->operation == LEASE_END)
    EXPECT(CBR_OK, cbr_lease(world.token, &world.lease));
}

/* Stops at the first item, and uses it afterwards. */
static cbr_disposition see(void *context, const cbr_item *item) {
  (void)context;
  reach(IN_VISITOR, CBR_NONE);
  CHECK(item->label[0] != 0);
  return CBR_CONTINUE;
}

static void operate(void *argument) {
  (void)argument;
  struct world *it = &world;
  switch (it->row->operation) {
    case CALL: it->status = subject_visit(it->token, &it->life); break;
    case REGISTER:
      it->status = subject_register(it->registry, &it->fresh_life, it->owner,
                                    &it->fresh);
      break;
    case END: it->status = cbr_invalidate(it->token, CBR_REASON_ENDED); break;
    case END_PLAIN:
      it->status = cbr_invalidate(it->plain, CBR_REASON_ENDED);
      break;
    case LEASE: it->status = cbr_lease(it->token, &it->more); break;
    case LEASE_END: it->status = cbr_lease_end(it->lease); break;
    case ONE_SHOT:
      it->status = subject_visit(it->one_shot, &it->one_shot_life);
      break;
    case OWN:
      it->status = cbr_owner_create(it->registry, "own", &it->fresh);
      break;
    case OWN_OBJECT:
      it->status =
          cbr_owner_for_object(it->registry, it, "object", &it->fresh);
      break;
    case OWNER_END:
      it->status = cbr_invalidate(it->owner, CBR_REASON_ENDED);
      break;
    case LOOK:
      it->status = cbr_registry_each_live(it->registry, see, NULL);
      break;
    case EXPLAIN: it->status = cbr_impact(it->token, see, NULL); break;
    case CLOSE:
      it->status = cbr_registry_close(it->registry, CBR_FOREVER);
      break;
    case INVALIDATE_REGISTRY:
      it->status = cbr_invalidate(it->registry, CBR_REASON_ENDED);
      break;
  }
}

/* Everything is gone, and everything says so. */
static void check_closed(void) {
  cbr_call call;
  cbr_token token;
  life late = {0};
  EQUAL(1, world.life.destroyed);
  EQUAL(1, world.one_shot_life.destroyed);
  EQUAL(world.row->operation == REGISTER && world.status == CBR_OK,
        world.fresh_life.destroyed);
  EXPECT(CBR_E_CLOSED, cbr_enter(world.token, &call));
  EXPECT(CBR_E_CLOSED, cbr_invalidate(world.token, CBR_REASON_ENDED));
  EXPECT(CBR_E_CLOSED, cbr_invalidate_wait(world.owner, CBR_REASON_ENDED,
                                           CBR_FOREVER));
  EXPECT(CBR_E_CLOSED,
         subject_register(world.registry, &late, CBR_NONE, &token));
  EXPECT(CBR_ALREADY, cbr_registry_close(world.registry, CBR_FOREVER));
  EXPECT(CBR_ALREADY, cbr_invalidate(world.registry, CBR_REASON_ENDED));
  CHECK(!cbr_is_live(world.registry) && !cbr_is_live(world.token));
  end_history(&kept);
}

static void run_row(const struct row *row) {
  make_world(row);
  worker other, closer;
  gate at = GATE(row->point, CBR_NONE, &other);
  close_gate(&at);
  start(&other, row->name, operate, NULL);
  await_gate(&at);
  ending ending = ENDING(world.registry);
  start(&closer, "closer", close_it, &ending);
  run_far(&closer);
  open_gate(&at);
  join(&other);
  if (row->operation == LEASE && world.status == CBR_OK)
    EXPECT(CBR_OK, cbr_lease_end(world.more));
  join(&closer);
  bool is_second =
      row->operation == CLOSE || row->operation == INVALIDATE_REGISTRY;
  EXPECT(is_second ? CBR_ALREADY : CBR_OK, ending.status);
  if (row->operation == REGISTER || row->operation == OWN ||
      row->operation == LOOK || row->operation == END_PLAIN)
    EXPECT(CBR_OK, world.status);
  check_closed();
}

static void A8_closeAgainstEverything(void) {
  for (int each = 0; each < ROWS; each++) {
    WITHIN("%s, point %d", rows[each].name, rows[each].point);
    run_row(&rows[each]);
  }
}

/* -------------------------------------------------------- from inside (G12) */

static void close_inside(void *argument) {
  ending *it = argument;
  close_it(it);
  EXPECT(CBR_DEFERRED, it->status);
  EXPECT(CBR_ALREADY, cbr_invalidate(it->handle, CBR_REASON_ENDED));
}

static void G12_closedInItsCallback(void) {
  cbr_registry registry = open_kept();
  ending ending = ENDING(registry);
  life life = {.on_call = close_inside, .argument = &ending}, other = {0};
  cbr_token token, bystander;
  EXPECT(CBR_OK, subject_register(registry, &other, CBR_NONE, &bystander));
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
  EXPECT(CBR_OK, subject_visit(token, &life));
  EXPECT(CBR_DEFERRED, ending.status);
  EQUAL(1, life.destroyed);
  EQUAL(1, other.destroyed);
  EXPECT(CBR_E_CLOSED, subject_visit(token, &life));
  EXPECT(CBR_ALREADY, cbr_registry_close(registry, CBR_FOREVER));
  end_history(&kept);
}

static cbr_disposition close_in_visitor(void *context, const cbr_item *item) {
  close_inside(context);
  CHECK(item->label[0] != 0);
  return CBR_CONTINUE;
}

static void G12_closedInAVisitor(void) {
  cbr_registry registry = open_kept();
  ending ending = ENDING(registry);
  life lives[2] = {{0}, {0}};
  cbr_token token;
  for (int each = 0; each < 2; each++)
    EXPECT(CBR_OK, subject_register(registry, &lives[each], CBR_NONE, &token));
  EXPECT(CBR_OK,
         cbr_registry_each_live(registry, close_in_visitor, &ending));
  for (int each = 0; each < 2; each++) EQUAL(1, lives[each].destroyed);
  EXPECT(CBR_ALREADY, cbr_registry_close(registry, CBR_FOREVER));
  end_history(&kept);
}

/* ------------------------------------------------- nobody waits for it -- */

/* A token without destroy is marked, and not yet parked, while what it belongs
 * to ends: nobody waits, and nothing else ends, so it must not stay parked. */
static void D3_parkedAfterItsOwnerOrRegistryEnded(void) {
  for (int by_owner = 0; by_owner < 2; by_owner++) {
    cbr_registry registry = open_kept();
    cbr_owner owner = add_owner(registry, "owner");
    cbr_token token;
    EXPECT(CBR_OK, CBR_REGISTER(registry, "plain", nothing, NULL, NULL, owner,
                                &token));
    ending ending = ENDING(token);
    worker ender;
    gate marked = GATE(END_MARKED, token, &ender);
    close_gate(&marked);
    start(&ender, "ender", end_it, &ending);
    await_gate(&marked);
    EXPECT(CBR_PENDING,
           cbr_invalidate(by_owner ? owner : registry, CBR_REASON_ENDED));
    open_gate(&marked);
    join(&ender);
    EXPECT(CBR_OK, ending.status);
    if (by_owner) {
      EQUAL(0, statistics_of(registry).unsettled);
      close_registry(registry);
    }
    EXPECT(CBR_E_CLOSED, cbr_invalidate(token, CBR_REASON_ENDED));
    end_history(&kept);
  }
}

/* ------------------------------------------------------------- later on -- */

/* C7: a close that could not finish is not undone, and not done twice. */
static void C7_closeIsRetried(void) {
  cbr_registry registry = open_kept();
  life life = {0};
  cbr_token token;
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
  visit call = VISIT(token, &life);
  worker caller;
  gate inside;
  start_inside(&caller, &call, &inside);
  EXPECT(CBR_E_TIMEOUT, cbr_registry_close(registry, 0));
  EXPECT(CBR_E_TIMEOUT, cbr_registry_close(registry, 0));
  EXPECT(CBR_E_STALE, subject_visit(token, &life));
  EQUAL(0, life.destroyed);
  open_gate(&inside);
  join(&caller);
  EXPECT(CBR_ALREADY, cbr_registry_close(registry, CBR_FOREVER));
  EQUAL(1, life.destroyed);
  end_history(&kept);
}

/* D3: what belonged to it is ended after it, in any order, often. */
static void D3_endedAfterItsRegistry(void) {
  enum { COUNT = 1000 };
  static cbr_token tokens[COUNT];
  static life lives[COUNT];
  memset(lives, 0, sizeof lives);
  cbr_registry registry = open_kept();
  cbr_owner owner = add_owner(registry, "owner");
  for (int each = 0; each < COUNT; each++)
    EXPECT(CBR_OK, subject_register(registry, &lives[each],
                                    each % 2 ? owner : CBR_NONE,
                                    &tokens[each]));
  close_with_history(registry, &kept);
  cbr_registry next = open_registry("next", test_level());
  for (int each = COUNT - 1; each >= 0; each--) {
    EXPECT(CBR_E_CLOSED, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
    EXPECT(CBR_E_CLOSED, subject_visit(tokens[each], &lives[each]));
    EQUAL(1, lives[each].destroyed);
  }
  EXPECT(CBR_E_CLOSED, cbr_invalidate(owner, CBR_REASON_ENDED));
  close_registry(next);
}

/* ------------------------------------------------------------- all at once */

enum { USERS = 3, ROUNDS = TIMES(300, 60) };

typedef struct user {
  cbr_registry registry;
  life lives[64];
  bool is_taken[64];
  worker worker;
} user;

static bool is_over(cbr_status status) {
  return status == CBR_E_DYING || status == CBR_E_CLOSED;
}

/* Registers, calls and ends until the registry is gone. */
static void use_until_closed(void *argument) {
  user *self = argument;
  for (int each = 0; each < 64; each++) {
    life *life = &self->lives[each];
    cbr_token token;
    cbr_lease_handle lease;
    cbr_status status = subject_register(self->registry, life, CBR_NONE,
                                         &token);
    self->is_taken[each] = status == CBR_OK;
    CHECK(status == CBR_OK || is_over(status));
    status = subject_visit(token, life);
    CHECK(status == CBR_OK || status == CBR_E_STALE || is_over(status) ||
          (status == CBR_E_INVALID && !self->is_taken[each]));
    if (each % 4 == 1 && cbr_lease(token, &lease) == CBR_OK)
      EXPECT(CBR_OK, cbr_lease_end(lease));
    if (each % 3 == 0 && self->is_taken[each]) {
      status = cbr_invalidate(token, CBR_REASON_ENDED);
      CHECK(status == CBR_OK || status == CBR_ALREADY ||
            status == CBR_PENDING || is_over(status));
    }
  }
}

static void A12_closedWhileInUse(void) {
  static user users[USERS];
  for (int round = 0; round < ROUNDS; round++) {
    memset(users, 0, sizeof users);
    uint32_t level = CBR_LEVEL_OFF + round % 3;
    bool is_kept = level == CBR_LEVEL_CALLS; /* in a file */
    cbr_registry registry = is_kept
                                ? open_with_history(&kept, "in use", level)
                                : open_registry("in use", level);
    for (int each = 0; each < USERS; each++) {
      users[each].registry = registry;
      start(&users[each].worker, "user", use_until_closed, &users[each]);
    }
    if (round % 2 == 0) sched_yield();
    EXPECT(CBR_OK, cbr_registry_close(registry, CBR_FOREVER));
    for (int each = 0; each < USERS; each++) join(&users[each].worker);
    for (int each = 0; each < USERS; each++)
      for (int token = 0; token < 64; token++)
        EQUAL(users[each].is_taken[token], users[each].lives[token].destroyed);
    if (!is_kept) continue;
    check_history(&kept);
    remove_history(&kept);
  }
}

/* A close that gave up is asked again: the second one waits until the last
 * caller has left and the history is complete. */
static void G14_aSecondCloseWaitsForTheHistory(void) {
  for (int round = 0; round < TIMES(20, 5); round++) {
    cbr_registry closing = open_with_history(&kept, "twice", CBR_LEVEL_CALLS);
    life life = {0};
    cbr_token token;
    EXPECT(CBR_OK, subject_register(closing, &life, CBR_NONE, &token));
    visit call = VISIT(token, &life);
    worker caller;
    gate inside;
    start_inside(&caller, &call, &inside);
    EXPECT(CBR_E_TIMEOUT, cbr_registry_close(closing, 0));
    open_gate(&inside);
    join(&caller);
    EXPECT(CBR_ALREADY, cbr_registry_close(closing, CBR_FOREVER));
    EQUAL(1, number_in(&kept, "SELECT count(*) FROM run "
                              "WHERE ended = 'closed'"));
    end_history(&kept);
  }
}

int main(void) {
  TEST(G14_aSecondCloseWaitsForTheHistory);
  TEST(A8_closeAgainstEverything);
  TEST(G12_closedInItsCallback);
  TEST(G12_closedInAVisitor);
  TEST(D3_parkedAfterItsOwnerOrRegistryEnded);
  TEST(C7_closeIsRetried);
  TEST(D3_endedAfterItsRegistry);
  TEST(A12_closedWhileInUse);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Each pair of {enter, leave, invalidate, invalidate_wait, owner death,
 * object_died, register, slot reuse, table growth, thread exit, fork}, also
 * with itself: the first stops at each of its critical points, the second
 * then runs to its end or as far as it can, and the first goes on.
 *
 * All are about one token T, which belongs to the owner O of an object. In
 * every cell: no call begins after T has ended (G9, A18), function and context
 * match (G8, A4), T is destroyed exactly once and never under a call (G7),
 * each function answers what the header says (G14, G17), and the history says
 * the same: no attempt is missing, and none began after the end (A1, A2). The
 * cells take turns in how much they record, unless CBR_TEST_LEVEL says it; all
 * cells of a pair are runs of one history.
 */
#include "history.h"
#include "subject.h"

enum operation {
  ENTER, LEAVE, INVALIDATE, INVALIDATE_WAIT, OWNER_DEATH, OBJECT_DIED,
  REGISTER, SLOT_REUSE, TABLE_GROWTH, THREAD_EXIT, FORK, OPERATIONS
};

static const char *const names[OPERATIONS] = {
  "enter", "leave", "invalidate", "invalidate_wait", "owner_death",
  "object_died", "register", "slot_reuse", "table_growth", "thread_exit",
  "fork"
};

/* Which handle a point is reached for. */
enum subject_of_point { ANY, TOKEN, OWNER, REUSED, LIFE };

/* Where T stands while the first one is stopped. */
enum state {
  LIVE,      /* nobody is inside */
  PINNED,    /* the first has pinned it, and not yet looked */
  INSIDE,    /* the first is inside */
  DYING,     /* it has ended; destroy has not run */
  FINISHING, /* its destroy is about to run, runs or has run */
  GONE       /* its slot is free */
};

/* Others that take part in a row; or that the library knows the first one's
 * thread, so that its call takes the short way. */
enum { ALONE, BYSTANDER = 1, ENDED = 2, KNOWN = 3 };

/* The critical points of each operation. A bystander is inside T all the
 * time; in a row that has ENDED, T was ended before, while the first was
 * inside: it is the last to leave. */
static const struct row {
  enum operation first;
  int point;
  enum subject_of_point of;
  enum state state;
  int others;
} rows[] = {
  {ENTER, ENTER_PINNED, TOKEN, PINNED, ALONE},
  {ENTER, ENTER_CHECKED, TOKEN, INSIDE, ALONE},
  {ENTER, ENTER_PINNED, TOKEN, PINNED, KNOWN},
  {ENTER, ENTER_CHECKED, TOKEN, INSIDE, KNOWN},
  {ENTER, ENTER_TIMED, TOKEN, INSIDE, KNOWN},
  {LEAVE, LEAVE_CLEARED, TOKEN, LIVE, ALONE},
  {LEAVE, LEAVE_CHECKED, TOKEN, LIVE, ALONE},
  {LEAVE, LEAVE_CLEARED, TOKEN, DYING, ENDED},
  {LEAVE, LEAVE_CHECKED, TOKEN, DYING, ENDED},
  {LEAVE, TRY_SCANNED, TOKEN, DYING, ENDED},
  {LEAVE, TRY_CLAIMED, TOKEN, FINISHING, ENDED},
  {LEAVE, IN_DESTROY, LIFE, FINISHING, ENDED},
  {LEAVE, DESTROYED, TOKEN, FINISHING, ENDED},
  {LEAVE, SLOT_FREED, TOKEN, GONE, ENDED},
  {INVALIDATE, END_MARKED, TOKEN, DYING, ALONE},
  {INVALIDATE, END_FENCED, ANY, DYING, ALONE},
  {INVALIDATE, END_SCANNED, ANY, DYING, ALONE},
  {INVALIDATE, END_DRAINED, TOKEN, DYING, BYSTANDER},
  {INVALIDATE, IN_DESTROY, LIFE, FINISHING, ALONE},
  {INVALIDATE, DESTROYED, TOKEN, FINISHING, ALONE},
  {INVALIDATE, SLOT_FREED, TOKEN, GONE, ALONE},
  {INVALIDATE_WAIT, END_MARKED, TOKEN, DYING, ALONE},
  {INVALIDATE_WAIT, END_SCANNED, ANY, DYING, ALONE},
  {INVALIDATE_WAIT, END_DRAINED, TOKEN, DYING, BYSTANDER},
  {INVALIDATE_WAIT, WAIT_BEGAN, TOKEN, DYING, BYSTANDER},
  {INVALIDATE_WAIT, IN_DESTROY, LIFE, FINISHING, ALONE},
  {INVALIDATE_WAIT, SLOT_FREED, TOKEN, GONE, ALONE},
  {OWNER_DEATH, END_MARKED, OWNER, DYING, ALONE},
  {OWNER_DEATH, END_FENCED, ANY, DYING, ALONE},
  {OWNER_DEATH, END_SCANNED, ANY, DYING, ALONE},
  {OWNER_DEATH, END_DRAINED, OWNER, DYING, ALONE},
  {OWNER_DEATH, END_DRAINED, TOKEN, DYING, BYSTANDER},
  {OWNER_DEATH, IN_DESTROY, LIFE, FINISHING, ALONE},
  {OWNER_DEATH, DESTROYED, TOKEN, FINISHING, ALONE},
  {OWNER_DEATH, SLOT_FREED, TOKEN, GONE, ALONE},
  {OWNER_DEATH, SLOT_FREED, OWNER, GONE, ALONE},
  {OBJECT_DIED, END_MARKED, OWNER, DYING, ALONE},
  {OBJECT_DIED, END_SCANNED, ANY, DYING, ALONE},
  {OBJECT_DIED, END_DRAINED, OWNER, DYING, BYSTANDER},
  {OBJECT_DIED, IN_DESTROY, LIFE, FINISHING, ALONE},
  {OBJECT_DIED, SLOT_FREED, OWNER, GONE, ALONE},
  {REGISTER, REGISTER_ALLOCATED, ANY, LIVE, ALONE}, /* a lock is held */
  {REGISTER, REGISTER_PUBLISHED, ANY, LIVE, ALONE},
  {SLOT_REUSE, SLOT_FREED, TOKEN, GONE, ALONE},
  {SLOT_REUSE, REGISTER_ALLOCATED, REUSED, GONE, ALONE},
  {SLOT_REUSE, REGISTER_PUBLISHED, REUSED, GONE, ALONE},
  {TABLE_GROWTH, TABLE_GROWN, ANY, LIVE, ALONE},
  {THREAD_EXIT, THREAD_ENDED, ANY, INSIDE, ALONE},
  {THREAD_EXIT, LEAVE_CLEARED, TOKEN, LIVE, ALONE},
  {THREAD_EXIT, LEAVE_CHECKED, TOKEN, LIVE, ALONE},
  {THREAD_EXIT, LEAVE_CLEARED, TOKEN, DYING, ENDED},
  {THREAD_EXIT, TRY_CLAIMED, TOKEN, FINISHING, ENDED},
  {FORK, BEFORE_FORK, ANY, LIVE, ALONE},
  {FORK, AFTER_FORK, ANY, LIVE, ALONE},
};

enum { ROWS = sizeof rows / sizeof *rows, GROWTH = 600 };

/* ------------------------------------------------------------- the world -- */

static cbr_registry registry;
static uint32_t level;
static history kept;
static int object;
static cbr_owner owner;
static cbr_token token;
static life token_life;

/* One of the two, with what it did. */
typedef struct actor {
  enum operation operation;
  worker worker;
  gate after; /* it has acted */
  bool is_known; /* its thread has used the library before */
  cbr_call call;
  cbr_status entered; /* of ENTER */
  cbr_status ended;   /* of what ends something */
  cbr_status registered;
  cbr_token fresh; /* of REGISTER, and what reused T's slot */
  life fresh_life;
  life filler_life;
  int child; /* the exit status of FORK's */
} actor;

static bool is_inside_first(enum operation operation) {
  return operation == LEAVE || operation == THREAD_EXIT;
}

static bool ends_token(enum operation operation) {
  return (operation >= INVALIDATE && operation <= OBJECT_DIED) ||
         operation == SLOT_REUSE;
}

/* The handle that T's slot gives out next. */
static cbr_token successor(void) { return token + (UINT64_C(1) << 32); }

/* ------------------------------------------------------- the operations -- */

/* Ends T and registers others until one of them has its slot; in vain while
 * somebody is inside. */
static void reuse(actor *self) {
  self->ended = cbr_invalidate(token, CBR_REASON_ENDED);
  for (int each = 0; each < 300 && self->fresh != successor(); each++) {
    if (self->fresh != CBR_NONE)
      EXPECT(CBR_OK, cbr_invalidate(self->fresh, CBR_REASON_ENDED));
    life *life = &self->filler_life;
    atomic_store(&life->destroyed, 0);
    EXPECT(CBR_OK, subject_register(registry, life, CBR_NONE, &self->fresh));
  }
  EXPECT(CBR_OK, subject_visit(self->fresh, &self->filler_life));
}

static void grow(void) {
  uint64_t before = statistics_of(registry).slots;
  static cbr_token many[2][GROWTH];
  static _Atomic int next;
  cbr_token *tokens = many[atomic_fetch_add(&next, 1) & 1];
  life life = {0};
  for (int each = 0; each < GROWTH; each++)
    EXPECT(CBR_OK, CBR_REGISTER(registry, "many", subject_call, &life, NULL,
                                CBR_NONE, &tokens[each]));
  CHECK(statistics_of(registry).slots >= before + GROWTH - 256);
  for (int each = 0; each < GROWTH; each++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
}

/* H1, H4: nothing inherited is called; a new registry works. */
static void check_child(void) {
  cbr_call call;
  EXPECT(CBR_E_FORKED, cbr_enter(token, &call));
  EXPECT(CBR_E_FORKED, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_E_FORKED, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
  EXPECT(CBR_E_FORKED, cbr_object_died(registry, &object));
  CHECK(!cbr_is_live(token) && !cbr_is_live(owner) && !cbr_is_live(registry));
  cbr_registry own = open_registry("child", CBR_LEVEL_OFF);
  life life = {0};
  cbr_token fresh;
  EXPECT(CBR_OK, subject_register(own, &life, CBR_NONE, &fresh));
  EXPECT(CBR_OK, subject_visit(fresh, &life));
  close_registry(own);
  EQUAL(1, life.destroyed);
}

static int fork_child(void) {
  pid_t child = fork();
  if (child == 0) {
    alarm(PATIENCE_SECONDS);
    failures_of_test = 0;
    check_child();
    _exit(failures_of_test != 0);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

static void before_fork(void) { reach(BEFORE_FORK, CBR_NONE); }
static void after_fork(void) { reach(AFTER_FORK, CBR_NONE); }

static void act(actor *self) {
  switch (self->operation) {
    case ENTER:
      self->entered = subject_enter(token, &token_life, &self->call);
      break;
    case LEAVE:
      EXPECT(CBR_OK, subject_leave(&self->call, &token_life));
      break;
    case INVALIDATE:
      self->ended = cbr_invalidate(token, CBR_REASON_ENDED);
      break;
    case INVALIDATE_WAIT:
      self->ended =
          cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER);
      break;
    case OWNER_DEATH:
      self->ended = cbr_invalidate(owner, CBR_REASON_ENDED);
      break;
    case OBJECT_DIED:
      self->ended = cbr_object_died(registry, &object);
      break;
    case REGISTER:
      self->registered = subject_register(registry, &self->fresh_life, owner,
                                          &self->fresh);
      break;
    case SLOT_REUSE: reuse(self); break;
    case TABLE_GROWTH: grow(); break;
    case THREAD_EXIT:
      atomic_fetch_sub(&token_life.running, 1); /* it is abandoned */
      pthread_exit(NULL);
    case FORK: self->child = fork_child(); break;
    case OPERATIONS: break;
  }
}

static void play(void *argument) {
  actor *self = argument;
  if (self->is_known) EXPECT(CBR_OK, subject_visit(token, &token_life));
  if (is_inside_first(self->operation))
    EXPECT(CBR_OK, subject_enter(token, &token_life, &self->call));
  reach(BEFORE_ACT, CBR_NONE);
  act(self);
  reach(AFTER_ACT, CBR_NONE);
  if (self->operation == ENTER && self->entered == CBR_OK) {
    subject_run(&self->call);
    EXPECT(CBR_OK, subject_leave(&self->call, &token_life));
  }
}

/* ---------------------------------------------------- what is demanded -- */

/* Whether the second ends the owner of what the first has registered, but not
 * recorded yet: until then the first is in the way. */
static bool is_recording(const struct row *row, const actor *second) {
  bool ends_owner = second->operation == OWNER_DEATH ||
                    second->operation == OBJECT_DIED;
  return row->first == REGISTER && ends_owner && level != CBR_LEVEL_OFF;
}

/* The second may come before or after that when it has waited for the lock. */
static bool may_be_either(const struct row *row, const actor *second) {
  if (!is_recording(row, second) || row->point != REGISTER_ALLOCATED)
    return false;
  CHECK(second->ended == CBR_OK || second->ended == CBR_PENDING);
  return true;
}

/* What the second is answered, by what the first has done to T and O. */
static void check_second(const struct row *row, const actor *second) {
  bool is_dead = row->state >= DYING;
  bool is_ownerless = row->first == OWNER_DEATH || row->first == OBJECT_DIED;
  if (may_be_either(row, second)) return;
  bool is_held = row->state == PINNED || row->state == INSIDE ||
                 row->state == DYING || row->state == FINISHING ||
                 row->others == BYSTANDER || is_recording(row, second);
  switch (second->operation) {
    case ENTER:
      EXPECT(is_dead ? CBR_E_STALE : CBR_OK, second->entered);
      break;
    case INVALIDATE:
    case SLOT_REUSE:
      EXPECT(is_dead   ? CBR_ALREADY
             : is_held ? CBR_PENDING
                       : CBR_OK,
             second->ended);
      break;
    case INVALIDATE_WAIT:
      EXPECT(is_dead ? CBR_ALREADY : CBR_OK, second->ended);
      break;
    case OWNER_DEATH:
      EXPECT(is_ownerless ? CBR_ALREADY
             : is_held    ? CBR_PENDING
                          : CBR_OK,
             second->ended);
      break;
    case OBJECT_DIED: /* an object without an owner is fine */
      EXPECT(!is_ownerless && is_held ? CBR_PENDING : CBR_OK, second->ended);
      break;
    case REGISTER:
      if (!is_ownerless)
        EXPECT(CBR_OK, second->registered);
      else if (row->of == OWNER && row->state == GONE)
        EXPECT(CBR_E_STALE, second->registered);
      else
        EXPECT(CBR_E_DYING, second->registered);
      break;
    case FORK: EQUAL(0, second->child); break;
    default: break;
  }
}

/* Whether the check that counts follows the point. The short way of a call
 * whose time is taken checks once more when it has that (A2). */
static bool is_checked_later(const struct row *row) {
  bool is_short = row->others == KNOWN && statistics_of(registry).asymmetric;
  return row->point == ENTER_PINNED ||
         (row->point == ENTER_CHECKED && is_short && level == CBR_LEVEL_CALLS);
}

/* What the first is answered, after the second has run meanwhile. */
static void check_first(const struct row *row, const actor *first,
                        enum operation second, bool is_reached) {
  /* It could not finish because somebody else was inside at that time. */
  bool is_pending = row->others == BYSTANDER || !is_reached;
  switch (first->operation) {
    case ENTER:
      EXPECT(ends_token(second) && is_checked_later(row) ? CBR_E_STALE
                                                         : CBR_OK,
             first->entered);
      break;
    case INVALIDATE:
    case OWNER_DEATH:
    case OBJECT_DIED:
    case SLOT_REUSE:
      EXPECT(is_pending ? CBR_PENDING : CBR_OK, first->ended);
      break;
    case INVALIDATE_WAIT: EXPECT(CBR_OK, first->ended); break;
    case REGISTER: EXPECT(CBR_OK, first->registered); break;
    case FORK: EQUAL(0, first->child); break;
    default: break;
  }
}

/* Ends what an actor registered, and expects its destroy to have run. */
static void check_fresh(actor *self) {
  if (self->operation == SLOT_REUSE) {
    EXPECT(CBR_OK, cbr_invalidate(self->fresh, CBR_REASON_ENDED));
    EQUAL(1, self->filler_life.destroyed);
  } else if (self->operation == REGISTER && self->registered == CBR_OK) {
    cbr_status status =
        cbr_invalidate_wait(self->fresh, CBR_REASON_ENDED, CBR_FOREVER);
    CHECK(status == CBR_OK || status == CBR_ALREADY);
    EQUAL(1, self->fresh_life.destroyed);
  }
}

/* --------------------------------------------------------------- a cell -- */

static cbr_handle handle_of(enum subject_of_point of) {
  switch (of) {
    case TOKEN: return token;
    case OWNER: return owner;
    case REUSED: return successor();
    case LIFE: return (uintptr_t)&token_life;
    default: return CBR_NONE;
  }
}

static void make_world(void) {
  token_life = (life){0};
  registry = level == CBR_LEVEL_OFF ? open_registry("pairs", level)
                                    : open_to_history(&kept, "pairs", level);
  EXPECT(CBR_OK,
         cbr_owner_for_object(registry, &object, "object", &owner));
  EXPECT(CBR_OK, subject_register(registry, &token_life, owner, &token));
}

static void check_world(bool has_ended) {
  EQUAL(has_ended, token_life.destroyed);
  EXPECT(has_ended ? CBR_ALREADY : CBR_OK,
         cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(1, token_life.destroyed);
  cbr_call call;
  EXPECT(CBR_E_STALE, cbr_enter(token, &call));
  cbr_status status =
      cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER);
  CHECK(status == CBR_OK || status == CBR_ALREADY);
  cbr_statistics now = statistics_of(registry);
  EQUAL(0, now.live_tokens);
  EQUAL(0, now.live_owners);
  EQUAL(now.registered, now.ended);
  close_registry(registry);
}

/* While the first is stopped, others may have to wait for a lock. */
static bool holds_lock(const struct row *row) {
  return row->point == REGISTER_ALLOCATED || row->point == TABLE_GROWN ||
         row->first == FORK;
}

/* Lets an actor act to the end, or as far as it can. */
static void go_far(actor *it, bool may_wait) {
  if (may_wait || it->operation == INVALIDATE_WAIT ||
      it->operation == THREAD_EXIT)
    run_far(&it->worker);
  else
    await_gate(&it->after);
}

/* Lets the first come to its point, unless somebody inside is in the way. */
static bool comes_there(actor *first, gate *at) {
  while (!run_far(&first->worker) && !is_at(at) && !is_at(&first->after) &&
         first->operation != INVALIDATE_WAIT)
    sched_yield();
  return is_at(at);
}

static void run_cell(const struct row *row, enum operation other) {
  make_world();
  actor first = {.operation = row->first, .entered = CBR_E_USER,
                 .is_known = row->others == KNOWN};
  actor second = {.operation = other, .entered = CBR_E_USER};
  gate before_first = GATE(BEFORE_ACT, CBR_NONE, &first.worker);
  gate before_second = GATE(BEFORE_ACT, CBR_NONE, &second.worker);
  first.after = (gate)GATE(AFTER_ACT, CBR_NONE, &first.worker);
  second.after = (gate)GATE(AFTER_ACT, CBR_NONE, &second.worker);
  gate at = GATE(row->point, handle_of(row->of), &first.worker);
  gate *all[] = {&before_first, &before_second, &first.after, &second.after};
  for (int each = 0; each < 4; each++) close_gate(all[each]);
  cbr_call bystander;
  if (row->others == BYSTANDER)
    EXPECT(CBR_OK, subject_enter(token, &token_life, &bystander));
  start(&first.worker, names[row->first], play, &first);
  await_gate(&before_first);
  start(&second.worker, names[other], play, &second);
  await_gate(&before_second);
  if (row->others == ENDED)
    EXPECT(CBR_PENDING, cbr_invalidate(token, CBR_REASON_ENDED));
  close_gate(&at);
  open_gate(&before_first);
  /* Somebody inside may keep it from coming there; nothing else may. */
  bool is_reached = is_inside_first(other) ? comes_there(&first, &at)
                                           : comes_to(&at);
  CHECK(is_reached || is_inside_first(other));
  open_gate(&before_second);
  go_far(&second, holds_lock(row));
  open_gate(&at);
  go_far(&first, false);
  go_far(&second, false);
  if (atomic_load(&token_life.running) > 0) EQUAL(0, token_life.destroyed);
  if (row->others == BYSTANDER)
    EXPECT(CBR_OK, subject_leave(&bystander, &token_life));
  open_gate(&first.after);
  open_gate(&second.after);
  join(&first.worker);
  join(&second.worker);
  check_first(row, &first, other, is_reached);
  check_second(row, &second);
  check_fresh(&first);
  check_fresh(&second);
  check_world(row->others == ENDED || ends_token(row->first) ||
              ends_token(other));
}

/* ----------------------------------------------------------- the matrix -- */

static enum operation pair_first, pair_second;

/* Whether a cell is run at a level: they take turns, but calls take other ways
 * at each. */
static bool is_asymmetric;

static bool is_at_level(int row) {
  if (getenv("CBR_TEST_LEVEL") && level != test_level()) return false;
  if (rows[row].point == ENTER_TIMED)
    return level == CBR_LEVEL_CALLS && is_asymmetric;
  return rows[row].first == ENTER ||
         getenv("CBR_TEST_LEVEL") ||
         level == CBR_LEVEL_OFF + (row + pair_second) % 3;
}

/* What the cells of a pair have left behind. */
static void check_kept(int recorded) {
  WITHIN("the history of %d cells", recorded);
  if (recorded > 0) {
    check_history(&kept);
    expect_no_rows(&kept, "SELECT * FROM live");
    EQUAL(recorded, number_in(&kept, "SELECT count(*) FROM run "
                                     "WHERE ended = 'closed'"));
  }
  remove_history(&kept);
}

static void run_pair(void) {
  int cells = 0, recorded = 0;
  make_history(&kept);
  for (int row = 0; row < ROWS; row++)
    for (level = CBR_LEVEL_OFF; level <= CBR_LEVEL_CALLS; level++) {
      if (rows[row].first != pair_first || !is_at_level(row)) continue;
      WITHIN("row %d, point %d, level %u", row, rows[row].point, level);
      run_cell(&rows[row], pair_second);
      cells++;
      recorded += level != CBR_LEVEL_OFF;
    }
  CHECK(cells > 0);
  check_kept(recorded);
}

int main(void) {
  pthread_atfork(before_fork, after_fork, NULL);
  cbr_registry any = open_registry("any", CBR_LEVEL_OFF);
  is_asymmetric = statistics_of(any).asymmetric;
  close_registry(any);
  for (pair_first = 0; pair_first < OPERATIONS; pair_first++)
    for (pair_second = 0; pair_second < OPERATIONS; pair_second++) {
      char name[64];
      snprintf(name, sizeof name, "%s_meets_%s", names[pair_first],
               names[pair_second]);
      test_(name, run_pair);
    }
  return finish();
}

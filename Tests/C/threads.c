/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads (G11, J22): many at once, deeply nested, ending inside calls and
 * using the library while they end.
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

/* -------------------------------------------------------------- many -- */

enum { MANY = 80, NESTED = 3 };

typedef struct guest {
  worker worker;
  gate inside;
  cbr_token tokens[NESTED];
  life lives[NESTED];
  life *shared;
  cbr_token shared_token;
} guest;

/* Inside tokens of its own and of all, one in the other. */
static void stay(void *argument) {
  guest *self = argument;
  cbr_call shared, calls[NESTED];
  EXPECT(CBR_OK, subject_enter(self->shared_token, self->shared, &shared));
  for (int each = 0; each < NESTED; each++)
    EXPECT(CBR_OK, subject_enter(self->tokens[each], &self->lives[each],
                                 &calls[each]));
  reach(IN_CALLBACK, (uintptr_t)self);
  /* In the order of entering, not of nesting. */
  for (int each = 0; each < NESTED; each++) {
    subject_run(&calls[each]);
    EXPECT(CBR_OK, subject_leave(&calls[each], &self->lives[each]));
  }
  subject_run(&shared);
  EXPECT(CBR_OK, subject_leave(&shared, self->shared));
}

/* More pins than an ending looks at once: each is found all the same. */
static void G11_manyThreadsInsideManyCalls(void) {
  static guest guests[MANY];
  static life shared_life, quiet_lives[200];
  memset(guests, 0, sizeof guests);
  cbr_owner owner = add_owner(registry, "owner");
  for (int each = 0; each < 200; each++)
    add_subject(&quiet_lives[each], owner);
  cbr_token shared = add_subject(&shared_life, owner);
  for (int each = 0; each < MANY; each++) {
    guest *it = &guests[each];
    it->shared = &shared_life;
    it->shared_token = shared;
    for (int level = 0; level < NESTED; level++)
      it->tokens[level] = add_subject(&it->lives[level], owner);
    it->inside = (gate)GATE(IN_CALLBACK, (uintptr_t)it, &it->worker);
    close_gate(&it->inside);
    start(&it->worker, "guest", stay, it);
  }
  for (int each = 0; each < MANY; each++) await_gate(&guests[each].inside);
  CHECK(statistics_of(registry).threads > MANY);
  EXPECT(CBR_PENDING, cbr_invalidate(owner, CBR_REASON_ENDED));
  for (int each = 0; each < 200; each++)
    EQUAL(1, quiet_lives[each].destroyed);
  EQUAL(0, shared_life.destroyed);
  for (int each = 0; each < MANY; each++)
    for (int level = 0; level < NESTED; level++)
      EQUAL(0, guests[each].lives[level].destroyed);
  for (int each = 0; each < MANY; each++) open_gate(&guests[each].inside);
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER));
  for (int each = 0; each < MANY; each++) join(&guests[each].worker);
  EQUAL(1, shared_life.destroyed);
  for (int each = 0; each < MANY; each++)
    for (int level = 0; level < NESTED; level++)
      EQUAL(1, guests[each].lives[level].destroyed);
}

/* ------------------------------------------------------------------ depth */

enum { DEPTH = 1000 };

typedef struct dive {
  cbr_token token;
  life *life;
  int depth;
} dive;

static void go_deeper(void *argument) {
  dive *it = argument;
  if (it->depth < DEPTH) {
    it->depth++;
    EXPECT(CBR_OK, subject_visit(it->token, it->life));
  } else {
    reach(AFTER_ACT, it->token);
  }
}

/* One thread is inside a token a thousand times; the outermost is left last. */
static void G11_deepRecursionIsProtected(void) {
  life life = {.on_call = go_deeper};
  dive it = {add_subject(&life, CBR_NONE), &life, 0};
  life.argument = &it;
  visit call = VISIT(it.token, &life);
  worker diver, waiter;
  gate bottom = GATE(AFTER_ACT, it.token, &diver);
  close_gate(&bottom);
  start(&diver, "diver", visit_it, &call);
  await_gate(&bottom);
  ending ending = ENDING(it.token);
  start(&waiter, "waiter", wait_for, &ending);
  CHECK(!run_far(&waiter));
  EQUAL(0, life.destroyed);
  open_gate(&bottom);
  join(&diver);
  join(&waiter);
  EXPECT(CBR_OK, ending.status);
  EQUAL(DEPTH + 1, life.calls);
  EQUAL(1, life.destroyed);
}

/* A deep call is found when those above it have been left. */
static void G11_deepCallsAreLeftInAnyOrder(void) {
  enum { CALLS = 200 };
  static life lives[CALLS];
  static cbr_token tokens[CALLS];
  static cbr_call calls[CALLS];
  memset(lives, 0, sizeof lives);
  size_t mark = cbr_mark();
  for (int each = 0; each < CALLS; each++) {
    tokens[each] = add_subject(&lives[each], CBR_NONE);
    EXPECT(CBR_OK, subject_enter(tokens[each], &lives[each], &calls[each]));
  }
  for (int each = 0; each < CALLS; each++)
    EXPECT(CBR_DEFERRED, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  for (int step = 0; step < CALLS; step++) {
    int each = step * 77 % CALLS;
    EQUAL(0, lives[each].destroyed);
    EXPECT(CBR_OK, subject_leave(&calls[each], &lives[each]));
    EQUAL(1, lives[each].destroyed);
  }
  EQUAL(mark, cbr_mark());
}

/* ------------------------------------------------------- many registries -- */

/* One thread records in many registries in turn, in each again and again: it
 * has one ring in each, and forgets those of closed ones. */
static void A5_oneThreadInManyRegistries(void) {
  enum { COUNT = 100, TURNS = 5 };
  static cbr_registry registries[COUNT];
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.ring_bytes = 4096;
  for (int each = 0; each < COUNT; each++)
    EXPECT(CBR_OK, cbr_registry_open(&options, &registries[each]));
  for (int turn = 0; turn < TURNS; turn++)
    for (int each = 0; each < COUNT; each++) {
      life life = {0};
      cbr_token token;
      EXPECT(CBR_OK, subject_register(registries[each], &life, CBR_NONE,
                                      &token));
      EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
    }
  for (int each = 0; each < COUNT; each++) {
    /* One row says whose ring it is, one that the registry was opened, and
     * three tell the life of each token. */
    EQUAL(2 + 3 * TURNS, statistics_of(registries[each]).events_emitted);
    EQUAL(0, statistics_of(registries[each]).events_lost);
    EXPECT(CBR_OK, cbr_registry_close(registries[each], CBR_FOREVER));
  }
}

/* --------------------------------------------------------- ending inside -- */

typedef struct leaver {
  cbr_token tokens[2];
  life lives[2];
} leaver;

static void end_inside(void *argument) {
  leaver *self = argument;
  cbr_call calls[2];
  for (int each = 0; each < 2; each++)
    EXPECT(CBR_OK, cbr_enter(self->tokens[each], &calls[each]));
  reach(IN_CALLBACK, self->tokens[0]);
}

/* Its calls are over with the thread; who waits is woken (G11, G15). */
static void G11_waitForAThreadThatEndsInside(void) {
  leaver leaver = {0};
  uint64_t abandoned = statistics_of(registry).abandoned;
  for (int each = 0; each < 2; each++)
    leaver.tokens[each] = add_subject(&leaver.lives[each], CBR_NONE);
  worker thread, waiters[2];
  gate inside = GATE(IN_CALLBACK, leaver.tokens[0], &thread);
  ending endings[2];
  close_gate(&inside);
  start(&thread, "leaver", end_inside, &leaver);
  await_gate(&inside);
  for (int each = 0; each < 2; each++) {
    endings[each] = (ending)ENDING(leaver.tokens[each]);
    start(&waiters[each], "waiter", wait_for, &endings[each]);
    CHECK(!run_far(&waiters[each]));
  }
  open_gate(&inside);
  for (int each = 0; each < 2; each++) {
    join(&waiters[each]);
    EXPECT(CBR_OK, endings[each].status);
    EQUAL(1, leaver.lives[each].destroyed);
  }
  join(&thread);
  EQUAL(abandoned + 2, statistics_of(registry).abandoned);
}

/* Threads come and go: what they leave is used again. */
static void G11_threadsThatComeAndGo(void) {
  leaver leaver = {0};
  uint64_t threads = statistics_of(registry).threads;
  for (int each = 0; each < 2; each++)
    leaver.tokens[each] = add_subject(&leaver.lives[each], CBR_NONE);
  for (int each = 0; each < TIMES(2000, 300); each++) {
    worker thread;
    start(&thread, "leaver", end_inside, &leaver);
    join(&thread);
  }
  EQUAL(threads, statistics_of(registry).threads);
  for (int each = 0; each < 2; each++) {
    EXPECT(CBR_OK, cbr_invalidate_wait(leaver.tokens[each], CBR_REASON_ENDED,
                                       CBR_FOREVER));
    EQUAL(1, leaver.lives[each].destroyed);
  }
}

/* -------------------------------------- when the thread's record is gone -- */

static pthread_key_t keys[2];
static _Atomic int destructors;

/* How often a destructor arms itself again, so that the library's own one can
 * still follow in the last of the system's four rounds; ThreadSanitizer needs
 * that round for itself. */
#ifdef THREAD_SANITIZER
enum { ARMINGS = 2 };
#else
enum { ARMINGS = 4 };
#endif

/* Uses the library in a destructor of thread-specific data: before and
 * after the library's own. */
static void use_while_ending(void *argument) {
  leaver *self = argument;
  life life = {0};
  cbr_call call;
  cbr_lease_handle lease;
  EXPECT(CBR_OK, subject_visit(self->tokens[0], &self->lives[0]));
  cbr_token token = add_subject(&life, CBR_NONE);
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  EXPECT(CBR_OK, cbr_lease_end(lease));
  EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(1, life.destroyed);
  EXPECT(CBR_E_STALE, cbr_enter(token, &call));
  CHECK(strlen(cbr_last_error()) > 0);
  /* This one is never left. */
  EXPECT(CBR_OK, cbr_enter(self->tokens[1], &call));
  if (atomic_fetch_add(&destructors, 1) < ARMINGS)
    for (int each = 0; each < 2; each++) pthread_setspecific(keys[each], self);
}

static void arm_and_end(void *argument) {
  leaver *self = argument;
  for (int each = 0; each < 2; each++) pthread_setspecific(keys[each], self);
  EXPECT(CBR_OK, subject_visit(self->tokens[0], &self->lives[0]));
}

static void J22_destructorsUseTheLibrary(void) {
  leaver leaver = {0};
  uint64_t threads = statistics_of(registry).threads;
  for (int each = 0; each < 2; each++)
    leaver.tokens[each] = add_subject(&leaver.lives[each], CBR_NONE);
  atomic_store(&destructors, 0);
  worker thread;
  start(&thread, "ending", arm_and_end, &leaver);
  join(&thread);
  EQUAL(ARMINGS + 2, atomic_load(&destructors));
  EQUAL(threads, statistics_of(registry).threads);
  for (int each = 0; each < 2; each++) {
    EXPECT(CBR_OK, cbr_invalidate_wait(leaver.tokens[each], CBR_REASON_ENDED,
                                       CBR_FOREVER));
    EQUAL(1, leaver.lives[each].destroyed);
  }
}

static void A1_theHistorySaysTheSame(void) {
  close_with_history(registry, &kept);
}

int main(void) {
  /* One key is older than the library's, one is newer. */
  pthread_key_create(&keys[0], use_while_ending);
  registry = open_with_history(&kept, "threads", CBR_LEVEL_CALLS);
  pthread_key_create(&keys[1], use_while_ending);
  TEST(G11_manyThreadsInsideManyCalls);
  TEST(G11_deepRecursionIsProtected);
  TEST(G11_deepCallsAreLeftInAnyOrder);
  TEST(A5_oneThreadInManyRegistries);
  TEST(G11_waitForAThreadThatEndsInside);
  TEST(G11_threadsThatComeAndGo);
  TEST(J22_destructorsUseTheLibrary);
  TEST(A1_theHistorySaysTheSame);
  return finish();
}

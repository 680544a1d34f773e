/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call guarantees (G8-G11), what an ending answers (G14), leases,
 * owners (G17, G18), where and how often a destroy runs (G7), and what the
 * statistics and visitors say about it all.
 */
#include "history.h"

#include <setjmp.h>

static void end_and_wait(cbr_handle handle) {
  EXPECT(CBR_OK,
         cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

static cbr_status enter_and_leave(cbr_token token) {
  cbr_call call;
  cbr_status status = cbr_enter(token, &call);
  if (status == CBR_OK) EXPECT(CBR_OK, cbr_leave(&call));
  return status;
}

/* A token with flags or a type tag, whose destroy counts. */
static cbr_token add_with(cbr_registry registry, struct counted *counted,
                          uint32_t flags, uint64_t tag) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token = CBR_NONE;
  what.label = "special";
  what.function = (cbr_function)count_call;
  what.context = counted;
  what.destroy = count_destroy;
  what.flags = flags;
  what.type_tag = tag;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  return token;
}

/* Another thread that is inside a token until it is told to leave. */
struct visitor {
  cbr_token token;
  struct gate entered, leave;
  pthread_t thread;
};

static void *visit(void *argument) {
  struct visitor *visitor = argument;
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(visitor->token, &call));
  gate_open(&visitor->entered);
  gate_pass(&visitor->leave);
  EXPECT(CBR_OK, cbr_leave(&call));
  return NULL;
}

static void visitor_begin(struct visitor *visitor, cbr_token token) {
  *visitor = (struct visitor){token, GATE_INIT, GATE_INIT, pthread_self()};
  CHECK(pthread_create(&visitor->thread, NULL, visit, visitor) == 0);
  gate_pass(&visitor->entered);
}

static void visitor_end(struct visitor *visitor) {
  gate_open(&visitor->leave);
  pthread_join(visitor->thread, NULL);
}

/* --------------------------------------------------------- single calls -- */

static int add_up(void *context, int a, int b) {
  count_call(context);
  return a + b;
}

static void G8_functionAndContextAreAPair(void) {
  cbr_registry registry = open_registry("pairs", CBR_LEVEL_CALLS);
  struct counted contexts[2] = {{0, 0, pthread_self()},
                                {0, 0, pthread_self()}};
  cbr_token counting = add(registry, "counting", &contexts[0], true, CBR_NONE);
  cbr_token adding;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "adding", add_up, &contexts[1],
                              count_destroy, CBR_NONE, &adding));
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(counting, &call));
  CHECK(call.function == (cbr_function)count_call);
  CHECK(call.context == &contexts[0]);
  CHECK(call.token == counting);
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(CBR_NONE, call.token);
  EXPECT(CBR_E_INVALID, cbr_leave(&call));
  int sum = 0;
  CBR_CALL_RESULT(sum, adding, int (*)(void *, int, int),
                  (cbr_now.context, 20, 22));
  EQUAL(42, sum);
  EQUAL(1, calls_of(&contexts[1]));
  end_and_wait(adding);
  /* A refused call leaves the result alone. */
  CBR_CALL_RESULT(sum, adding, int (*)(void *, int, int),
                  (cbr_now.context, 1, 1));
  EQUAL(42, sum);
  EQUAL(1, calls_of(&contexts[1]));
  close_registry(registry);
}

static void G9_nothingEntersAfterTheEnd(void) {
  cbr_registry registry = open_registry("end", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token with = add(registry, "with", &context, true, CBR_NONE);
  cbr_token without = add(registry, "without", &context, false, CBR_NONE);
  EXPECT(CBR_OK, cbr_invalidate(with, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_invalidate(without, CBR_REASON_ENDED));
  EXPECT(CBR_E_STALE, enter_and_leave(with));
  EXPECT(CBR_E_STALE, enter_and_leave(without));
  CHECK(!calls(with) && !calls(without));
  EQUAL(0, calls_of(&context));
  close_registry(registry);
}

/* The waiting ending returns when the gate has opened, not before. */
struct waiter {
  cbr_token token;
  struct counted *context;
  bool gate_was_open;
  int destroyed_at_return;
};

static bool gate_is_open; /* set before the visitor may leave */

static void *wait_for_the_end(void *argument) {
  struct waiter *waiter = argument;
  EXPECT(CBR_OK, cbr_invalidate_wait(waiter->token, CBR_REASON_ENDED,
                                     CBR_FOREVER));
  waiter->gate_was_open = __atomic_load_n(&gate_is_open, __ATOMIC_SEQ_CST);
  waiter->destroyed_at_return = destroyed(waiter->context);
  return NULL;
}

static void A1_waitingCoversACallInFlight(void) {
  cbr_registry registry = open_registry("wait", CBR_LEVEL_CALLS);
  for (int round = 0; round < TIMES(100, 20); round++) {
    struct counted context = {0};
    cbr_token token = add(registry, "x", &context, round % 2, CBR_NONE);
    struct waiter waiter = {token, &context, false, 0};
    struct visitor visitor;
    pthread_t thread;
    __atomic_store_n(&gate_is_open, false, __ATOMIC_SEQ_CST);
    visitor_begin(&visitor, token);
    CHECK(pthread_create(&thread, NULL, wait_for_the_end, &waiter) == 0);
    while (cbr_is_live(token)) sched_yield();
    EXPECT(CBR_E_TIMEOUT,
           cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
    EQUAL(0, destroyed(&context));
    __atomic_store_n(&gate_is_open, true, __ATOMIC_SEQ_CST);
    visitor_end(&visitor);
    pthread_join(thread, NULL);
    CHECK(waiter.gate_was_open);
    EQUAL(round % 2, waiter.destroyed_at_return);
    EQUAL(round % 2, destroyed(&context));
  }
  close_registry(registry);
}

/* ---------------------------------------------- interfaces, tags, flags -- */

static int first(void *context) {
  count_call(context);
  return 1;
}

static int third(void *context) {
  count_call(context);
  return 3;
}

static void G10_methodsAreFoundOrHaveADefault(void) {
  cbr_registry registry = open_registry("methods", CBR_LEVEL_CALLS);
  char names[4][8] = {"first", "second", "third", "fourth"};
  cbr_method methods[4] = {{names[0], CBR_METHOD_REQUIRED, 0},
                           {names[1], CBR_METHOD_DEFAULT, -5},
                           {names[2], 0, 0},
                           {names[3], 0, 0}};
  char name[] = "G10";
  cbr_interface interface = {sizeof interface, name, 7, 4, methods};
  const cbr_interface same = {sizeof same, "G10", 7, 1, NULL};
  const cbr_interface newer = {sizeof newer, "G10", 8, 4, methods};
  const cbr_interface longer = {sizeof longer, "G100", 7, 4, methods};
  cbr_function table[4] = {(cbr_function)first, NULL, (cbr_function)third,
                           NULL};
  struct counted context = {0};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.interface = &interface;
  what.methods = table;
  what.context = &context;
  what.destroy = count_destroy;
  cbr_token token;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  /* Everything but the context was copied. */
  memset(names, '!', sizeof names);
  memset(methods, 0, sizeof methods);
  memset(table, 0, sizeof table);
  memset(&interface, 0, sizeof interface);
  memset(name, '!', sizeof name - 1);
  cbr_call call;
  for (uint32_t method = 0; method < 4; method++) {
    bool is_there = method % 2 == 0;
    call.disposition = 99;
    EXPECT(is_there ? CBR_OK : CBR_E_UNIMPLEMENTED,
           cbr_responds(token, &same, method));
    EXPECT(is_there ? CBR_OK : CBR_E_UNIMPLEMENTED,
           cbr_enter_method(token, &same, method, &call));
    if (is_there) {
      CHECK(call.context == &context);
      EQUAL(method + 1, ((int (*)(void *))call.function)(call.context));
      EXPECT(CBR_OK, cbr_leave(&call));
    } else {
      CHECK(call.function == NULL && call.context == NULL);
      EQUAL(method == 1 ? -5 : 0, call.disposition);
      EXPECT(CBR_E_INVALID, cbr_leave(&call));
    }
  }
  EQUAL(2, calls_of(&context));
  EXPECT(CBR_E_INTERFACE, cbr_enter_method(token, &newer, 0, &call));
  EXPECT(CBR_E_INTERFACE, cbr_enter_method(token, &longer, 0, &call));
  EXPECT(CBR_E_INTERFACE, cbr_responds(token, &newer, 0));
  EXPECT(CBR_E_INTERFACE, cbr_enter(token, &call));
  EXPECT(CBR_E_INTERFACE, cbr_enter_typed(token, 0, &call));
  /* Ending it while a method runs is no different. */
  EXPECT(CBR_OK, cbr_enter_method(token, &same, 2, &call));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(3, ((int (*)(void *))call.function)(call.context));
  EQUAL(0, destroyed(&context));
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(1, destroyed(&context));
  EXPECT(CBR_E_STALE, cbr_enter_method(token, &same, 0, &call));
  EXPECT(CBR_E_STALE, cbr_responds(token, &same, 0));
  EQUAL(7, statistics_of(registry).refused);
  close_registry(registry);
}

static void C14_aWrongTagIsRefusedUntouched(void) {
  cbr_registry registry = open_registry("tags", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token tagged = add_with(registry, &context, 0, 0xFEED);
  cbr_token plain = add(registry, "plain", &context, false, CBR_NONE);
  cbr_call call;
  static const uint64_t wrong[] = {0, 1, 0xFEEC, 0xFEED0000, UINT64_MAX};
  for (int i = 0; i < 5; i++) {
    EXPECT(CBR_E_INTERFACE, cbr_enter_typed(tagged, wrong[i], &call));
    CHECK(call.function == NULL && call.context == NULL);
    if (wrong[i] == 0) continue;
    EXPECT(CBR_E_INTERFACE, cbr_enter_typed(plain, wrong[i], &call));
  }
  EXPECT(CBR_E_INTERFACE, cbr_enter(tagged, &call));
  CHECK(!calls(tagged));
  EQUAL(0, calls_of(&context));
  EXPECT(CBR_OK, cbr_enter_typed(tagged, 0xFEED, &call));
  CHECK(call.context == &context);
  EXPECT(CBR_OK, cbr_leave(&call));
  EXPECT(CBR_OK, cbr_enter_typed(plain, 0, &call));
  EXPECT(CBR_OK, cbr_leave(&call));
  close_registry(registry);
}

struct bound {
  cbr_registry registry;
  cbr_token token;
  struct counted context;
};

static void *enter_bound(void *argument) {
  struct bound *bound = argument;
  EXPECT(CBR_E_THREAD, enter_and_leave(bound->token));
  CHECK(!calls(bound->token));
  return NULL;
}

static void *register_bound(void *argument) {
  struct bound *bound = argument;
  bound->token = add_with(bound->registry, &bound->context, CBR_THREAD_BOUND,
                          0);
  CHECK(calls(bound->token));
  return NULL;
}

static void F13_aBoundTokenIsRefusedOnOtherThreads(void) {
  struct bound bound = {open_registry("bound", CBR_LEVEL_CALLS), CBR_NONE,
                        {0, 0, pthread_self()}};
  bound.token = add_with(bound.registry, &bound.context, CBR_THREAD_BOUND, 0);
  CHECK(calls(bound.token));
  on_thread(enter_bound, &bound);
  CHECK(calls(bound.token));
  EQUAL(2, calls_of(&bound.context));
  /* Ending is for anyone; and when its thread has ended, no later thread is
   * taken for it. */
  end_and_wait(bound.token);
  on_thread(register_bound, &bound);
  for (int i = 0; i < 3; i++) on_thread(enter_bound, &bound);
  EXPECT(CBR_E_THREAD, enter_and_leave(bound.token));
  EQUAL(3, calls_of(&bound.context));
  close_registry(bound.registry);
  EQUAL(2, destroyed(&bound.context));
}

/* ------------------------------------------------------------ one-shots -- */

struct once {
  struct counted counted;
  cbr_token token;
};

static void emit_again(void *context) {
  struct once *once = context;
  count_call(&once->counted);
  cbr_call call;
  EXPECT(CBR_E_CONSUMED, cbr_enter(once->token, &call));
  CHECK(!calls(once->token));
  CHECK(!cbr_is_live(once->token));
  EQUAL(0, destroyed(&once->counted));
}

static void D9_aOneShotThatEmitsItselfRunsOnce(void) {
  cbr_registry registry = open_registry("once", CBR_LEVEL_CALLS);
  struct once once = {{0, 0, pthread_self()}, CBR_NONE};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.function = (cbr_function)emit_again;
  what.context = &once;
  what.destroy = count_destroy;
  what.flags = CBR_ONE_SHOT;
  EXPECT(CBR_OK, cbr_register(registry, &what, &once.token));
  CHECK(calls(once.token));
  CHECK(!calls(once.token));
  EQUAL(1, calls_of(&once.counted));
  EQUAL(1, destroyed(&once.counted));
  EXPECT(CBR_E_CONSUMED, enter_and_leave(once.token));
  cbr_statistics now = statistics_of(registry);
  EQUAL(1, now.registered);
  EQUAL(1, now.ended);
  EQUAL(0, now.live_tokens);
  EQUAL(4, now.refused);
  close_registry(registry);
}

enum { RACERS = 4 };

struct race {
  cbr_token token;
  struct counted *context;
  pthread_barrier_t *barrier;
  int entered, consumed;
};

static void *race_for_it(void *argument) {
  struct race *race = argument;
  cbr_call call;
  pthread_barrier_wait(race->barrier);
  cbr_status status = cbr_enter(race->token, &call);
  race->entered += status == CBR_OK;
  race->consumed += status == CBR_E_CONSUMED;
  if (status == CBR_OK) {
    EQUAL(0, destroyed(race->context));
    EXPECT(CBR_OK, cbr_leave(&call));
  }
  return NULL;
}

static void C21_ofManyThreadsOneGetsTheOneShot(void) {
  cbr_registry registry = open_registry("race", CBR_LEVEL_CALLS);
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, RACERS);
  for (int round = 0; round < TIMES(500, 100); round++) {
    struct counted context = {0};
    cbr_token token = add_with(registry, &context, CBR_ONE_SHOT, 0);
    struct race each[RACERS];
    pthread_t threads[RACERS];
    int entered = 0, consumed = 0;
    for (int i = 0; i < RACERS; i++) {
      each[i] = (struct race){token, &context, &barrier, 0, 0};
      CHECK(pthread_create(&threads[i], NULL, race_for_it, &each[i]) == 0);
    }
    for (int i = 0; i < RACERS; i++) {
      pthread_join(threads[i], NULL);
      entered += each[i].entered;
      consumed += each[i].consumed;
    }
    EQUAL(1, entered);
    EQUAL(RACERS - 1, consumed);
    EQUAL(1, destroyed(&context));
  }
  pthread_barrier_destroy(&barrier);
  close_registry(registry);
}

/* ------------------------------------------------ nesting, in any order -- */

enum { DEPTH = 1000 };

static void shuffle(int *numbers, int count, unsigned seed) {
  for (int i = 0; i < count; i++) numbers[i] = i;
  for (int i = count - 1; i > 0; i--) {
    seed = seed * 1103515245u + 12345u;
    int other = (int)(seed / 65536u % (unsigned)(i + 1));
    int kept = numbers[i];
    numbers[i] = numbers[other];
    numbers[other] = kept;
  }
}

/* A thousand calls deep, two tokens by turns, ended in the middle: what has
 * entered stays valid, and the last to leave destroys. */
static void nest(cbr_registry registry, const int *order, int count) {
  static cbr_call open[DEPTH];
  struct counted contexts[2] = {{0, 0, pthread_self()},
                                {0, 0, pthread_self()}};
  cbr_token tokens[2];
  int left[2] = {0, 0};
  for (int i = 0; i < 2; i++)
    tokens[i] = add(registry, "nested", &contexts[i], true, CBR_NONE);
  for (int i = 0; i < count; i++) {
    if (cbr_enter(tokens[i % 2], &open[i]) != CBR_OK) CHECK(!"entered");
    if (open[i].context != &contexts[i % 2]) CHECK(!"its context");
    if (i != count / 2) continue;
    EXPECT(CBR_OK, cbr_leave(&open[i]));
    EXPECT(CBR_OK, cbr_enter(tokens[i % 2], &open[i]));
  }
  EQUAL(count, cbr_mark());
  for (int i = 0; i < 2; i++)
    EXPECT(CBR_DEFERRED, cbr_invalidate_wait(tokens[i], CBR_REASON_ENDED,
                                             CBR_FOREVER));
  for (int i = 0; i < count; i++) {
    int which = order[i] % 2;
    EXPECT(CBR_OK, cbr_leave(&open[order[i]]));
    left[which]++;
    if (destroyed(&contexts[which]) != (left[which] == count / 2)) {
      CHECK(!"destroyed by the last one that leaves");
      break;
    }
  }
  EQUAL(0, cbr_mark());
  for (int i = 0; i < 2; i++) {
    EQUAL(1, destroyed(&contexts[i]));
    EXPECT(CBR_E_STALE, enter_and_leave(tokens[i]));
  }
}

static void G11_callsNestToAnyDepth(void) {
  cbr_registry registry = open_registry("nested", CBR_LEVEL_CALLS);
  int order[DEPTH];
  for (int i = 0; i < DEPTH; i++) order[i] = DEPTH - 1 - i;
  nest(registry, order, DEPTH);
  close_registry(registry);
}

/* A call is left once: a copy of it that is left again is not taken for a
 * later call of the same token at the same depth, nor on another thread. */
static cbr_call stray;
static cbr_status stray_status;

static void leave_stray(void *unused) {
  (void)unused;
  stray_status = cbr_leave(&stray);
}

static void leave_stray_inside(void *context) {
  cbr_call inner;
  EXPECT(CBR_OK, cbr_enter(*(cbr_token *)context, &inner));
  leave_stray(NULL);
  EXPECT(CBR_OK, cbr_leave(&inner));
}

static void G11_aCallIsLeftOnce(void) {
  const uint32_t levels[] = {CBR_LEVEL_OFF, CBR_LEVEL_LIFECYCLE,
                             CBR_LEVEL_CALLS};
  for (int depth = 0; depth < 200; depth += depth < 3 ? 1 : 98)
    for (int each = 0; each < 3; each++) {
      cbr_registry registry = open_registry("once", levels[each]);
      cbr_call outer[200], call;
      cbr_token token = CBR_NONE;
      EXPECT(CBR_OK, CBR_REGISTER(registry, "once", leave_stray, NULL, NULL,
                                  CBR_NONE, &token));
      for (int i = 0; i < depth; i++)
        EXPECT(CBR_OK, cbr_enter(token, &outer[i]));
      EXPECT(CBR_OK, cbr_enter(token, &call));
      stray = call;
      EXPECT(CBR_OK, cbr_leave(&call));
      leave_stray_inside(&token);
      EXPECT(CBR_E_INVALID, stray_status);
      EXPECT(CBR_OK, cbr_enter(token, &call));
      stray = call;
      worker other;
      start(&other, "other", leave_stray_inside, &token);
      join(&other);
      EXPECT(CBR_E_INVALID, stray_status);
      EXPECT(CBR_OK, cbr_leave(&call));
      for (int i = depth; i-- > 0;) EXPECT(CBR_OK, cbr_leave(&outer[i]));
      close_registry(registry);
    }
}

/* Ending again says who was first, also when the slot is free or another's
 * (D18). */
static void G16_endingAgainTellsOfTheFirst(void) {
  cbr_registry registry = open_registry("again", CBR_LEVEL_LIFECYCLE);
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token first = CBR_NONE, other = CBR_NONE;
  what.function = (cbr_function)(void (*)(void))leave_stray;
  what.destroy = free;
  what.label = "the first";
  what.context = malloc(1);
  EXPECT(CBR_OK, cbr_register(registry, &what, &first));
  EXPECT(CBR_OK, cbr_invalidate(first, CBR_REASON_CANCELLED));
  for (int round = 0; round < 2; round++) {
    EXPECT(CBR_ALREADY, cbr_invalidate(first, CBR_REASON_ENDED));
    const char *sentence = cbr_last_error();
    CHECK(strstr(sentence, "\"the first\", which ended") != NULL);
    CHECK(strstr(sentence, "cancelled") != NULL);
    what.label = "another";
    for (int each = 0; each < 1000; each++) {
      what.context = malloc(1);
      EXPECT(CBR_OK, cbr_register(registry, &what, &other));
      EXPECT(CBR_OK, cbr_invalidate(other, CBR_REASON_ENDED));
    }
    EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                   NULL));
  }
  close_registry(registry);
}

static void G11_callsAreLeftInAnyOrder(void) {
  cbr_registry registry = open_registry("any order", CBR_LEVEL_CALLS);
  int order[DEPTH];
  for (int i = 0; i < DEPTH; i++) order[i] = i;
  nest(registry, order, DEPTH);
  /* Around the sixteen that a thread has room for, and a block beyond. */
  static const int counts[] = {2, 14, 16, 18, 20, 126, 128, 130, DEPTH};
  for (unsigned seed = 1; seed <= TIMES(20u, 5u); seed++) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      shuffle(order, counts[i], seed);
      nest(registry, order, counts[i]);
    }
  }
  close_registry(registry);
}

/* While some calls of a thread are left and entered again, others see it. */
static void G11_aDeepCallIsSeenByAWaiter(void) {
  cbr_registry registry = open_registry("deep", CBR_LEVEL_CALLS);
  static cbr_call open[DEPTH];
  struct counted context = {0}, filler = {0};
  cbr_token token = add(registry, "deep", &context, true, CBR_NONE);
  cbr_token other = add(registry, "filler", &filler, false, CBR_NONE);
  for (int i = 0; i < DEPTH; i++)
    EXPECT(CBR_OK, cbr_enter(i == DEPTH - 1 ? token : other, &open[i]));
  struct waiter waiter = {token, &context, false, 0};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for_the_end, &waiter) == 0);
  while (cbr_is_live(token)) sched_yield();
  for (int i = 0; i < DEPTH - 1; i++) EXPECT(CBR_OK, cbr_leave(&open[i]));
  EQUAL(0, destroyed(&context));
  EQUAL(DEPTH, cbr_mark());
  EXPECT(CBR_OK, cbr_leave(&open[DEPTH - 1]));
  pthread_join(thread, NULL);
  EQUAL(1, waiter.destroyed_at_return);
  EQUAL(0, cbr_mark());
  close_registry(registry);
}

/* --------------------------------------------------------------- leases -- */

static void *end_lease(void *argument) {
  EXPECT(CBR_OK, cbr_lease_end(*(cbr_lease_handle *)argument));
  return NULL;
}

static void G7_theLastLeaseDestroys(void) {
  cbr_registry registry = open_registry("leases", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token token = add(registry, "leased", &context, true, CBR_NONE);
  enum { LEASES = 3 };
  cbr_lease_handle leases[LEASES];
  for (int i = 0; i < LEASES; i++)
    EXPECT(CBR_OK, cbr_lease(token, &leases[i]));
  EQUAL(LEASES, statistics_of(registry).live_leases);
  EXPECT(CBR_PENDING, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  cbr_lease_handle late = 1;
  EXPECT(CBR_E_STALE, cbr_lease(token, &late));
  EQUAL(CBR_NONE, late);
  for (int i = 0; i < LEASES; i++) {
    /* Of a dead token, too. */
    cbr_call call;
    EXPECT(CBR_OK, cbr_lease_get(leases[i], &call));
    CHECK(call.function == (cbr_function)count_call);
    CHECK(call.context == &context);
    EXPECT(CBR_E_INVALID, cbr_leave(&call));
    EQUAL(0, destroyed(&context));
    on_thread(end_lease, &leases[i]);
    EXPECT(CBR_ALREADY, cbr_lease_end(leases[i]));
    EXPECT(CBR_E_STALE, cbr_lease_get(leases[i], &call));
    CHECK(call.function == NULL);
  }
  EQUAL(1, destroyed(&context));
  CHECK(!pthread_equal(context.destroyed_by, pthread_self()));
  EQUAL(0, statistics_of(registry).live_leases);
  /* A lease can be ended like anything else; a live token survives that. */
  token = add(registry, "live", &context, true, CBR_NONE);
  EXPECT(CBR_OK, cbr_lease(token, &leases[0]));
  CHECK(cbr_is_live(leases[0]));
  EXPECT(CBR_OK, cbr_invalidate(leases[0], CBR_REASON_ENDED));
  CHECK(!cbr_is_live(leases[0]));
  CHECK(calls(token));
  EQUAL(1, destroyed(&context));
  close_registry(registry);
  EQUAL(2, destroyed(&context));
}

/* Closing does not wait for ever for a lease, and the last one finishes it. */
static void E5_aForgottenLeaseIsNamedAtClose(void) {
  cbr_registry registry = open_registry("leases", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token token = add(registry, "held", &context, true, CBR_NONE);
  cbr_lease_handle lease;
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  EXPECT(CBR_E_TIMEOUT, cbr_registry_close(registry, 0));
  CHECK(!cbr_is_live(registry));
  EXPECT(CBR_E_STALE, enter_and_leave(token));
  EQUAL(0, destroyed(&context));
  cbr_call call;
  EXPECT(CBR_OK, cbr_lease_get(lease, &call));
  CHECK(call.context == &context);
  EXPECT(CBR_OK, cbr_lease_end(lease));
  EQUAL(1, destroyed(&context));
  EXPECT(CBR_ALREADY, cbr_registry_close(registry, CBR_FOREVER));
  EXPECT(CBR_E_CLOSED, cbr_lease_end(lease));
}

/* ----------------------------------------------- abandoned calls, jumps -- */

static jmp_buf back;

static void jump(void *context) {
  count_call(context);
  longjmp(back, 1);
}

static void H10_jumpingOutOfCallsHoldsNothingUp(void) {
  cbr_registry registry = open_registry("jumps", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token token;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "jump", jump, &context, count_destroy,
                              CBR_NONE, &token));
  enum { JUMPS = 1000 };
  for (volatile int i = 0; i < JUMPS; i++) {
    size_t mark = cbr_mark();
    if (setjmp(back) == 0) {
      CBR_CALL(token, void (*)(void *), (cbr_now.context));
      CHECK(!"came back by return");
    }
    EQUAL(mark + 1, cbr_mark());
    EXPECT(CBR_OK, cbr_unwind(mark));
    EQUAL(mark, cbr_mark());
  }
  EQUAL(JUMPS, calls_of(&context));
  EQUAL(JUMPS, statistics_of(registry).abandoned);
  end_and_wait(token);
  EQUAL(1, destroyed(&context));
  close_registry(registry);
}

/* The mark keeps what was entered before it; several are left at once, also of
 * a dead token, which is destroyed by that. */
static void H10_unwindingStopsAtTheMark(void) {
  cbr_registry registry = open_registry("mark", CBR_LEVEL_CALLS);
  struct counted kept = {0}, jumped = {0};
  cbr_token outer = add(registry, "outer", &kept, true, CBR_NONE);
  cbr_token inner = add(registry, "inner", &jumped, true, CBR_NONE);
  cbr_call call, dropped[40];
  EXPECT(CBR_OK, cbr_enter(outer, &call));
  size_t mark = cbr_mark();
  for (int i = 0; i < 40; i++) EXPECT(CBR_OK, cbr_enter(inner, &dropped[i]));
  EXPECT(CBR_DEFERRED, cbr_invalidate(inner, CBR_REASON_ENDED));
  EQUAL(0, destroyed(&jumped));
  EXPECT(CBR_OK, cbr_unwind(mark));
  EQUAL(1, destroyed(&jumped));
  EQUAL(40, statistics_of(registry).abandoned);
  for (int i = 0; i < 40; i++) EXPECT(CBR_E_INVALID, cbr_leave(&dropped[i]));
  EQUAL(1, cbr_mark());
  EXPECT(CBR_DEFERRED, cbr_invalidate(outer, CBR_REASON_ENDED));
  EQUAL(0, destroyed(&kept));
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(1, destroyed(&kept));
  close_registry(registry);
}

static void destroy_and_jump(void *context) {
  count_destroy(context);
  longjmp(back, 1);
}

/* Out of a destroy: the others of its group are destroyed all the same. */
static void H10_jumpingOutOfADestroyLosesNoOther(void) {
  cbr_registry registry = open_registry("destroy", CBR_LEVEL_CALLS);
  cbr_owner owner = add_owner(registry, "owner");
  struct counted calm = {0}, jumping = {0};
  cbr_token token;
  for (int i = 0; i < 4; i++) {
    (void)add(registry, "calm", &calm, true, owner);
    if (i != 1) continue;
    EXPECT(CBR_OK, CBR_REGISTER(registry, "jumping", count_call, &jumping,
                                destroy_and_jump, owner, &token));
  }
  size_t mark = cbr_mark();
  if (setjmp(back) == 0) {
    (void)!cbr_invalidate(owner, CBR_REASON_ENDED);
    CHECK(!"came back by return");
  }
  EXPECT(CBR_OK, cbr_unwind(mark));
  EQUAL(0, cbr_mark());
  EQUAL(1, destroyed(&jumping));
  EQUAL(4, destroyed(&calm));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  close_registry(registry);
  EQUAL(1, destroyed(&jumping));
}

static cbr_disposition visit_and_jump(void *context, const cbr_item *item) {
  CHECK(item->handle != CBR_NONE);
  ++*(int *)context;
  longjmp(back, 1);
}

static void H10_jumpingOutOfAVisitorHoldsNothingUp(void) {
  cbr_registry registry = open_registry("visitor", CBR_LEVEL_CALLS);
  struct counted context = {0};
  (void)add(registry, "x", &context, true, CBR_NONE);
  static int visits;
  visits = 0;
  size_t mark = cbr_mark();
  if (setjmp(back) == 0) {
    (void)cbr_registry_each_live(registry, visit_and_jump, &visits);
    CHECK(!"came back by return");
  }
  EXPECT(CBR_OK, cbr_unwind(mark));
  EQUAL(0, cbr_mark());
  EQUAL(1, visits);
  EQUAL(0, statistics_of(registry).abandoned);
  close_registry(registry);
  EQUAL(1, destroyed(&context));
}

static void *exit_inside(void *argument) {
  cbr_call call, again;
  EXPECT(CBR_OK, cbr_enter(*(cbr_token *)argument, &call));
  EXPECT(CBR_OK, cbr_enter(*(cbr_token *)argument, &again));
  pthread_exit(NULL);
}

static void G11_aThreadThatEndsInsideACallHoldsNothingUp(void) {
  cbr_registry registry = open_registry("exits", CBR_LEVEL_CALLS);
  for (int round = 0; round < 20; round++) {
    struct counted context = {0};
    cbr_token token = add(registry, "left alone", &context, true, CBR_NONE);
    on_thread(exit_inside, &token);
    EQUAL(2 * (round + 1), statistics_of(registry).abandoned);
    EQUAL(0, destroyed(&context));
    end_and_wait(token);
    EQUAL(1, destroyed(&context));
  }
  close_registry(registry);
}

/* One that was ended meanwhile is destroyed where its last thread ends. */
struct leaver {
  cbr_token token;
  struct gate entered, ended;
};

static void *exit_after_the_end(void *argument) {
  struct leaver *leaver = argument;
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(leaver->token, &call));
  gate_open(&leaver->entered);
  gate_pass(&leaver->ended);
  pthread_exit(NULL);
}

static void G11_theEndOfAThreadDestroysWhatItWasIn(void) {
  cbr_registry registry = open_registry("exits", CBR_LEVEL_CALLS);
  struct counted context = {0};
  struct leaver leaver = {CBR_NONE, GATE_INIT, GATE_INIT};
  leaver.token = add(registry, "abandoned", &context, true, CBR_NONE);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, exit_after_the_end, &leaver) == 0);
  gate_pass(&leaver.entered);
  EXPECT(CBR_PENDING, cbr_invalidate(leaver.token, CBR_REASON_ENDED));
  EQUAL(0, destroyed(&context));
  gate_open(&leaver.ended);
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(leaver.token, CBR_REASON_ENDED,
                                          CBR_FOREVER));
  EQUAL(1, destroyed(&context));
  CHECK(pthread_equal(context.destroyed_by, thread));
  pthread_join(thread, NULL);
  close_registry(registry);
}

/* ------------------------------------------- outcomes, and who destroys -- */

static void G14_outcomesOfAnEnding(void) {
  cbr_registry registry = open_registry("outcomes", CBR_LEVEL_CALLS);
  struct counted context = {0};
  struct visitor visitor;
  cbr_call call;
  cbr_token token = add(registry, "quiet", &context, true, CBR_NONE);
  EXPECT(CBR_OK, cbr_invalidate(token, 1234));
  EXPECT(CBR_ALREADY, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(1, destroyed(&context));

  token = add(registry, "inside", &context, true, CBR_NONE);
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, 1234));
  EXPECT(CBR_ALREADY, cbr_invalidate(token, CBR_REASON_ENDED));
  const char *error = cbr_last_error();
  CHECK(strstr(error, "\"inside\"") && strstr(error, "ago on thread"));
  CHECK(strstr(error, "1234") != NULL);
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  EXPECT(CBR_OK, cbr_leave(&call));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  EQUAL(2, destroyed(&context));

  token = add(registry, "elsewhere", &context, true, CBR_NONE);
  visitor_begin(&visitor, token);
  EXPECT(CBR_PENDING, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  CHECK(strstr(cbr_last_error(), "\"elsewhere\"") != NULL);
  EXPECT(CBR_E_TIMEOUT,
         cbr_invalidate_wait(token, CBR_REASON_ENDED, 1000000));
  EQUAL(2, destroyed(&context));
  visitor_end(&visitor);
  EQUAL(3, destroyed(&context));
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));

  /* Without a destroy nobody looks for calls, unless he waits. */
  token = add(registry, "no destroy", &context, false, CBR_NONE);
  visitor_begin(&visitor, token);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  visitor_end(&visitor);
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));

  /* Without a destroy, but inside it. */
  token = add(registry, "inside", &context, false, CBR_NONE);
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_leave(&call));
  close_registry(registry);
}

static void F10_destroyRunsWhereTheLastHoldEnds(void) {
  cbr_registry registry = open_registry("threads", CBR_LEVEL_CALLS);
  struct counted context = {0};
  pthread_t self = pthread_self();
  /* The ending thread, when nothing is in flight. */
  cbr_token token = add(registry, "ender", &context, true, CBR_NONE);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  CHECK(pthread_equal(context.destroyed_by, self));
  /* The one that leaves last. */
  token = add(registry, "leaver", &context, true, CBR_NONE);
  struct visitor visitor;
  visitor_begin(&visitor, token);
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_DEFERRED, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(1, destroyed(&context));
  pthread_t other = visitor.thread;
  visitor_end(&visitor);
  EQUAL(2, destroyed(&context));
  CHECK(pthread_equal(context.destroyed_by, other));
  close_registry(registry);
}

/* Ender, callers and a leaser at once: exactly one destroy (F15). */
struct storm {
  cbr_token token;
  struct counted *context;
  pthread_barrier_t *barrier;
  int role;
};

static void *storm(void *argument) {
  struct storm *mine = argument;
  cbr_lease_handle lease;
  cbr_call call;
  pthread_barrier_wait(mine->barrier);
  if (mine->role == 0) {
    cbr_status status = cbr_invalidate(mine->token, CBR_REASON_ENDED);
    CHECK(status == CBR_OK || status == CBR_PENDING || status == CBR_ALREADY);
  } else if (mine->role == 1 && cbr_lease(mine->token, &lease) == CBR_OK) {
    EQUAL(0, destroyed(mine->context));
    EXPECT(CBR_OK, cbr_lease_end(lease));
  } else if (cbr_enter(mine->token, &call) == CBR_OK) {
    EQUAL(0, destroyed(mine->context));
    EXPECT(CBR_OK, cbr_leave(&call));
  }
  return NULL;
}

static void F15_destroyRunsExactlyOnce(void) {
  history kept;
  cbr_registry registry = open_with_history(&kept, "storm", CBR_LEVEL_CALLS);
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 4);
  for (int round = 0; round < TIMES(1000, 100); round++) {
    struct counted context = {0};
    cbr_token token = add(registry, "once", &context, true, CBR_NONE);
    struct storm each[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
      each[i] = (struct storm){token, &context, &barrier, i % 3};
      CHECK(pthread_create(&threads[i], NULL, storm, &each[i]) == 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    EQUAL(1, destroyed(&context));
  }
  pthread_barrier_destroy(&barrier);
  close_with_history(registry, &kept);
}

/* --------------------------------------------------------------- owners -- */

static void G17_anOwnersEndReachesItsGrandchildren(void) {
  cbr_registry registry = open_registry("family", CBR_LEVEL_CALLS);
  enum { GENERATIONS = 4, TOKENS = 3 };
  cbr_owner owners[GENERATIONS];
  struct counted contexts[GENERATIONS] = {{0}}, stranger = {0};
  cbr_token tokens[GENERATIONS][TOKENS];
  for (int i = 0; i < GENERATIONS; i++) {
    if (i == 0) owners[i] = add_owner(registry, "first");
    else
      EXPECT(CBR_OK,
             cbr_owner_create_child(owners[i - 1], "child", &owners[i]));
    for (int j = 0; j < TOKENS; j++)
      tokens[i][j] = add(registry, "x", &contexts[i], j != 0, owners[i]);
  }
  cbr_token other = add(registry, "other", &stranger, true, CBR_NONE);
  /* The youngest goes alone. */
  EXPECT(CBR_OK, cbr_invalidate(owners[3], CBR_REASON_ENDED));
  EQUAL(TOKENS - 1, destroyed(&contexts[3]));
  for (int i = 0; i < 3; i++) CHECK(cbr_is_live(owners[i]));
  EQUAL(3 * TOKENS + 1, statistics_of(registry).live_tokens);
  EQUAL(3, statistics_of(registry).live_owners);
  /* The eldest takes the rest along. */
  EXPECT(CBR_OK, cbr_invalidate(owners[0], CBR_REASON_ENDED));
  for (int i = 0; i < GENERATIONS; i++) {
    CHECK(!cbr_is_live(owners[i]));
    EQUAL(TOKENS - 1, destroyed(&contexts[i]));
    for (int j = 0; j < TOKENS; j++) {
      EXPECT(CBR_E_STALE, enter_and_leave(tokens[i][j]));
      CHECK(pthread_equal(contexts[i].destroyed_by, pthread_self()));
    }
    cbr_owner child;
    EXPECT(CBR_E_STALE, cbr_owner_create_child(owners[i], "late", &child));
  }
  EXPECT(CBR_ALREADY, cbr_invalidate(owners[1], CBR_REASON_ENDED));
  CHECK(calls(other));
  EQUAL(1, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_owners);
  close_registry(registry);
}

/* A call of one child, elsewhere or one's own, decides about the whole. */
/* However much belongs to it: one fence for all. */
static void G17_anOwnersEndCostsOneFence(void) {
  enum { COUNT = 10000 };
  for (int with_destroy = 0; with_destroy < 2; with_destroy++) {
    cbr_registry registry = open_registry("family", CBR_LEVEL_OFF);
    struct counted context = {0};
    cbr_owner owner = add_owner(registry, "owner");
    for (int i = 0; i < COUNT; i++)
      add(registry, "x", &context, with_destroy, owner);
    uint64_t fences = statistics_of(registry).heavy_fences;
    EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
    EQUAL(fences + 1, statistics_of(registry).heavy_fences);
    EQUAL(with_destroy ? COUNT : 0, destroyed(&context));
    EQUAL(0, statistics_of(registry).live_tokens);
    close_registry(registry);
  }
}

static void G17_anOwnersOutcomeIsThatOfAllItHas(void) {
  cbr_registry registry = open_registry("family", CBR_LEVEL_CALLS);
  struct counted context = {0};
  struct visitor visitor;
  cbr_call call;
  cbr_owner owner = add_owner(registry, "pending");
  cbr_token token = add(registry, "x", &context, true, owner);
  (void)add(registry, "y", &context, true, owner);
  visitor_begin(&visitor, token);
  EXPECT(CBR_PENDING, cbr_invalidate(owner, CBR_REASON_ENDED));
  EQUAL(1, destroyed(&context));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
  CHECK(strstr(cbr_last_error(), "\"x\"") != NULL);
  visitor_end(&visitor);
  EQUAL(2, destroyed(&context));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
  /* B1, of a group: everything but the own call is waited for. */
  owner = add_owner(registry, "deferred");
  token = add(registry, "x", &context, true, owner);
  cbr_token other = add(registry, "y", &context, true, owner);
  visitor_begin(&visitor, other);
  EXPECT(CBR_OK, cbr_enter(token, &call));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
  gate_open(&visitor.leave);
  EXPECT(CBR_DEFERRED,
         cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(3, destroyed(&context));
  pthread_join(visitor.thread, NULL);
  EXPECT(CBR_OK, cbr_leave(&call));
  EQUAL(4, destroyed(&context));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
  close_registry(registry);
}

/* Objects come and go at one address: none is taken for a former one. */
static void C19_anAddressIsNoIdentity(void) {
  cbr_registry registry = open_registry("objects", CBR_LEVEL_CALLS);
  enum { OBJECTS = 1000 };
  char place = 0; /* where every one of them lives */
  static struct counted contexts[OBJECTS];
  static cbr_token tokens[OBJECTS];
  static cbr_owner owners[OBJECTS];
  memset(contexts, 0, sizeof contexts);
  for (int i = 0; i < OBJECTS; i++) {
    cbr_owner again = CBR_NONE;
    EXPECT(CBR_OK,
           cbr_owner_for_object(registry, &place, "object", &owners[i]));
    EXPECT(CBR_OK, cbr_owner_for_object(registry, &place, "again", &again));
    EQUAL(owners[i], again);
    if (i > 0) CHECK(owners[i] != owners[i - 1]);
    tokens[i] = add(registry, "x", &contexts[i], i % 2, owners[i]);
    /* Of all there ever were, this one's alone is called. */
    for (int former = i > 20 ? i - 20 : 0; former <= i; former++)
      CHECK(calls(tokens[former]) == (former == i));
    /* By its destructor, or by its owner's handle. */
    if (i % 3 == 0) EXPECT(CBR_OK, cbr_invalidate(owners[i], 2000));
    EXPECT(CBR_OK, cbr_object_died(registry, &place));
    EXPECT(CBR_OK, cbr_object_died(registry, &place));
    CHECK(!calls(tokens[i]));
  }
  int misdelivered = 0;
  for (int i = 0; i < OBJECTS; i++) {
    misdelivered += calls(tokens[i]);
    EQUAL(1, calls_of(&contexts[i]));
    EQUAL(i % 2, destroyed(&contexts[i]));
  }
  EQUAL(0, misdelivered);
  EQUAL(0, statistics_of(registry).live_owners);
  close_registry(registry);
}

/* Many living objects at once, and their deaths in another order. */
static void F14_aDeadObjectLeavesNothingRegistered(void) {
  cbr_registry registry = open_registry("objects", CBR_LEVEL_CALLS);
  enum { OBJECTS = 500 };
  static char objects[OBJECTS][48];
  static struct counted contexts[OBJECTS];
  static cbr_token tokens[OBJECTS];
  int order[OBJECTS];
  memset(contexts, 0, sizeof contexts);
  for (int i = 0; i < OBJECTS; i++) {
    cbr_owner owner;
    EXPECT(CBR_OK, cbr_owner_for_object(registry, objects[i], "o", &owner));
    tokens[i] = add(registry, "x", &contexts[i], true, owner);
  }
  shuffle(order, OBJECTS, 3);
  for (int i = 0; i < OBJECTS; i++) {
    EXPECT(CBR_OK, cbr_object_died(registry, objects[order[i]]));
    EQUAL(1, destroyed(&contexts[order[i]]));
    EQUAL(OBJECTS - 1 - i, statistics_of(registry).live_tokens);
    if (i % 50 != 0) continue;
    for (int j = 0; j < OBJECTS; j++)
      CHECK(cbr_is_live(tokens[j]) == !destroyed(&contexts[j]));
  }
  EQUAL(0, statistics_of(registry).live_owners);
  close_registry(registry);
  EXPECT(CBR_E_CLOSED, cbr_object_died(registry, objects[0]));
}

/* ------------------------------------- statistics, visitors, last words -- */

static void G14_statisticsCountEverything(void) {
  cbr_registry registry = open_registry("numbers", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_owner owner = add_owner(registry, "owner");
  cbr_token tokens[10];
  for (int i = 0; i < 10; i++)
    tokens[i] = add(registry, "x", &context, i >= 5, owner);
  cbr_lease_handle lease;
  EXPECT(CBR_OK, cbr_lease(tokens[9], &lease));
  cbr_statistics now = statistics_of(registry);
  EQUAL(sizeof now, now.size);
  EQUAL(10, now.live_tokens);
  EQUAL(1, now.live_owners);
  EQUAL(1, now.live_leases);
  EQUAL(10, now.registered);
  EQUAL(0, now.ended);
  EQUAL(0, now.refused);
  EQUAL(0, now.unsettled);
  EQUAL(1, now.fork_handlers);
  CHECK(now.slots >= 13 && now.memory_bytes > now.slots * 64);
  CHECK(now.threads >= 1);
  for (int i = 0; i < 3; i++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[i], CBR_REASON_ENDED));
  for (int i = 0; i < 4; i++) CHECK(calls(tokens[i]) == (i == 3));
  now = statistics_of(registry);
  EQUAL(7, now.live_tokens);
  EQUAL(3, now.ended);
  EQUAL(3, now.refused);
  /* Those without a destroy wait for a fence that serves many. */
  EQUAL(3, now.unsettled);
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(tokens[0], CBR_REASON_ENDED, 0));
  EQUAL(0, statistics_of(registry).unsettled);
  EXPECT(CBR_PENDING, cbr_invalidate(owner, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_lease_end(lease));
  now = statistics_of(registry);
  EQUAL(0, now.live_tokens + now.live_owners + now.live_leases);
  EQUAL(10, now.registered);
  EQUAL(10, now.ended);
  EQUAL(5, destroyed(&context));
  close_registry(registry);
}

struct shown {
  cbr_item items[16];
  int count, stop_after;
};

static cbr_disposition show(void *context, const cbr_item *item) {
  struct shown *shown = context;
  shown->items[shown->count++ % 16] = *item;
  return shown->count == shown->stop_after ? CBR_STOP : CBR_CONTINUE;
}

static const cbr_item *find(const struct shown *shown, cbr_handle handle) {
  for (int i = 0; i < shown->count && i < 16; i++) {
    if (shown->items[i].handle == handle) return &shown->items[i];
  }
  return NULL;
}

static void G12_visitorsSeeWhatThereIs(void) {
  cbr_registry registry = open_registry("shown", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_owner owner = add_owner(registry, "owner"), child;
  EXPECT(CBR_OK, cbr_owner_create_child(owner, "child", &child));
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "token";
  what.function = (cbr_function)count_call;
  what.context = &context;
  what.owner = child;
  what.file = "some/file.c";
  what.line = 321;
  cbr_token token;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  cbr_token loose = add(registry, "loose", &context, false, CBR_NONE);
  cbr_lease_handle lease;
  cbr_call calls[2];
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  for (int i = 0; i < 2; i++) EXPECT(CBR_OK, cbr_enter(token, &calls[i]));

  struct shown shown = {.stop_after = 0};
  EXPECT(CBR_OK, cbr_registry_each_live(registry, show, &shown));
  EQUAL(5, shown.count);
  const cbr_item *item = find(&shown, token);
  CHECK(item != NULL);
  if (item) {
    EQUAL(sizeof *item, item->size);
    EQUAL(CBR_KIND_TOKEN, item->kind);
    EQUAL(321, item->line);
    CHECK(strcmp(item->label, "token") == 0);
    CHECK(strcmp(item->file, "some/file.c") == 0);
    EQUAL(child, item->owner);
    EQUAL(2, item->calls_in_flight);
    EQUAL(1, item->leases);
    CHECK(item->age_ns > 0);
  }
  item = find(&shown, child);
  CHECK(item && item->kind == CBR_KIND_OWNER && item->owner == owner);
  item = find(&shown, loose);
  CHECK(item && item->owner == registry && item->calls_in_flight == 0);
  item = find(&shown, lease);
  CHECK(item && item->kind == CBR_KIND_LEASE);

  shown = (struct shown){.stop_after = 2};
  EXPECT(CBR_STOPPED, cbr_registry_each_live(registry, show, &shown));
  EQUAL(2, shown.count);
  /* What an ending would end. */
  shown = (struct shown){.stop_after = 0};
  EXPECT(CBR_OK, cbr_impact(owner, show, &shown));
  CHECK(find(&shown, token) && find(&shown, child));
  CHECK(!find(&shown, loose) && !find(&shown, lease));
  shown = (struct shown){.stop_after = 0};
  EXPECT(CBR_OK, cbr_impact(token, show, &shown));
  EQUAL(1, shown.count);
  EQUAL(2, shown.items[0].calls_in_flight);
  shown = (struct shown){.stop_after = 1};
  EXPECT(CBR_STOPPED, cbr_impact(registry, show, &shown));
  for (int i = 0; i < 2; i++) EXPECT(CBR_OK, cbr_leave(&calls[i]));
  EXPECT(CBR_OK, cbr_lease_end(lease));
  close_registry(registry);
}

static void F7_whatWasLiveAtCloseIsNamed(void) {
  cbr_registry registry = open_registry("leaky", CBR_LEVEL_CALLS);
  struct counted context = {0};
  for (int i = 0; i < 6; i++)
    (void)add(registry, "forgotten", &context, true, CBR_NONE);
  close_registry(registry);
  const char *error = cbr_last_error();
  CHECK(strstr(error, "\"forgotten\"") != NULL);
  CHECK(strstr(error, "fixture.h:") != NULL);
  CHECK(strstr(error, ", registered ") && strstr(error, "s before; "));
  CHECK(strstr(error, "2 more") != NULL);
  EQUAL(6, destroyed(&context));
}

/* ALREADY says when, by whom and why; so does the explanation. */
static void D17_anEndIsExplained(void) {
  cbr_registry registry = open_registry("explained", CBR_LEVEL_CALLS);
  struct counted context = {0};
  cbr_token token = add(registry, "told", &context, true, CBR_NONE);
  cbr_lease_handle lease;
  EXPECT(CBR_OK, cbr_lease(token, &lease));
  char text[2048];
  EXPECT(CBR_OK, cbr_explain(token, text, sizeof text, NULL));
  CHECK(strstr(text, "\"told\"") && strstr(text, "live"));
  CHECK(strstr(text, "fixture.h:") != NULL);
  CHECK(strstr(text, "leases: 1") != NULL);
  EXPECT(CBR_PENDING, cbr_invalidate(token, CBR_REASON_USER + 7));
  EXPECT(CBR_OK, cbr_explain(token, text, sizeof text, NULL));
  CHECK(strstr(text, "dead") && strstr(text, "1007"));
  CHECK(strstr(text, "ended") != NULL);
  EXPECT(CBR_OK, cbr_lease_end(lease));
  close_registry(registry);
}

int main(void) {
  TEST(G8_functionAndContextAreAPair);
  TEST(G9_nothingEntersAfterTheEnd);
  TEST(A1_waitingCoversACallInFlight);
  TEST(G10_methodsAreFoundOrHaveADefault);
  TEST(C14_aWrongTagIsRefusedUntouched);
  TEST(F13_aBoundTokenIsRefusedOnOtherThreads);
  TEST(D9_aOneShotThatEmitsItselfRunsOnce);
  TEST(C21_ofManyThreadsOneGetsTheOneShot);
  TEST(G11_callsNestToAnyDepth);
  TEST(G11_aCallIsLeftOnce);
  TEST(G16_endingAgainTellsOfTheFirst);
  TEST(G11_callsAreLeftInAnyOrder);
  TEST(G11_aDeepCallIsSeenByAWaiter);
  TEST(G7_theLastLeaseDestroys);
  TEST(E5_aForgottenLeaseIsNamedAtClose);
  TEST(H10_jumpingOutOfCallsHoldsNothingUp);
  TEST(H10_unwindingStopsAtTheMark);
  TEST(H10_jumpingOutOfADestroyLosesNoOther);
  TEST(H10_jumpingOutOfAVisitorHoldsNothingUp);
  TEST(G11_aThreadThatEndsInsideACallHoldsNothingUp);
  TEST(G11_theEndOfAThreadDestroysWhatItWasIn);
  TEST(G14_outcomesOfAnEnding);
  TEST(F10_destroyRunsWhereTheLastHoldEnds);
  TEST(F15_destroyRunsExactlyOnce);
  TEST(G17_anOwnersEndReachesItsGrandchildren);
  TEST(G17_anOwnersEndCostsOneFence);
  TEST(G17_anOwnersOutcomeIsThatOfAllItHas);
  TEST(C19_anAddressIsNoIdentity);
  TEST(F14_aDeadObjectLeavesNothingRegistered);
  TEST(G14_statisticsCountEverything);
  TEST(G12_visitorsSeeWhatThereIs);
  TEST(F7_whatWasLiveAtCloseIsNamed);
  TEST(D17_anEndIsExplained);
  return finish();
}

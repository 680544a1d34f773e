/* SPDX-License-Identifier: Apache-2.0
 *
 * A thunk's address is always safe to call (G29): at every point of its life
 * and of its token's, on any thread, after the registry's close and in a child;
 * and waiting for it is waiting for what came through it (G9, G12, G15).
 */
#include "thunks.h"

#include <setjmp.h>

static cbr_registry registry;

/* A function of one int, -1 when it is not called. */
typedef int plain(int number);

static const cbr_type an_int = SCALAR(CBR_TYPE_INT32);
static const int otherwise = -1;

static cbr_thunk thunk_of(cbr_token token) {
  cbr_signature signature =
      signature_of(an_int, &an_int, 1, CBR_CONTEXT_FIRST);
  signature.otherwise = &otherwise;
  return make_thunk(registry, token, &signature);
}

static plain *function_of(cbr_thunk thunk) {
  return (plain *)cbr_thunk_function(thunk);
}

/* What a test's function is given, and does. */
typedef struct scene scene;
struct scene {
  struct counted counted;
  cbr_token token;
  cbr_thunk thunk;
  plain *call;
  void (*act)(scene *self);
  int result; /* of a worker's call */
};

static int enter_scene(void *context, int number) {
  scene *self = context;
  count_call(&self->counted);
  if (self->act) self->act(self);
  EQUAL(0, destroyed(&self->counted));
  return number + 1;
}

static void leave_scene(void *context) {
  scene *self = context;
  EQUAL(-1, self->call(5)); /* in its own destruction */
  count_destroy(&self->counted);
}

static void make_scene(scene *self, cbr_owner owner) {
  EXPECT(CBR_OK, CBR_REGISTER(registry, "scene", enter_scene, self,
                              leave_scene, owner, &self->token));
  self->thunk = thunk_of(self->token);
  self->call = function_of(self->thunk);
  EQUAL(42, self->call(41));
  EQUAL(1, calls_of(&self->counted));
}

static void expect_dead(scene *self) {
  int before = calls_of(&self->counted);
  EQUAL(-1, self->call(41));
  EQUAL(before, calls_of(&self->counted));
}

static void expect_ended(scene *self) {
  expect_dead(self);
  EQUAL(1, destroyed(&self->counted));
}

/* ------------------------------------------------------------------- ends -- */

static void G29_afterEitherEnd(void) {
  scene it = {0};
  make_scene(&it, CBR_NONE);
  end_now(it.thunk);
  CHECK(cbr_thunk_function(it.thunk) == NULL);
  CHECK(strstr(cbr_last_error(), "thunk") != NULL);
  expect_dead(&it);
  CHECK(cbr_is_live(it.token));
  end_now(it.token);
  expect_ended(&it);

  it = (scene){0};
  make_scene(&it, CBR_NONE);
  end_now(it.token);
  expect_ended(&it);
  CHECK(cbr_thunk_function(it.thunk) == (cbr_function)it.call);
  EXPECT(CBR_OK, cbr_invalidate(it.thunk, CBR_REASON_ENDED));
  expect_ended(&it);
  EXPECT(CBR_ALREADY, cbr_invalidate(it.thunk, CBR_REASON_ENDED));
}

static void G17_endsWithWhatItsTokenBelongsTo(void) {
  cbr_owner owner = add_owner(registry, "view");
  scene it = {0};
  make_scene(&it, owner);
  EQUAL(1, statistics_of(registry).live_thunks);
  end_now(owner);
  CHECK(!cbr_is_live(it.thunk));
  EQUAL(0, statistics_of(registry).live_thunks);
  expect_ended(&it);
  cbr_thunk thunk;
  cbr_signature signature = CBR_SIGNATURE_INIT;
  EXPECT(CBR_E_STALE,
         cbr_thunk_create(registry, it.token, &signature, &thunk));
}

static void end_thunk(scene *self) {
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(self->thunk, CBR_REASON_ENDED,
                                           CBR_FOREVER));
  expect_dead(self);
}

static void end_token(scene *self) {
  EXPECT(CBR_DEFERRED, cbr_invalidate(self->token, CBR_REASON_ENDED));
  expect_dead(self);
}

static void end_both(scene *self) {
  end_token(self);
  EXPECT(CBR_DEFERRED, cbr_invalidate(self->thunk, CBR_REASON_ENDED));
  expect_dead(self);
}

static void G12_endsFromInside(void) {
  void (*const acts[])(scene *) = {end_thunk, end_token, end_both};
  for (int each = 0; each < 3; each++) {
    WITHIN("act %d", each);
    scene it = {0};
    make_scene(&it, CBR_NONE);
    it.act = acts[each];
    EQUAL(6, it.call(5));
    CHECK(cbr_mark() == 0);
    expect_dead(&it);
    if (each == 0) end_now(it.token);
    if (each == 1) end_now(it.thunk);
    expect_ended(&it);
  }
}

static int number_of_leaks;

static cbr_disposition count_thunks(void *context, const cbr_item *item) {
  (void)context;
  number_of_leaks += item->kind == CBR_KIND_THUNK &&
                     strcmp(item->label, "scene") == 0 &&
                     strstr(item->file, "thunk") != NULL;
  return CBR_CONTINUE;
}

static void G29_afterTheRegistryWasClosed(void) {
  cbr_registry before = registry;
  registry = open_registry("short", test_level());
  scene it = {0};
  make_scene(&it, CBR_NONE);
  number_of_leaks = 0;
  EXPECT(CBR_OK, cbr_registry_each_live(registry, count_thunks, NULL));
  EQUAL(1, number_of_leaks);
  close_registry(registry);
  CHECK(strstr(cbr_last_error(), "scene") != NULL);
  expect_ended(&it);
  CHECK(strstr(cbr_last_error(), "closed") != NULL);
  registry = before;
}

/* ---------------------------------------------------------------- threads -- */

static void *call_it(void *argument) {
  scene *self = argument;
  EQUAL(8, self->call(7));
  return NULL;
}

static void *call_it_late(void *argument) {
  expect_dead(argument);
  return NULL;
}

static void G29_onThreadsNeverSeenBefore(void) {
  scene it = {0};
  make_scene(&it, CBR_NONE);
  on_thread(call_it, &it);
  EQUAL(2, calls_of(&it.counted));
  end_now(it.token);
  on_thread(call_it_late, &it);
  end_now(it.thunk);
  on_thread(call_it_late, &it);
  expect_ended(&it);
}

/* A thread that ends is still served by its last key's destructor. */
static pthread_key_t key;

static void call_at_exit(void *argument) {
  scene *self = argument;
  EQUAL(8, self->call(7));
}

static void *leave_to_key(void *argument) {
  CHECK(pthread_setspecific(key, argument) == 0);
  return NULL;
}

static void G29_inAThreadsLastMoments(void) {
  scene it = {0};
  make_scene(&it, CBR_NONE);
  CHECK(pthread_key_create(&key, call_at_exit) == 0);
  on_thread(leave_to_key, &it);
  EQUAL(2, calls_of(&it.counted));
  pthread_key_delete(key);
  end_now(it.token);
  end_now(it.thunk);
}

static scene *inherited;

static void call_inherited(void) {
  int before = calls_of(&inherited->counted);
  EQUAL(-1, inherited->call(41));
  EQUAL(before, calls_of(&inherited->counted));
  CHECK(strstr(cbr_last_error(), "fork") != NULL);
  /* The child has thunks of its own, of the same shape and of others. */
  registry = open_registry("child", test_level());
  scene own = {0};
  make_scene(&own, CBR_NONE);
  end_now(own.token);
  cbr_signature signature = CBR_SIGNATURE_INIT;
  struct counted counted = {0};
  cbr_token token = add(registry, "child", &counted, false, CBR_NONE);
  (void)make_thunk(registry, token, &signature);
  EQUAL(-1, inherited->call(41));
  close_registry(registry);
  expect_ended(&own);
}

static void H1_aForkedChildIsAnsweredTheDefault(void) {
  scene it = {0};
  make_scene(&it, CBR_NONE);
  inherited = &it;
  CHECK(holds_in_child(call_inherited));
  EQUAL(3, it.call(2));
  end_now(it.thunk);
  CHECK(holds_in_child(call_inherited));
  end_now(it.token);
  expect_ended(&it);
}

/* ------------------------------------------------------------------ races -- */

static void call_aside(void *argument) {
  scene *self = argument;
  self->result = self->call(1);
}

/* What has pinned the thunk and not looked at it yet is refused when it has
 * ended meanwhile; the end knows of it. */
static void G9_endedBetweenPinAndCheck(void) {
  scene it = {0};
  worker caller;
  make_scene(&it, CBR_NONE);
  gate at = GATE(THUNK_PINNED, it.thunk, &caller);
  close_gate(&at);
  start(&caller, "caller", call_aside, &it);
  await_gate(&at);
  EXPECT(CBR_PENDING, cbr_invalidate(it.thunk, CBR_REASON_ENDED));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(it.thunk, CBR_REASON_ENDED, 0));
  open_gate(&at);
  join(&caller);
  EQUAL(-1, it.result);
  EQUAL(1, calls_of(&it.counted));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(it.thunk, CBR_REASON_ENDED, 0));
  end_now(it.token);
}

static void stop_there(scene *self) {
  (void)self;
  reach(IN_CALLBACK, CBR_NONE);
}

/* Whoever waits for a thunk waits for what came through it, and for that
 * alone. */
static void G9_waitsForCallsThatCameThroughIt(void) {
  scene it = {.act = NULL};
  worker caller;
  make_scene(&it, CBR_NONE);
  cbr_thunk another = thunk_of(it.token);
  it.act = stop_there;
  gate at = GATE(IN_CALLBACK, CBR_NONE, &caller);
  close_gate(&at);
  start(&caller, "caller", call_aside, &it);
  await_gate(&at);
  end_now(another);
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(it.thunk, CBR_REASON_ENDED, 0));
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(it.token, CBR_REASON_ENDED, 0));
  EQUAL(0, destroyed(&it.counted));
  open_gate(&at);
  join(&caller);
  EQUAL(2, it.result);
  expect_ended(&it);
}

/* Two threads wait for the thunk that the other one is inside of. */
static scene of_ring[2];
static pthread_barrier_t both_inside;
static cbr_status of_waiters[2];

static void wait_for_the_other(scene *self) {
  int own = self == &of_ring[1];
  pthread_barrier_wait(&both_inside);
  of_waiters[own] = cbr_invalidate_wait(of_ring[!own].thunk, CBR_REASON_ENDED,
                                        CBR_FOREVER);
}

static void G15_aRingOfThunksIsFound(void) {
  worker workers[2];
  pthread_barrier_init(&both_inside, NULL, 2);
  for (int each = 0; each < 2; each++) {
    of_ring[each] = (scene){0};
    make_scene(&of_ring[each], CBR_NONE);
    of_ring[each].act = wait_for_the_other;
  }
  for (int each = 0; each < 2; each++)
    start(&workers[each], "waiter", call_aside, &of_ring[each]);
  for (int each = 0; each < 2; each++) join(&workers[each]);
  CHECK((of_waiters[0] == CBR_E_WOULD_DEADLOCK) +
            (of_waiters[1] == CBR_E_WOULD_DEADLOCK) >= 1);
  for (int each = 0; each < 2; each++) {
    of_ring[each].act = NULL;
    end_now(of_ring[each].token);
    expect_ended(&of_ring[each]);
  }
  pthread_barrier_destroy(&both_inside);
}

/* Threads make thunks of one token, of several shapes, call them and end them,
 * and call those that others have ended. */
enum { CROWD = 4 };
static struct {
  cbr_token token;
  _Atomic(plain *) last[3];
  _Atomic int called;
} crowd;

static int be_called(void *context, int number) {
  (void)context;
  atomic_fetch_add_explicit(&crowd.called, 1, memory_order_relaxed);
  return number + 1;
}

static void make_and_end(void *argument) {
  int sum = 0, own = *(int *)argument;
  for (int each = 0; each < TIMES(3000, 600); each++) {
    int shape = (each + own) % 3, other = -1 - shape;
    cbr_signature signature =
        signature_of(an_int, &an_int, 1, CBR_CONTEXT_FIRST);
    signature.otherwise = &other;
    cbr_thunk thunk = make_thunk(registry, crowd.token, &signature);
    plain *call = function_of(thunk);
    plain *late = atomic_exchange(&crowd.last[shape], call);
    EQUAL(each + 1, call(each));
    sum++;
    EXPECT(CBR_OK, cbr_invalidate_wait(thunk, CBR_REASON_ENDED, CBR_FOREVER));
    EQUAL(other, call(each));
    if (late) {
      int answer = late(7);
      if (answer == 8) sum++;
      else EQUAL(other, answer);
    }
  }
  *(int *)argument = sum;
}

static void G29_threadsMakeAndCallAndEnd(void) {
  worker workers[CROWD];
  int sums[CROWD], sum = 0;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "crowd", be_called, NULL, NULL,
                              CBR_NONE, &crowd.token));
  for (int each = 0; each < CROWD; each++) {
    sums[each] = each;
    start(&workers[each], "one of a crowd", make_and_end, &sums[each]);
  }
  for (int each = 0; each < CROWD; each++) {
    join(&workers[each]);
    sum += sums[each];
  }
  EQUAL(sum, atomic_load(&crowd.called));
  end_now(crowd.token);
  for (int shape = 0; shape < 3; shape++)
    EQUAL(-1 - shape, atomic_load(&crowd.last[shape])(1));
}

/* --------------------------------------------------------- jumps, contexts -- */

static jmp_buf back;

static void jump(scene *self) {
  (void)self;
  longjmp(back, 1);
}

static void H10_longjmpOutOfAThunk(void) {
  scene it = {0};
  make_scene(&it, CBR_NONE);
  it.act = jump;
  volatile int jumps = 0;
  size_t mark = cbr_mark();
  if (setjmp(back) == 0) {
    (void)it.call(1);
  } else {
    EXPECT(CBR_OK, cbr_unwind(mark));
    if (++jumps < 1000) (void)it.call(1);
  }
  EQUAL(1000, jumps);
  CHECK(cbr_mark() == 0);
  CHECK(cbr_current_context() == NULL);
  it.act = NULL;
  EQUAL(2, it.call(1));
  end_now(it.thunk);
  end_now(it.token);
  expect_ended(&it);
}

static scene inner;

static void expect_own_context(void *context) {
  (void)context;
  /* Another call of a token is no thunk's. */
  CHECK(cbr_current_context() != context);
}

static void call_inner(scene *self) {
  CHECK(cbr_current_context() == self);
  EQUAL(3, inner.call(2));
  CHECK(cbr_current_context() == self);
  struct counted other = {0};
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "other", expect_own_context, &other,
                              NULL, CBR_NONE, &token));
  CBR_CALL(token, void (*)(void *), (cbr_now.context));
  end_now(token);
  CHECK(cbr_current_context() == self);
}

static void expect_inner(scene *self) {
  CHECK(self == &inner && cbr_current_context() == &inner);
}

static void G29_theContextIsOfTheInnermostThunk(void) {
  scene it = {0};
  make_scene(&it, CBR_NONE);
  make_scene(&inner, CBR_NONE);
  inner.act = expect_inner;
  it.act = call_inner;
  CHECK(cbr_current_context() == NULL);
  EQUAL(2, it.call(1));
  CHECK(cbr_current_context() == NULL);
  end_now(it.token);
  end_now(inner.token);
  end_now(it.thunk);
  end_now(inner.thunk);
}

/* --------------------------------------------- what a token asks of a call -- */

static cbr_token add_with(uint32_t flags, struct counted *counted) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token = CBR_NONE;
  what.function = (cbr_function)count_call;
  what.context = counted;
  what.flags = flags;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  return token;
}

static void G27_aOneShotIsCalledOnce(void) {
  struct counted counted = {0};
  cbr_token token = add_with(CBR_ONE_SHOT, &counted);
  cbr_thunk thunk = make_plain_thunk(registry, token);
  cbr_function call = cbr_thunk_function(thunk);
  call();
  call();
  EQUAL(1, calls_of(&counted));
  CHECK(strstr(cbr_last_error(), "one-shot") != NULL);
  end_now(thunk);
}

static void *call_plain(void *argument) {
  (*(cbr_function *)argument)();
  return NULL;
}

static void F13_aTokenBoundToItsThread(void) {
  struct counted counted = {0};
  cbr_token token = add_with(CBR_THREAD_BOUND, &counted);
  cbr_thunk thunk = make_plain_thunk(registry, token);
  cbr_function call = cbr_thunk_function(thunk);
  on_thread(call_plain, &call);
  EQUAL(0, calls_of(&counted));
  call();
  EQUAL(1, calls_of(&counted));
  end_now(thunk);
  end_now(token);
}

/* ---------------------------------------------------------------- failing -- */

/* Each try is of a shape of its own, so that nothing is there already. */
static void G6_withoutMemoryNothingChanges(void) {
  struct counted counted = {0};
  cbr_token token = add(registry, "poor", &counted, false, CBR_NONE);
  int64_t after = 0;
  for (;; after++) {
    WITHIN("allocation %d", (int)after);
    int other = (int)after + 100;
    cbr_signature signature =
        signature_of(an_int, &an_int, 1, CBR_CONTEXT_FIRST);
    signature.otherwise = &other;
    cbr_thunk thunk = 1;
    cbr_statistics before = statistics_of(registry);
    cbr_test_fail_allocation(after);
    cbr_status status =
        cbr_thunk_create(registry, token, &signature, &thunk);
    bool has_failed = cbr_test_fail_allocation(-1) < 0;
    if (!has_failed) {
      EXPECT(CBR_OK, status);
      end_now(thunk);
      break;
    }
    if (status == CBR_OK) { /* it could do without */
      end_now(thunk);
      continue;
    }
    EXPECT(CBR_E_NOMEM, status);
    CHECK(thunk == CBR_NONE);
    cbr_statistics then = statistics_of(registry);
    EQUAL(before.live_thunks, then.live_thunks);
    EQUAL(before.unsettled, then.unsettled);
  }
  CHECK(after >= 5);
  end_now(token);
}

/* --------------------------------------------------------------- recorded -- */

static void G29_whatIsRefusedIsRecorded(void) {
  cbr_registry before = registry;
  history it;
  registry = open_with_history(&it, "recorded", CBR_LEVEL_CALLS);
  scene never = {0};
  cbr_token first = CBR_NONE, second = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "first", enter_scene, &never, NULL,
                              CBR_NONE, &first));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "second", enter_scene, &never, NULL,
                              CBR_NONE, &second));
  cbr_thunk of_first = thunk_of(first), of_second = thunk_of(second);
  plain *call_first = function_of(of_first);
  plain *call_second = function_of(of_second);
  end_now(first);
  end_now(of_second);
  EQUAL(-1, call_first(1));
  EQUAL(-1, call_second(1));
  EQUAL(-1, call_second(1));
  end_now(of_first);
  end_now(second);
  EQUAL(3, statistics_of(registry).refused);
  EQUAL(0, calls_of(&never.counted));
  close_registry(registry);
  check_history(&it);
  /* With the one that was dead: a token, and a thunk with its token's name. */
  EQUAL(1, number_in(&it, "SELECT attempts FROM late_callers "
                          "WHERE label = 'first'"));
  EQUAL(2, number_in(&it, "SELECT attempts FROM late_callers "
                          "WHERE label = 'second'"));
  EQUAL(1, number_in(&it, "SELECT count(*) FROM token_life "
                          "WHERE label = 'second' AND kind = 'thunk' "
                          "AND refusals = 2"));
  /* Which token it is of. */
  EQUAL(2, number_in(&it, "SELECT count(*) FROM token t JOIN token o "
                          "ON o.token = t.tag WHERE t.kind = 11"));
  expect_no_rows(&it, "SELECT * FROM live");
  expect_intact(&it);
  remove_history(&it);
  registry = before;
}

int main(void) {
  registry = open_registry("thunk lives", test_level());
  TEST(G6_withoutMemoryNothingChanges);
  TEST(G29_afterEitherEnd);
  TEST(G17_endsWithWhatItsTokenBelongsTo);
  TEST(G12_endsFromInside);
  TEST(G29_afterTheRegistryWasClosed);
  TEST(G29_onThreadsNeverSeenBefore);
  TEST(G29_inAThreadsLastMoments);
  TEST(H1_aForkedChildIsAnsweredTheDefault);
  TEST(G9_endedBetweenPinAndCheck);
  TEST(G9_waitsForCallsThatCameThroughIt);
  TEST(G15_aRingOfThunksIsFound);
  TEST(G29_threadsMakeAndCallAndEnd);
  TEST(H10_longjmpOutOfAThunk);
  TEST(G29_theContextIsOfTheInnermostThunk);
  TEST(G27_aOneShotIsCalledOnce);
  TEST(F13_aTokenBoundToItsThread);
  TEST(G29_whatIsRefusedIsRecorded);
  close_registry(registry);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A guard written by hand, of three setters that have nothing to do with each
 * other (G30), and what threads do to it. The setters are this program's own;
 * the guard's names for them are those that --wrap would give.
 */
#include "gates.h"

#define CBR_GUARD_LIBRARY "legacy"
#define CBR_GUARD_SONAME "liblegacy.so.1"
#define CBR_GUARD_SLOTS 3
#define CBR_GUARD_NAMES "progress", "filter", "closed"
#define CBR_GUARD_WRAP
#include "callback_registry_guard.h"

/* ------------------------------------------ A library of another time -- */

typedef struct legacy {
  int (*progress)(void *data, int done);
  void *progress_data;
  int (*filter)(void *data, int value);
  void *filter_data;
  void (*closed)(struct legacy *object);
} legacy;

enum { PROGRESS, FILTER, CLOSED };

static void __real_set_progress(legacy *object, int (*function)(void *, int),
                                void *data) {
  reach(BEFORE_ACT, CBR_NONE);
  __atomic_store_n(&object->progress_data, data, __ATOMIC_RELAXED);
  __atomic_store_n(&object->progress, function, __ATOMIC_RELEASE);
}

static void *__real_set_filter(legacy *object, int (*function)(void *, int),
                               void *data) {
  void *former = object->filter_data;
  object->filter = function;
  object->filter_data = data;
  return former;
}

static int __real_set_closed(legacy *object, void (*function)(legacy *)) {
  if (!function) return -1;
  object->closed = function;
  return 0;
}

static int progress_of(legacy *object) {
  int (*function)(void *, int) =
      __atomic_load_n(&object->progress, __ATOMIC_ACQUIRE);
  return function(__atomic_load_n(&object->progress_data, __ATOMIC_RELAXED),
                  7);
}

/* -------------------------------------------------------- Its guard -- */

static int call_progress(void *data, int done) {
  CBR_GUARD_CALL(it) = cbr_guard_enter(cbr_from_cookie(data), PROGRESS);
  if (!it.function) return -7;
  return ((int (*)(void *, int))it.function)(it.data, done);
}

static void set_progress(legacy *object, int (*function)(void *, int),
                         void *data) {
  cbr_guard_set set;
  const void *caller = __builtin_return_address(0);
  if (cbr_guard_is_off(object, caller, (cbr_function)__real_set_progress)) {
    __real_set_progress(object, function, data);
    return;
  }
  cbr_guard_begin(&set, object, "set_progress", caller);
  cbr_token token =
      cbr_guard_put(&set, PROGRESS, (cbr_function)function, data);
  __real_set_progress(object, token ? call_progress : function,
                      token ? cbr_cookie(token) : data);
  cbr_guard_finish(&set, object, true);
}

static int call_filter(void *data, int value) {
  CBR_GUARD_CALL(it) = cbr_guard_enter(cbr_from_cookie(data), FILTER);
  if (!it.function) return value;
  return ((int (*)(void *, int))it.function)(it.data, value);
}

static void *set_filter(legacy *object, int (*function)(void *, int),
                        void *data) {
  cbr_guard_set set;
  const void *caller = __builtin_return_address(0);
  if (cbr_guard_is_off(object, caller, (cbr_function)__real_set_filter))
    return __real_set_filter(object, function, data);
  cbr_guard_begin(&set, object, "set_filter", caller);
  cbr_token token = cbr_guard_put(&set, FILTER, (cbr_function)function, data);
  void *former =
      __real_set_filter(object, token ? call_filter : function,
                        token ? cbr_cookie(token) : data);
  former = cbr_guard_former(&set, former);
  cbr_guard_finish(&set, object, true);
  return former;
}

static void call_closed(legacy *object) {
  CBR_GUARD_CALL(it) = cbr_guard_enter_object(object, CLOSED);
  if (it.function) ((void (*)(legacy *))it.function)(object);
}

static int set_closed(legacy *object, void (*function)(legacy *)) {
  cbr_guard_set set;
  const void *caller = __builtin_return_address(0);
  cbr_guard_begin(&set, object, "set_closed", caller);
  (void)cbr_guard_put(&set, CLOSED, (cbr_function)function, NULL);
  int result = __real_set_closed(object, function ? call_closed : NULL);
  cbr_guard_finish(&set, object, result == 0);
  return result;
}

static void legacy_free(legacy *object) {
  cbr_guard_object *dying = cbr_guard_dies(object);
  if (object->closed) object->closed(object);
  cbr_guard_died(dying, true, CBR_REASON_OBJECT_DIED);
}

/* ------------------------------------------------------------ Tests -- */

static int closings;

static int count(void *data, int value) {
  ++*(int *)data;
  return value;
}

static void count_closed(legacy *object) {
  (void)object;
  closings++;
}

static cbr_statistics guard_statistics(void) {
  return statistics_of(cbr_guard_registry);
}

/* One delegate in five slots of three objects: it dies once, all are cleared,
 * and every late call answers its default and is recorded. */
static void F8_delegateDiesOnce(void) {
  static int delegate;
  legacy one = {0}, two = {0}, three = {0};
  set_progress(&one, count, &delegate);
  set_filter(&one, count, &delegate);
  set_progress(&two, count, &delegate);
  set_filter(&two, count, &delegate);
  set_progress(&three, count, &delegate);
  EQUAL(7, progress_of(&one));
  EQUAL(5, two.filter(two.filter_data, 5));
  EQUAL(2, delegate);
  uint64_t refused = guard_statistics().refused;
  cbr_guard_data_dies(&delegate, true);
  EQUAL(-7, progress_of(&one));
  EQUAL(3, one.filter(one.filter_data, 3));
  EQUAL(-7, progress_of(&two));
  EQUAL(4, two.filter(two.filter_data, 4));
  EQUAL(-7, progress_of(&three));
  EQUAL(2, delegate);
  EQUAL(refused + 5, guard_statistics().refused);
  legacy_free(&one);
  legacy_free(&two);
  legacy_free(&three);
}

static void G30_settingAgainEndsTheFormer(void) {
  int first = 0, second = 0;
  legacy object = {0};
  CHECK(set_filter(&object, count, &first) == NULL);
  int (*late)(void *, int) = object.filter;
  void *late_data = object.filter_data;
  CHECK(set_filter(&object, count, &second) == &first);
  EQUAL(9, late(late_data, 9));
  EQUAL(0, first);
  EQUAL(8, object.filter(object.filter_data, 8));
  EQUAL(1, second);
  CHECK(set_filter(&object, NULL, &first) == &second);
  CHECK(object.filter == NULL && object.filter_data == &first);
  legacy_free(&object);
}

static void G30_failedSetterChangesNothing(void) {
  legacy object = {0};
  closings = 0;
  EQUAL(0, set_closed(&object, count_closed));
  EQUAL(-1, set_closed(&object, NULL));
  object.closed(&object);
  EQUAL(1, closings);
  legacy_free(&object); /* what it calls while it dies goes through */
  EQUAL(2, closings);
  uint64_t refused = guard_statistics().refused;
  object.closed(&object);
  EQUAL(2, closings);
  EQUAL(refused + 1, guard_statistics().refused);
}

/* G18: a new object at the same address is another one. */
static void G18_objectAtTheSameAddress(void) {
  legacy object = {0};
  int data = 0;
  set_progress(&object, count, &data);
  void *former = object.progress_data;
  legacy_free(&object);
  set_progress(&object, count, &data);
  EQUAL(-7, call_progress(former, 1));
  EQUAL(7, progress_of(&object));
  EQUAL(1, data);
  legacy_free(&object);
}

static int born_data;

static void give_birth(legacy *object) {
  set_progress(object, count, &born_data);
}

/* G18: and so is one that is made there while the former one dies. */
static void G18_objectMadeWhileTheFormerDies(void) {
  legacy object = {0};
  int data = 0;
  set_progress(&object, count, &data);
  void *former = object.progress_data;
  EQUAL(0, set_closed(&object, give_birth));
  legacy_free(&object);
  EQUAL(-7, call_progress(former, 1));
  EQUAL(7, progress_of(&object));
  EQUAL(1, born_data);
  object.closed = NULL;
  legacy_free(&object);
  EQUAL(-7, progress_of(&object));
}

static legacy contended;
static int slow_data, fast_data;

static void set_slowly(void *unused) {
  (void)unused;
  set_progress(&contended, count, &slow_data);
}

/* Whoever comes last in the library cannot be known: both stay live, until
 * somebody sets it alone. */
static void G30_twoSetAtOnce(void) {
  worker slow;
  gate stop = GATE(BEFORE_ACT, CBR_NONE, &slow);
  close_gate(&stop);
  start(&slow, "slow setter", set_slowly, NULL);
  await_gate(&stop);
  set_progress(&contended, count, &fast_data);
  EQUAL(7, progress_of(&contended));
  EQUAL(1, fast_data);
  open_gate(&stop);
  join(&slow);
  EQUAL(7, progress_of(&contended));
  EQUAL(1, slow_data);
  void *late = contended.progress_data;
  set_progress(&contended, count, &fast_data);
  EQUAL(7, progress_of(&contended));
  legacy_free(&contended);
  EQUAL(-7, call_progress(late, 1));
  EQUAL(0, guard_statistics().live_tokens);
}

/* A call with a token of another callback's is refused: its function has
 * another type. */
static void C14_tokenOfAnotherCallback(void) {
  legacy object = {0};
  int data = 0;
  set_progress(&object, count, &data);
  EQUAL(6, call_filter(object.progress_data, 6));
  EQUAL(0, data);
  legacy_free(&object);
}

/* Where the registry has no memory, all goes through as it would without. */
static void G30_withoutMemory(void) {
  for (int after = 0; after < 40; after++) {
    legacy object = {0};
    int data = 0;
    cbr_test_fail_allocation(after);
    CHECK(set_filter(&object, count, &data) == NULL);
    EQUAL(0, set_closed(&object, count_closed));
    cbr_test_fail_allocation(-1);
    closings = 0;
    EQUAL(5, object.filter(object.filter_data, 5));
    object.closed(&object);
    EQUAL(1, data);
    EQUAL(1, closings);
    legacy_free(&object);
  }
  EQUAL(0, guard_statistics().live_tokens);
}

static legacy shared_object;
static int shared_data;

static int count_shared(void *data, int value) {
  __atomic_add_fetch((int *)data, 1, __ATOMIC_RELAXED);
  return value;
}

static void *set_often(void *unused) {
  (void)unused;
  for (int each = 0; each < TIMES(3000, 300); each++)
    set_progress(&shared_object, count_shared, &shared_data);
  return NULL;
}

static void *call_often(void *unused) {
  (void)unused;
  for (int each = 0; each < TIMES(3000, 300); each++)
    (void)progress_of(&shared_object);
  return NULL;
}

static void *live_and_die(void *unused) {
  int data = 0;
  (void)unused;
  for (int each = 0; each < TIMES(2000, 200); each++) {
    legacy object = {0};
    set_progress(&object, count, &data);
    EQUAL(7, progress_of(&object));
    legacy_free(&object);
    EQUAL(-7, progress_of(&object));
  }
  return NULL;
}

/* Two threads set, two call and two have objects live and die. */
static void G30_threads(void) {
  void *(*acts[])(void *) = {set_often, set_often, call_often, call_often,
                             live_and_die, live_and_die};
  pthread_t threads[6];
  set_progress(&shared_object, count_shared, &shared_data);
  for (int each = 0; each < 6; each++)
    EQUAL(0, pthread_create(&threads[each], NULL, acts[each], NULL));
  for (int each = 0; each < 6; each++) pthread_join(threads[each], NULL);
  set_progress(&shared_object, count_shared, &shared_data);
  EQUAL(7, progress_of(&shared_object));
  legacy_free(&shared_object);
  EQUAL(-7, progress_of(&shared_object));
  EQUAL(0, guard_statistics().live_tokens);
  EQUAL(0, guard_statistics().live_owners);
}

int main(void) {
  TEST(F8_delegateDiesOnce);
  TEST(G30_settingAgainEndsTheFormer);
  TEST(G30_failedSetterChangesNothing);
  TEST(G18_objectAtTheSameAddress);
  TEST(G18_objectMadeWhileTheFormerDies);
  TEST(G30_twoSetAtOnce);
  TEST(C14_tokenOfAnotherCallback);
  TEST(G30_withoutMemory);
  TEST(G30_threads);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Completions: what happens exactly once (G27).
 */
#include "gates.h"

#include <setjmp.h>

static cbr_registry registry;

typedef struct promise promise;
struct promise {
  int calls, error;
  void *value;
  cbr_reply completion;
  struct counted counted;
  void (*act)(promise *self);
};

static void completed(void *context, int error, void *value) {
  promise *self = context;
  EQUAL(0, destroyed(&self->counted));
  self->calls++;
  self->error = error;
  self->value = value;
  if (self->act) self->act(self);
}

static void promise_destroyed(void *context) {
  EQUAL(1, ((promise *)context)->calls);
  count_destroy(&((promise *)context)->counted);
}

static void add_promise(promise *self, cbr_owner owner) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "fetched";
  what.function = (cbr_function)(uintptr_t)completed;
  what.context = self;
  what.destroy = promise_destroyed;
  what.owner = owner;
  EXPECT(CBR_OK,
         cbr_completion_create(registry, &what, -5, &self->completion));
}

static void expect_called(const promise *self, int error) {
  EQUAL(1, self->calls);
  EQUAL(error, self->error);
  EQUAL(1, destroyed(&self->counted));
  CHECK(!cbr_is_live(self->completion));
}

static void G27_calledByTheFirst(void) {
  promise it = {0};
  int value = 42;
  add_promise(&it, CBR_NONE);
  EXPECT(CBR_OK, cbr_completion_send(it.completion, 7, &value));
  expect_called(&it, 7);
  CHECK(it.value == &value);
  EXPECT(CBR_E_CONSUMED, cbr_completion_send(it.completion, 8, NULL));
  CHECK(strstr(cbr_last_error(), "consumed") != NULL);
  expect_called(&it, 7);
}

static void G27_calledWhenNothingIsSent(void) {
  for (int way = 0; way < 4; way++) {
    WITHIN("way %d", way);
    promise it = {0};
    cbr_registry former = registry;
    if (way == 3) registry = open_registry("short", test_level());
    cbr_owner owner = add_owner(registry, "view");
    add_promise(&it, owner);
    switch (way) {
      case 0:
        EXPECT(CBR_OK, cbr_invalidate(it.completion, CBR_REASON_ENDED));
        break;
      case 1:
        EXPECT(CBR_OK, cbr_invalidate_wait(it.completion, CBR_REASON_ENDED,
                                           CBR_FOREVER));
        break;
      case 2:
        EXPECT(CBR_OK,
               cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER));
        break;
      case 3: close_registry(registry); break;
    }
    registry = former;
    expect_called(&it, -5);
    CHECK(it.value == NULL);
    cbr_status status = cbr_completion_send(it.completion, 1, NULL);
    CHECK(status == CBR_E_STALE || status == CBR_E_CLOSED);
    if (way < 2) EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
  }
}

static void act_send_again(promise *self) {
  EXPECT(CBR_E_CONSUMED, cbr_completion_send(self->completion, 9, NULL));
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(self->completion, CBR_REASON_ENDED,
                                           CBR_FOREVER));
}

static void G12_sentFromInside(void) {
  promise it = {.act = act_send_again};
  add_promise(&it, CBR_NONE);
  EXPECT(CBR_OK, cbr_completion_send(it.completion, 1, NULL));
  expect_called(&it, 1);
}

/* Two senders and an ender at once: one of them calls. */
enum { RIVALS = 3 };
static pthread_barrier_t together;

typedef struct rival {
  cbr_reply completion;
  int number;
  cbr_status status;
} rival;

static void *compete(void *argument) {
  rival *it = argument;
  pthread_barrier_wait(&together);
  it->status = it->number < RIVALS - 1
                   ? cbr_completion_send(it->completion, it->number, NULL)
                   : cbr_invalidate(it->completion, CBR_REASON_ENDED);
  return NULL;
}

static void G27_onceAmongRivals(void) {
  pthread_barrier_init(&together, NULL, RIVALS);
  for (int turn = 0; turn < TIMES(500, 50); turn++) {
    promise it = {0};
    rival rivals[RIVALS];
    pthread_t threads[RIVALS];
    int winners = 0;
    add_promise(&it, CBR_NONE);
    for (int each = 0; each < RIVALS; each++) {
      rivals[each] = (rival){it.completion, each, CBR_E_USER};
      pthread_create(&threads[each], NULL, compete, &rivals[each]);
    }
    for (int each = 0; each < RIVALS; each++) {
      pthread_join(threads[each], NULL);
      winners += rivals[each].status == CBR_OK ||
                 rivals[each].status == CBR_PENDING;
    }
    EQUAL(1, winners);
    EQUAL(1, it.calls);
    EXPECT(CBR_ALREADY, cbr_invalidate_wait(it.completion, CBR_REASON_ENDED,
                                            CBR_FOREVER));
    EQUAL(1, destroyed(&it.counted));
  }
  pthread_barrier_destroy(&together);
}

static jmp_buf out;
static void act_jump(promise *self) {
  (void)self;
  longjmp(out, 1);
}

static void G11_jumpOutOfACompletion(void) {
  static promise it;
  it = (promise){.act = act_jump};
  add_promise(&it, CBR_NONE);
  size_t mark = cbr_mark();
  if (setjmp(out) == 0) (void)cbr_completion_send(it.completion, 3, NULL);
  EXPECT(CBR_OK, cbr_unwind(mark));
  expect_called(&it, 3);
}

static void G6_failuresTakeNothing(void) {
  promise it = {0};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.function = (cbr_function)(uintptr_t)completed;
  what.context = &it;
  what.destroy = promise_destroyed;
  int failures = 0;
  for (int64_t after = 0;; after++) {
    cbr_test_fail_allocation(after);
    cbr_status status =
        cbr_completion_create(registry, &what, 0, &it.completion);
    if (cbr_test_fail_allocation(-1) >= 0) {
      EXPECT(CBR_OK, status);
      break;
    }
    failures++;
    EXPECT(CBR_E_NOMEM, status);
    EQUAL(0, it.calls);
  }
  CHECK(failures > 0);
  EXPECT(CBR_OK, cbr_completion_send(it.completion, 0, NULL));
  expect_called(&it, 0);
}

static void G1_completionsRefuseWhatIsNotTheirs(void) {
  struct counted counted = {0};
  cbr_token token = add(registry, "token", &counted, false, CBR_NONE);
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_reply none = token;
  EXPECT(CBR_E_INVALID, cbr_completion_create(registry, &what, 0, &none));
  EQUAL(CBR_NONE, none);
  EXPECT(CBR_E_INVALID, cbr_completion_create(registry, NULL, 0, &none));
  what.function = (cbr_function)(uintptr_t)completed;
  what.flags = CBR_ONE_SHOT;
  EXPECT(CBR_E_INVALID, cbr_completion_create(registry, &what, 0, &none));
  what.flags = 0;
  what.type_tag = 1;
  EXPECT(CBR_E_INVALID, cbr_completion_create(registry, &what, 0, &none));
  what.type_tag = 0;
  EXPECT(CBR_E_KIND, cbr_completion_create(token, &what, 0, &none));
  EXPECT(CBR_E_KIND, cbr_completion_send(token, 0, NULL));
  EXPECT(CBR_E_INVALID, cbr_completion_send(CBR_NONE, 0, NULL));
  promise it = {0};
  add_promise(&it, CBR_NONE);
  EXPECT(CBR_E_KIND, cbr_reply_send(it.completion, CBR_ALLOW, CBR_NONE));
  EXPECT(CBR_OK, cbr_completion_send(it.completion, 0, NULL));
  EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
}

int main(void) {
  registry = open_registry("completions", test_level());
  TEST(G27_calledByTheFirst);
  TEST(G27_calledWhenNothingIsSent);
  TEST(G12_sentFromInside);
  TEST(G27_onceAmongRivals);
  TEST(G11_jumpOutOfACompletion);
  TEST(G6_failuresTakeNothing);
  TEST(G1_completionsRefuseWhatIsNotTheirs);
  EQUAL(0, statistics_of(registry).live_replies);
  close_registry(registry);
  return finish();
}

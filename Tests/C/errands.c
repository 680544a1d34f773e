/* SPDX-License-Identifier: Apache-2.0
 *
 * Destroys that run on a queue that the registration names (G7, F10).
 */
#include "messages.h"

static cbr_registry registry;

static cbr_status add_with_queue(receiver *self, cbr_queue queue,
                                 cbr_owner owner) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "receiver";
  what.function = (cbr_function)(uintptr_t)receive;
  what.context = self;
  what.destroy = receiver_destroyed;
  what.owner = owner;
  what.queue = queue;
  return cbr_register(registry, &what, &self->token);
}

/* F10: who ends it last is not who destroys it: that is the queue. */
static void F10_pumpedQueueDestroys(void) {
  receiver it[3] = {{0}};
  cbr_queue queue = add_queue(registry, CBR_QUEUE_PUMPED, 0, 1);
  for (int each = 0; each < 3; each++) {
    EXPECT(CBR_OK, add_with_queue(&it[each], queue, CBR_NONE));
    EXPECT(CBR_PENDING, cbr_invalidate(it[each].token, CBR_REASON_ENDED));
    EXPECT(CBR_E_TIMEOUT,
           cbr_invalidate_wait(it[each].token, CBR_REASON_ENDED, 0));
    EQUAL(0, destroyed(&it[each].counted));
  }
  EQUAL(0, pump(queue));
  for (int each = 0; each < 3; each++) {
    EQUAL(1, destroyed(&it[each].counted));
    EXPECT(CBR_ALREADY, cbr_invalidate_wait(it[each].token, CBR_REASON_ENDED,
                                            CBR_FOREVER));
  }
  end(queue);
}

static void F10_threadOfTheQueueDestroys(void) {
  receiver it[20] = {{0}};
  cbr_owner owner = add_owner(registry, "owner");
  cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD, 0, 0);
  for (int each = 0; each < 20; each++)
    EXPECT(CBR_OK, add_with_queue(&it[each], queue, owner));
  end(owner);
  for (int each = 0; each < 20; each++) {
    EQUAL(1, destroyed(&it[each].counted));
    CHECK(!pthread_equal(pthread_self(), it[each].counted.destroyed_by));
  }
  end(queue);
}

/* The queue is dead: destroy runs where it would without. */
static void F10_deadQueue(void) {
  receiver it = {0};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  EXPECT(CBR_OK, add_with_queue(&it, queue, CBR_NONE));
  end(queue);
  EXPECT(CBR_OK, cbr_invalidate(it.token, CBR_REASON_ENDED));
  EQUAL(1, destroyed(&it.counted));
  EXPECT(CBR_E_STALE, add_with_queue(&it, queue, CBR_NONE));
}

/* It ends with destroys that it has not come to. */
static void F10_queueEndsFirst(void) {
  for (int finishing = 0; finishing < 2; finishing++) {
    receiver it = {0};
    cbr_queue queue = add_queue(registry, 0, 0, 0);
    EXPECT(CBR_OK, add_with_queue(&it, queue, CBR_NONE));
    EXPECT(CBR_PENDING, cbr_invalidate(it.token, CBR_REASON_ENDED));
    if (finishing) {
      EXPECT(CBR_PENDING, cbr_queue_finish(queue));
      EQUAL(0, pump(queue));
    } else {
      EXPECT(CBR_OK, cbr_invalidate(queue, CBR_REASON_ENDED));
    }
    EQUAL(1, destroyed(&it.counted));
    EXPECT(CBR_ALREADY,
           cbr_invalidate_wait(it.token, CBR_REASON_ENDED, CBR_FOREVER));
    CHECK(!cbr_is_live(queue));
  }
}

static void act_wait(receiver *self, payload *it) {
  (void)it;
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(self->other->token,
                                           CBR_REASON_ENDED, CBR_FOREVER));
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait((cbr_owner)self->queue,
                                           CBR_REASON_ENDED, CBR_FOREVER));
}

/* G15: what the queue delivers waits for what only the queue will destroy. */
static void G15_waitingInsideItsQueue(void) {
  receiver it = {0}, other = {0};
  payload payloads[1] = {{0}};
  cbr_owner owner = add_owner(registry, "owner");
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  EXPECT(CBR_OK, add_with_queue(&other, queue, owner));
  it.act = act_wait;
  it.other = &other;
  it.queue = owner;
  EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
  EQUAL(1, pump(queue));
  EQUAL(0, destroyed(&other.counted));
  EQUAL(0, pump(queue));
  EQUAL(1, destroyed(&other.counted));
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER));
  end(queue);
  end(it.token);
}

/* G6 */
static void G6_refusedQueues(void) {
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  cbr_queue foreign = add_queue(other, 0, 0, 0);
  receiver it = {0};
  EXPECT(CBR_E_FOREIGN, add_with_queue(&it, foreign, CBR_NONE));
  EXPECT(CBR_E_KIND, add_with_queue(&it, registry, CBR_NONE));
  EXPECT(CBR_E_INVALID, add_with_queue(&it, UINT64_MAX, CBR_NONE));
  close_registry(other);
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  for (int64_t after = 0;; after++) {
    cbr_test_fail_allocation(after);
    cbr_status status = add_with_queue(&it, queue, CBR_NONE);
    if (cbr_test_fail_allocation(-1) >= 0) {
      EXPECT(CBR_OK, status);
      break;
    }
    EXPECT(CBR_E_NOMEM, status);
  }
  EQUAL(0, destroyed(&it.counted));
  EXPECT(CBR_PENDING, cbr_invalidate(it.token, CBR_REASON_ENDED));
  EQUAL(0, pump(queue));
  EQUAL(1, destroyed(&it.counted));
  end(queue);
}

/* Everything ends together: each is destroyed once, wherever. */
static void F10_closingTogether(void) {
  for (uint32_t kind = 1; kind <= 2; kind++) {
    receiver it[50] = {{0}};
    cbr_registry kept = registry;
    registry = open_registry("together", test_level());
    cbr_queue queue = add_queue(registry, kind, 0, 0);
    for (int each = 0; each < 50; each++) {
      EXPECT(CBR_OK, add_with_queue(&it[each], queue, CBR_NONE));
      if (each % 2 == 0) continue;
      cbr_status status = cbr_invalidate(it[each].token, CBR_REASON_ENDED);
      CHECK(status == CBR_PENDING || status == CBR_OK);
    }
    close_registry(registry);
    for (int each = 0; each < 50; each++)
      EQUAL(1, destroyed(&it[each].counted));
    registry = kept;
  }
}

typedef struct ender {
  receiver *of;
  int count;
} ender;

static void end_all(void *context) {
  ender *self = context;
  for (int each = 0; each < self->count; each++)
    end_at_last(self->of[each].token);
}

/* Tokens are ended by threads, while their queue ends. */
static void F10_endingAgainstTheQueue(void) {
  enum { EACH = 50 };
  static receiver it[2][EACH];
  for (int round = 0; round < TIMES(100, 20); round++) {
    WITHIN("round %d", round);
    ender enders[2];
    worker workers[2];
    cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD, 0, 0);
    memset(it, 0, sizeof it);
    for (int each = 0; each < 2; each++) {
      for (int token = 0; token < EACH; token++)
        EXPECT(CBR_OK, add_with_queue(&it[each][token], queue, CBR_NONE));
      enders[each] = (ender){it[each], EACH};
      start(&workers[each], "ender", end_all, &enders[each]);
    }
    for (int turn = 0; turn < round * 5; turn++) sched_yield();
    end(queue);
    for (int each = 0; each < 2; each++) {
      join(&workers[each]);
      for (int token = 0; token < EACH; token++)
        EQUAL(1, destroyed(&it[each][token].counted));
    }
  }
}

int main(void) {
  registry = open_registry("errands", test_level());
  TEST(F10_pumpedQueueDestroys);
  TEST(F10_threadOfTheQueueDestroys);
  TEST(F10_deadQueue);
  TEST(F10_queueEndsFirst);
  TEST(G15_waitingInsideItsQueue);
  TEST(G6_refusedQueues);
  TEST(F10_closingTogether);
  TEST(F10_endingAgainstTheQueue);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_queues);
  close_registry(registry);
  return finish();
}

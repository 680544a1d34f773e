/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues: what is delivered, in which order, and what becomes of the rest
 * (G21). posters.c is about waiting for room.
 */
#include "messages.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/epoll.h>

static cbr_registry registry;

static void G21_deliveredInOrder(void) {
  receiver it[2] = {{0}};
  payload payloads[6] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  for (int each = 0; each < 2; each++)
    add_receiver(registry, &it[each], 0, CBR_NONE);
  EQUAL(0, pump(queue));
  for (int each = 0; each < 6; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it[each % 2].token, &payloads[each]));
  }
  EQUAL(0, it[0].count);
  EQUAL(6, counts_of(queue).waiting);
  EQUAL(60, counts_of(queue).waiting_bytes);
  EQUAL(6, pump(queue));
  expect_freed(payloads, 6);
  for (int each = 0; each < 6; each++)
    EQUAL(each, it[each % 2].numbers[each / 2]);
  cbr_queue_counts counts = counts_of(queue);
  EQUAL(6, counts.posted);
  EQUAL(6, counts.delivered);
  EQUAL(0, counts.waiting_bytes);
  EQUAL(6, counts.peak_items);
  EQUAL(60, counts.peak_bytes);
  EQUAL(0, pump(queue));
  end(queue);
  EXPECT(CBR_E_STALE, post(queue, it[0].token, &payloads[0]));
  EQUAL(1, payloads[0].freed);
  EXPECT(CBR_E_STALE, cbr_queue_run(queue, 0, NULL));
  EQUAL(-1, cbr_queue_descriptor(queue));
  for (int each = 0; each < 2; each++) end(it[each].token);
}

static void G21_limit(void) {
  receiver it = {0};
  payload payloads[100] = {{0}};
  size_t ran = 0;
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 100; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  EXPECT(CBR_OK, cbr_queue_run(queue, 7, &ran));
  EQUAL(7, ran);
  EQUAL(7, it.count);
  EQUAL(93, counts_of(queue).waiting);
  EQUAL(93, pump(queue));
  expect_freed(payloads, 100);
  end(queue);
  end(it.token);
}

/* A17, E8: the token ends after ten of a hundred: the rest is not called. */
static void A17_tokenEndsWithNinetyQueued(void) {
  receiver it = {0};
  payload payloads[100] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 100; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  EXPECT(CBR_OK, cbr_queue_run(queue, 10, NULL));
  end(it.token);
  EQUAL(1, destroyed(&it.counted));
  EQUAL(90, pump(queue));
  EQUAL(10, it.count);
  EQUAL(90, counts_of(queue).dropped_stale);
  expect_freed(payloads, 100);
  EXPECT(CBR_E_STALE, post(queue, it.token, &payloads[0]));
  end(queue);
}

static void act_end_itself(receiver *self, payload *it) {
  if (it->number == 1)
    EXPECT(CBR_DEFERRED, cbr_invalidate(self->token, CBR_REASON_ENDED));
}

/* A10: a receiver ends itself: what waits for it is not delivered. */
static void A10_endsItselfInItsDelivery(void) {
  receiver it = {0}, other = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  add_receiver(registry, &other, 0, CBR_NONE);
  it.act = act_end_itself;
  for (int each = 0; each < 4; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, each == 3 ? other.token : it.token,
                        &payloads[each]));
  }
  EQUAL(4, pump(queue));
  EQUAL(2, it.count);
  EQUAL(1, other.count);
  EQUAL(1, destroyed(&it.counted));
  expect_freed(payloads, 4);
  end(queue);
  end(other.token);
}

static _Atomic int freed_before;

static void note_order(payload *it) {
  (void)it;
  atomic_fetch_add(&freed_before, 1);
}

/* E1: ending with fifty queued: fifty drops, and then it has ended. */
static void E1_endingDropsWhatWaits(void) {
  for (int kind = CBR_QUEUE_PUMPED; kind <= CBR_QUEUE_PUMPED; kind++) {
    receiver it = {0};
    payload payloads[50] = {{0}};
    cbr_queue queue = add_queue(registry, (uint32_t)kind, 0, 0);
    add_receiver(registry, &it, 0, CBR_NONE);
    freed_before = 0;
    for (int each = 0; each < 50; each++) {
      payloads[each].when_freed = note_order;
      EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
    }
    EXPECT(CBR_OK, cbr_invalidate(queue, CBR_REASON_ENDED));
    EQUAL(50, freed_before);
    expect_freed(payloads, 50);
    EQUAL(0, it.count);
    end(it.token);
  }
}

/* E5: tokens hold nothing, and neither do messages: closing runs destroy. */
static void E5_closingWithMessages(void) {
  receiver it = {0};
  payload payloads[3] = {{0}};
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  cbr_queue queue = add_queue(other, 0, 0, 0);
  add_receiver(other, &it, 0, CBR_NONE);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  close_registry(other);
  EQUAL(1, destroyed(&it.counted));
  EQUAL(0, it.count);
  expect_freed(payloads, 3);
  EXPECT(CBR_E_CLOSED, post(queue, it.token, &payloads[0]));
}

static void G21_failingWhenFull(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_FAIL, 3);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  EXPECT(CBR_E_FULL, post(queue, it.token, &payloads[3]));
  EQUAL(0, payloads[3].freed);
  EXPECT(CBR_OK, cbr_queue_run(queue, 1, NULL));
  EXPECT(CBR_OK, post(queue, it.token, &payloads[3]));
  EQUAL(3, pump(queue));
  expect_freed(payloads, 4);
  end(queue);
  end(it.token);
}

static void G21_dropsTheOldest(void) {
  receiver it = {0};
  payload payloads[70] = {{0}};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_DROP_OLDEST, 40);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 70; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  for (int each = 0; each < 70; each++)
    EQUAL(each < 30, payloads[each].freed);
  EQUAL(30, counts_of(queue).dropped_full);
  EQUAL(40, pump(queue));
  EQUAL(30, it.numbers[0]);
  EQUAL(69, it.numbers[39]);
  expect_freed(payloads, 70);
  end(queue);
  end(it.token);
}

static payload stolen_from[8];

static void act_post_more(receiver *self, payload *it) {
  if (it->number != 0) return;
  for (int each = 4; each < 8; each++)
    EXPECT(CBR_OK, post(self->queue, self->token, &stolen_from[each]));
}

/* What the delivering thread has moved to the front still waits, and is the
 * oldest. */
static void G21_dropsTheOldestOfABatch(void) {
  receiver it = {0};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_DROP_OLDEST, 4);
  add_receiver(registry, &it, 0, CBR_NONE);
  memset(stolen_from, 0, sizeof stolen_from);
  it.queue = queue;
  it.act = act_post_more;
  for (int each = 0; each < 8; each++) stolen_from[each].number = each;
  for (int each = 0; each < 4; each++)
    EXPECT(CBR_OK, post(queue, it.token, &stolen_from[each]));
  EQUAL(4, pump(queue));
  EQUAL(1, pump(queue));
  const int expected[] = {0, 4, 5, 6, 7};
  EQUAL(5, it.count);
  for (int each = 0; each < 5; each++) EQUAL(expected[each], it.numbers[each]);
  expect_freed(stolen_from, 8);
  EQUAL(3, counts_of(queue).dropped_full);
  end(queue);
  end(it.token);
}

/* E12: of many posts the latest is delivered, and the others are counted. */
static void E12_keepsTheLatest(void) {
  receiver it[2] = {{0}};
  payload payloads[20] = {{0}};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_KEEP_LATEST, 2);
  for (int each = 0; each < 2; each++)
    add_receiver(registry, &it[each], 0, CBR_NONE);
  for (int each = 0; each < 20; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it[each % 2].token, &payloads[each]));
  }
  EQUAL(18, counts_of(queue).merged);
  EQUAL(20, counts_of(queue).waiting_bytes);
  EQUAL(2, pump(queue));
  EQUAL(18, it[0].numbers[0]);
  EQUAL(19, it[1].numbers[0]);
  expect_freed(payloads, 20);
  payload later = {0};
  later.number = 77;
  EXPECT(CBR_OK, post(queue, it[0].token, &later));
  EQUAL(1, pump(queue));
  EQUAL(77, it[0].numbers[1]);
  end(queue);
  for (int each = 0; each < 2; each++) end(it[each].token);
}

static void G21_boundOfBytes(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  cbr_queue queue = CBR_NONE;
  options.max_bytes = 25;
  EXPECT(CBR_OK, cbr_queue_create(registry, &options, &queue));
  add_receiver(registry, &it, 0, CBR_NONE);
  cbr_message message = CBR_MESSAGE_INIT;
  message.payload_bytes = 26;
  EXPECT(CBR_E_INVALID, cbr_post(queue, it.token, &message));
  CHECK(strstr(cbr_last_error(), "26") && strstr(cbr_last_error(), "25"));
  EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
  EXPECT(CBR_OK, post(queue, it.token, &payloads[1]));
  EXPECT(CBR_E_FULL, post(queue, it.token, &payloads[2]));
  message.payload_bytes = 5;
  EXPECT(CBR_OK, cbr_post(queue, it.token, &message));
  EXPECT(CBR_OK, cbr_queue_run(queue, 1, NULL));
  EXPECT(CBR_OK, post(queue, it.token, &payloads[2]));
  EQUAL(3, pump(queue));
  expect_freed(payloads, 3);
  end(queue);
  end(it.token);
}

/* Bytes that no number could hold together are refused, and not added. */
static void G21_boundOfAllBytes(void) {
  const uint32_t policies[] = {CBR_QUEUE_FAIL, CBR_QUEUE_DROP_OLDEST,
                               CBR_QUEUE_KEEP_LATEST};
  const cbr_status second[] = {CBR_E_FULL, CBR_OK, CBR_E_FULL};
  for (int policy = 0; policy < 3; policy++) {
    WITHIN("policy %u", policies[policy]);
    receiver it = {0}, other = {0};
    cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
    cbr_queue queue = CBR_NONE;
    options.overflow = policies[policy];
    options.max_bytes = options.max_items = UINT64_MAX;
    EXPECT(CBR_OK, cbr_queue_create(registry, &options, &queue));
    add_receiver(registry, &it, 0, CBR_NONE);
    add_receiver(registry, &other, 0, CBR_NONE);
    cbr_message message = CBR_MESSAGE_INIT;
    message.payload_bytes = UINT64_MAX;
    EXPECT(CBR_OK, cbr_post(queue, it.token, &message));
    EXPECT(second[policy], cbr_post(queue, other.token, &message));
    EQUAL(1, pump(queue));
    EXPECT(CBR_OK, cbr_post(queue, it.token, &message));
    end(queue);
    end(it.token);
    end(other.token);
  }
}

/* A queue that is full of what nobody would receive is not full. */
static void G21_deadTokensMakeRoom(void) {
  const uint32_t policies[] = {CBR_QUEUE_FAIL, CBR_QUEUE_BLOCK,
                               CBR_QUEUE_KEEP_LATEST};
  for (int policy = 0; policy < 3; policy++) {
    WITHIN("policy %u", policies[policy]);
    receiver dead[4] = {{0}}, it[4] = {{0}};
    payload payloads[8] = {{0}};
    cbr_queue queue = add_queue(registry, 0, policies[policy], 4);
    for (int each = 0; each < 4; each++) {
      add_receiver(registry, &dead[each], 0, CBR_NONE);
      add_receiver(registry, &it[each], 0, CBR_NONE);
      EXPECT(CBR_OK, post(queue, dead[each].token, &payloads[each]));
    }
    for (int each = 0; each < 4; each++) end(dead[each].token);
    for (int each = 0; each < 4; each++) {
      payloads[4 + each].number = each;
      EXPECT(CBR_OK, post(queue, it[each].token, &payloads[4 + each]));
      EQUAL(1, payloads[each].freed);
    }
    EQUAL(4, counts_of(queue).dropped_stale);
    EQUAL(4, pump(queue));
    expect_freed(payloads, 8);
    end(queue);
    for (int each = 0; each < 4; each++) {
      EQUAL(1, it[each].count);
      end(it[each].token);
    }
  }
}

static void E12_deadTokensAndTheLatest(void) {
  receiver it[40] = {{0}};
  payload payloads[80] = {{0}};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_KEEP_LATEST, 39);
  for (int each = 0; each < 40; each++)
    add_receiver(registry, &it[each], 0, CBR_NONE);
  for (int each = 0; each < 39; each++)
    EXPECT(CBR_OK, post(queue, it[each].token, &payloads[each]));
  EXPECT(CBR_E_FULL, post(queue, it[39].token, &payloads[39]));
  end(it[20].token);
  EXPECT(CBR_OK, post(queue, it[39].token, &payloads[39]));
  EQUAL(1, payloads[20].freed);
  /* Those that were moved are found still. */
  for (int each = 0; each < 40; each++)
    if (each != 20)
      EXPECT(CBR_OK, post(queue, it[each].token, &payloads[40 + each]));
  EQUAL(39, counts_of(queue).merged);
  EQUAL(39, pump(queue));
  for (int each = 0; each < 40; each++) {
    EQUAL(each != 20, it[each].count);
    EQUAL(1, payloads[each].freed);
    EQUAL(each != 20, payloads[40 + each].freed);
    if (each != 20) end(it[each].token);
  }
  end(queue);
}

static void act_run_nested(receiver *self, payload *it) {
  size_t ran = 99;
  if (it->number != 0) return;
  EXPECT(CBR_OK, post(self->queue, self->token, &stolen_from[1]));
  EXPECT(CBR_DEFERRED, cbr_queue_run(self->queue, 0, &ran));
  EQUAL(0, ran);
  EQUAL(1, self->count);
}

/* One call at a time: who is inside leaves the rest to the run around it, and
 * nothing is stuck. */
static void G21_nestedRun(void) {
  receiver it = {0};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  memset(stolen_from, 0, sizeof stolen_from);
  stolen_from[1].number = 1;
  it.queue = queue;
  it.act = act_run_nested;
  EXPECT(CBR_OK, post(queue, it.token, &stolen_from[0]));
  EQUAL(2, pump(queue));
  EQUAL(2, it.count);
  CHECK(!it.overlapped);
  expect_freed(stolen_from, 2);
  end(queue);
  end(it.token);
}

static void run_it(void *context) {
  receiver *self = context;
  self->status = cbr_queue_run(self->queue, 0, NULL);
}

static void G21_twoThreadsRun(void) {
  receiver it = {0};
  payload payloads[2] = {{0}};
  worker pumper;
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.queue = queue;
  EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
  gate at = GATE(DELIVERY_ENDING, queue, &pumper);
  close_gate(&at);
  start(&pumper, "pumper", run_it, &it);
  await_gate(&at);
  EXPECT(CBR_OK, post(queue, it.token, &payloads[1]));
  EXPECT(CBR_PENDING, cbr_queue_run(queue, 0, NULL));
  EQUAL(1, it.count);
  open_gate(&at);
  join(&pumper);
  EXPECT(CBR_OK, it.status);
  EQUAL(2, it.count);
  CHECK(!it.overlapped);
  end(queue);
  end(it.token);
}

static void act_wait_for_queue(receiver *self, payload *it) {
  (void)it;
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(self->queue, CBR_REASON_ENDED,
                                           CBR_FOREVER));
  EXPECT(CBR_E_STALE, post(self->queue, self->token, it));
}

/* G12: the queue is ended by what it delivers. */
static void G12_queueEndsInside(void) {
  receiver it = {0};
  payload payloads[3] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.queue = queue;
  it.act = act_wait_for_queue;
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  EQUAL(1, pump(queue));
  EQUAL(1, it.count);
  expect_freed(payloads, 3);
  CHECK(!cbr_is_live(queue));
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
  end(it.token);
}

static void wait_for_queue(payload *it) {
  cbr_status status =
      cbr_invalidate_wait(it->handle, CBR_REASON_ENDED, CBR_FOREVER);
  CHECK(status == CBR_DEFERRED);
}

/* G12: and by the functions that free payloads, wherever they run. */
static void G12_queueEndsWhileFreeing(void) {
  const uint32_t policies[] = {CBR_QUEUE_FAIL, CBR_QUEUE_DROP_OLDEST,
                               CBR_QUEUE_KEEP_LATEST};
  for (int policy = 0; policy < 3; policy++) {
    WITHIN("policy %u", policies[policy]);
    receiver it = {0};
    payload payloads[3] = {{0}};
    cbr_queue queue = add_queue(registry, 0, policies[policy], 2);
    add_receiver(registry, &it, 0, CBR_NONE);
    payloads[0].when_freed = wait_for_queue;
    payloads[0].handle = queue;
    for (int each = 0; each < 3; each++) {
      cbr_status status = post(queue, it.token, &payloads[each]);
      if (status != CBR_OK) free_payload(&payloads[each]);
    }
    if (policy == 0) (void)cbr_queue_run(queue, 0, NULL);
    CHECK(!cbr_is_live(queue));
    EXPECT(CBR_ALREADY,
           cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
    expect_freed(payloads, 3);
    end(it.token);
  }
}

static void A1_waitingForADelivery(void) {
  receiver it = {0};
  payload payloads[3] = {{0}};
  worker pumper;
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.queue = queue;
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  gate at = GATE(ENTER_CHECKED, it.token, &pumper);
  close_gate(&at);
  start(&pumper, "pumper", run_it, &it);
  await_gate(&at);
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(queue, CBR_REASON_ENDED, 0));
  EQUAL(0, payloads[2].freed);
  open_gate(&at);
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
  expect_freed(payloads, 3);
  EQUAL(1, it.count);
  join(&pumper);
  end(it.token);
}

/* E13: finishing refuses new posts, delivers queued ones, and ends. */
static void E13_finish(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  EXPECT(CBR_PENDING, cbr_queue_finish(queue));
  EXPECT(CBR_ALREADY, cbr_queue_finish(queue));
  EXPECT(CBR_E_CLOSED, post(queue, it.token, &payloads[3]));
  CHECK(cbr_is_live(queue));
  EXPECT(CBR_OK, cbr_queue_run(queue, 1, NULL));
  CHECK(cbr_is_live(queue));
  EQUAL(2, pump(queue));
  EQUAL(3, it.count);
  expect_freed(payloads, 3);
  EQUAL(0, payloads[3].freed);
  CHECK(!cbr_is_live(queue));
  queue = add_queue(registry, 0, 0, 0);
  EXPECT(CBR_OK, cbr_queue_finish(queue));
  CHECK(!cbr_is_live(queue));
  end(it.token);
}

static void act_finish(receiver *self, payload *it) {
  if (it->number == 0) EXPECT(CBR_DEFERRED, cbr_queue_finish(self->queue));
}

static void E13_finishInside(void) {
  receiver it = {0};
  payload payloads[3] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.queue = queue;
  it.act = act_finish;
  for (int each = 0; each < 3; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  EQUAL(3, pump(queue));
  EQUAL(3, it.count);
  CHECK(!cbr_is_live(queue));
  expect_freed(payloads, 3);
  end(it.token);
}

static void G21_oneShots(void) {
  receiver it = {0};
  payload payloads[3] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, CBR_ONE_SHOT, CBR_NONE);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  EQUAL(3, pump(queue));
  EQUAL(1, it.count);
  EQUAL(1, destroyed(&it.counted));
  EQUAL(2, counts_of(queue).dropped_stale);
  expect_freed(payloads, 3);
  EXPECT(CBR_E_CONSUMED, post(queue, it.token, &payloads[0]));
  end(queue);
}

static void G21_threadBound(void) {
  receiver it = {0};
  payload payloads[2] = {{0}};
  worker pumper;
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, CBR_THREAD_BOUND, CBR_NONE);
  it.queue = queue;
  EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
  start(&pumper, "pumper", run_it, &it);
  join(&pumper);
  EQUAL(0, it.count);
  EQUAL(1, counts_of(queue).dropped_refused);
  EXPECT(CBR_OK, post(queue, it.token, &payloads[1]));
  EQUAL(1, pump(queue));
  EQUAL(1, it.count);
  expect_freed(payloads, 2);
  end(queue);
  end(it.token);
}

static void receive_method(void *context, void *argument) {
  receiver *self = context;
  (void)argument;
  self->numbers[self->count++] = 500;
}

static void invoke_by_number(cbr_function function, void *context,
                             void *argument) {
  payload *it = argument;
  ((void (*)(void *, int))(uintptr_t)function)(context, it->number);
}

static void receive_number(void *context, int number) {
  receiver *self = context;
  self->numbers[self->count++] = number;
}

static void G10_methodsTagsAndInvoke(void) {
  const cbr_method methods[] = {{"one", CBR_METHOD_REQUIRED, 0},
                                {"two", 0, 0}};
  const cbr_function table[] = {(cbr_function)(uintptr_t)receive_method, NULL};
  cbr_interface interface = {sizeof interface, "queued", 1, 2, methods};
  receiver it = {0}, tagged = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_KEEP_LATEST, 0);
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.interface = &interface;
  what.methods = table;
  what.context = &it;
  EXPECT(CBR_OK, cbr_register(registry, &what, &it.token));
  what.interface = NULL;
  what.methods = NULL;
  what.function = (cbr_function)(uintptr_t)receive_number;
  what.type_tag = 7;
  what.context = &tagged;
  EXPECT(CBR_OK, cbr_register(registry, &what, &tagged.token));
  cbr_message message = CBR_MESSAGE_INIT;
  EXPECT(CBR_E_INTERFACE, cbr_post(queue, it.token, &message));
  EXPECT(CBR_E_INTERFACE, cbr_post(queue, tagged.token, NULL));
  message.type_tag = 8;
  EXPECT(CBR_E_INTERFACE, cbr_post(queue, tagged.token, &message));
  message.type_tag = 7;
  message.payload = &payloads[0];
  payloads[0].number = 42;
  message.invoke = invoke_by_number;
  EXPECT(CBR_OK, cbr_post(queue, tagged.token, &message));
  message.interface = &interface;
  EXPECT(CBR_E_INVALID, cbr_post(queue, it.token, &message));
  message = (cbr_message)CBR_MESSAGE_INIT;
  message.method = 1;
  EXPECT(CBR_E_INVALID, cbr_post(queue, it.token, &message));
  message.interface = &interface;
  EXPECT(CBR_E_UNIMPLEMENTED, cbr_post(queue, it.token, &message));
  message.method = 2;
  EXPECT(CBR_E_INVALID, cbr_post(queue, it.token, &message));
  message.method = 0;
  EXPECT(CBR_OK, cbr_post(queue, it.token, &message));
  /* The caller's interface is gone by then. */
  interface = (cbr_interface){sizeof interface, "another", 1, 2, methods};
  EXPECT(CBR_E_INTERFACE, cbr_post(queue, it.token, &message));
  EQUAL(2, pump(queue));
  EQUAL(42, tagged.numbers[0]);
  EQUAL(500, it.numbers[0]);
  end(queue);
  end(it.token);
  end(tagged.token);
}

static bool is_readable(cbr_queue queue) {
  struct pollfd poller = {cbr_queue_descriptor(queue), POLLIN, 0};
  return poll(&poller, 1, 0) == 1 && (poller.revents & POLLIN) != 0;
}

static void G21_descriptor(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  CHECK(cbr_queue_descriptor(queue) >= 0);
  CHECK(!is_readable(queue));
  for (int each = 0; each < 4; each++) {
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
    CHECK(is_readable(queue));
  }
  EXPECT(CBR_OK, cbr_queue_run(queue, 3, NULL));
  CHECK(is_readable(queue));
  EQUAL(1, pump(queue));
  CHECK(!is_readable(queue));
  end(queue);
  end(it.token);
}

static void act_post_again(receiver *self, payload *it) {
  payload *next = &stolen_from[it->number + 1];
  if (it->number < 7) EXPECT(CBR_OK, post(self->queue, self->token, next));
}

/* By edges, nothing is left lying: what a run leaves is another edge. */
static void G21_edgeTriggered(void) {
  for (int edge = 0; edge < 2; edge++) {
    receiver it = {0};
    struct epoll_event event = {edge ? EPOLLIN | EPOLLET : EPOLLIN, {0}};
    cbr_queue queue = add_queue(registry, 0, 0, 0);
    int poller = epoll_create1(0);
    add_receiver(registry, &it, 0, CBR_NONE);
    memset(stolen_from, 0, sizeof stolen_from);
    for (int each = 0; each < 8; each++) stolen_from[each].number = each;
    it.queue = queue;
    it.act = act_post_again;
    EQUAL(0, epoll_ctl(poller, EPOLL_CTL_ADD, cbr_queue_descriptor(queue),
                       &event));
    EQUAL(0, epoll_wait(poller, &event, 1, 0));
    EXPECT(CBR_OK, post(queue, it.token, &stolen_from[0]));
    for (int each = 0; each < 8; each++) {
      EQUAL(1, epoll_wait(poller, &event, 1, 0));
      EXPECT(CBR_OK, cbr_queue_run(queue, 1, NULL));
      EQUAL(each + 1, it.count);
    }
    EQUAL(0, epoll_wait(poller, &event, 1, 0));
    close(poller);
    end(queue);
    end(it.token);
  }
}

static jmp_buf out;
static size_t mark;

static void act_jump(receiver *self, payload *it) {
  if (it->number != 1) return;
  atomic_fetch_sub(&self->inside, 1);
  longjmp(out, 1);
}

/* G11: a delivery is jumped out of: its payload is freed, and the rest is
 * delivered by the next run. */
static void G11_jumpOutOfADelivery(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.act = act_jump;
  for (int each = 0; each < 4; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  mark = cbr_mark();
  if (setjmp(out) == 0) (void)cbr_queue_run(queue, 0, NULL);
  EXPECT(CBR_OK, cbr_unwind(mark));
  EQUAL(1, payloads[1].freed);
  CHECK(is_readable(queue));
  EQUAL(2, pump(queue));
  EQUAL(4, it.count);
  expect_freed(payloads, 4);
  end(queue);
  end(it.token);
}

static void act_exit(receiver *self, payload *it) {
  if (it->number != 1) return;
  atomic_fetch_sub(&self->inside, 1);
  pthread_exit(NULL);
}

static void G11_threadEndsInADelivery(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  worker pumper;
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.queue = queue;
  it.act = act_exit;
  for (int each = 0; each < 4; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  start(&pumper, "pumper", run_it, &it);
  join(&pumper);
  EQUAL(2, pump(queue));
  EQUAL(4, it.count);
  expect_freed(payloads, 4);
  end(queue);
  end(it.token);
}

static void G1_queuesRefuseWhatIsNotTheirs(void) {
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  receiver it = {0}, foreign = {0};
  payload unused = {0};
  size_t ran = 9;
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  add_receiver(other, &foreign, 0, CBR_NONE);
  EXPECT(CBR_E_FOREIGN, post(queue, foreign.token, &unused));
  EXPECT(CBR_E_INVALID, post(queue, CBR_NONE, &unused));
  EXPECT(CBR_E_INVALID, post(queue, UINT64_MAX, &unused));
  EXPECT(CBR_E_KIND, post(queue, queue, &unused));
  EXPECT(CBR_E_KIND, post(it.token, it.token, &unused));
  EXPECT(CBR_E_INVALID, post(CBR_NONE, it.token, &unused));
  EXPECT(CBR_E_KIND, cbr_queue_run(it.token, 0, &ran));
  EQUAL(0, ran);
  EXPECT(CBR_E_KIND, cbr_queue_finish(registry));
  EQUAL(-1, cbr_queue_descriptor(it.token));
  EXPECT(CBR_E_KIND, cbr_enter(queue, &(cbr_call)CBR_CALL_INIT));
  cbr_queue_counts counts = {sizeof counts - 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                             0, 0, 0};
  EXPECT(CBR_E_INVALID, cbr_queue_statistics(queue, &counts));
  EXPECT(CBR_E_INVALID, cbr_queue_statistics(queue, NULL));
  EXPECT(CBR_E_INVALID, cbr_queue_create(registry, NULL, NULL));
  cbr_message message = CBR_MESSAGE_INIT;
  message.reserved = 1;
  EXPECT(CBR_E_INVALID, cbr_post(queue, it.token, &message));
  message.reserved = 0;
  message.size--;
  EXPECT(CBR_E_INVALID, cbr_post(queue, it.token, &message));
  cbr_queue none = queue;
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  options.kind = 3;
  EXPECT(CBR_E_INVALID, cbr_queue_create(registry, &options, &none));
  EQUAL(CBR_NONE, none);
  options.kind = 0;
  options.overflow = 5;
  EXPECT(CBR_E_INVALID, cbr_queue_create(registry, &options, &none));
  options.overflow = 0;
  options.owner = it.token;
  EXPECT(CBR_E_KIND, cbr_queue_create(registry, &options, &none));
  options.owner = add_owner(other, "foreign");
  for (uint32_t kind = 1; kind <= 2; kind++) {
    options.kind = kind;
    EXPECT(CBR_E_FOREIGN, cbr_queue_create(registry, &options, &none));
  }
  options.owner = CBR_NONE;
  options.size = 1;
  EXPECT(CBR_E_INVALID, cbr_queue_create(registry, &options, &none));
  /* The defaults. */
  EXPECT(CBR_OK, cbr_queue_create(registry, NULL, &none));
  EXPECT(CBR_OK, cbr_post(none, it.token, NULL));
  EQUAL(1, pump(none));
  EQUAL(-1, it.numbers[0]);
  EQUAL(2, statistics_of(registry).live_queues);
  end(none);
  end(queue);
  end(it.token);
  close_registry(other);
  EQUAL(0, unused.freed);
}

/* G6: whatever fails, nothing is taken. */
static void G6_queuesWithoutMemory(void) {
  receiver it = {0};
  add_receiver(registry, &it, 0, CBR_NONE);
  for (uint32_t kind = 1; kind <= 2; kind++) {
    int failures = 0;
    for (int64_t after = 0;; after++) {
      cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
      cbr_queue queue = CBR_NONE;
      options.kind = kind;
      cbr_test_fail_allocation(after);
      cbr_status status = cbr_queue_create(registry, &options, &queue);
      bool has_failed = cbr_test_fail_allocation(-1) == -1;
      if (status == CBR_OK) {
        end(queue);
        if (!has_failed) break;
        continue;
      }
      EXPECT(CBR_E_NOMEM, status);
      EQUAL(CBR_NONE, queue);
      failures++;
    }
    CHECK(failures >= 3);
  }
  payload payloads[100] = {{0}};
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_KEEP_LATEST, 0);
  receiver many[100] = {{0}};
  int failures = 0;
  for (int each = 0; each < 100; each++) {
    add_receiver(registry, &many[each], 0, CBR_NONE);
    for (int64_t after = 0;; after++) {
      cbr_test_fail_allocation(after);
      cbr_status status = post(queue, many[each].token, &payloads[each]);
      if (cbr_test_fail_allocation(-1) >= 0) {
        EXPECT(CBR_OK, status);
        break;
      }
      EXPECT(CBR_E_NOMEM, status);
      EQUAL(0, payloads[each].freed);
      failures++;
    }
  }
  CHECK(failures >= 6);
  cbr_test_fail_allocation(0);
  size_t ran = 0;
  cbr_status status = cbr_queue_run(queue, 0, &ran);
  (void)cbr_test_fail_allocation(-1);
  CHECK(status == CBR_OK || status == CBR_E_NOMEM);
  EQUAL(100 - ran, pump(queue));
  expect_freed(payloads, 100);
  end(queue);
  for (int each = 0; each < 100; each++) end(many[each].token);
  end(it.token);
}

static cbr_queue inherited;
static int inherited_descriptor;

static void use_inherited(void) {
  EXPECT(CBR_E_FORKED, cbr_queue_run(inherited, 0, NULL));
  EXPECT(CBR_E_FORKED, cbr_post(inherited, CBR_NONE, NULL));
  EXPECT(CBR_E_FORKED, cbr_queue_finish(inherited));
  EQUAL(-1, cbr_queue_descriptor(inherited));
  CHECK(fcntl(inherited_descriptor, F_GETFD) == -1 && errno == EBADF);
  cbr_registry own = open_registry("child", CBR_LEVEL_OFF);
  receiver it = {0};
  payload payloads[1] = {{0}};
  cbr_queue queue = add_queue(own, CBR_QUEUE_PUMPED, 0, 0);
  add_receiver(own, &it, 0, CBR_NONE);
  EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
  EQUAL(1, pump(queue));
  close_registry(own);
}

static void H1_forked(void) {
  receiver it = {0};
  payload payloads[1] = {{0}};
  inherited = add_queue(registry, 0, 0, 0);
  inherited_descriptor = cbr_queue_descriptor(inherited);
  cbr_queue threaded = add_queue(registry, CBR_QUEUE_THREAD, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  EXPECT(CBR_OK, post(inherited, it.token, &payloads[0]));
  CHECK(holds_in_child(use_inherited));
  CHECK(is_readable(inherited));
  EQUAL(1, pump(inherited));
  end(inherited);
  end(threaded);
  end(it.token);
}

static int status_of_child;

static void act_fork(receiver *self, payload *it) {
  (void)self;
  if (it->number != 0) return;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    return;
  }
  waitpid(child, &status_of_child, 0);
}

/* H1: what is delivered forks, and returns in the child: there the delivery
 * ends, and calls nothing of its parent's. */
static void H1_forkedInside(void) {
  receiver it = {0};
  payload payloads[3] = {{0}};
  pid_t parent = getpid();
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.act = act_fork;
  for (int each = 0; each < 3; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  cbr_status status = cbr_queue_run(queue, 0, NULL);
  if (getpid() != parent)
    _exit(status == CBR_E_FORKED && it.count == 1 ? 0 : 1);
  EXPECT(CBR_OK, status);
  CHECK(WIFEXITED(status_of_child) && WEXITSTATUS(status_of_child) == 0);
  EQUAL(3, it.count);
  expect_freed(payloads, 3);
  end(queue);
  end(it.token);
}

/* G17: a queue ends with its owner; what is in it is dropped. */
static void G17_endsWithItsOwner(void) {
  receiver it = {0};
  payload payloads[2] = {{0}};
  for (uint32_t kind = 1; kind <= 1; kind++) {
    cbr_owner owner = add_owner(registry, "owner");
    cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
    cbr_queue queue = CBR_NONE;
    options.owner = owner;
    options.kind = kind;
    EXPECT(CBR_OK, cbr_queue_create(registry, &options, &queue));
    add_receiver(registry, &it, 0, owner);
    for (int each = 0; each < 2; each++)
      EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
    EXPECT(CBR_OK, cbr_invalidate(owner, CBR_REASON_ENDED));
    CHECK(!cbr_is_live(queue));
    expect_freed(payloads, 2);
    EQUAL(1, destroyed(&it.counted));
  }
}

int main(void) {
  registry = open_registry("queues", test_level());
  TEST(G21_deliveredInOrder);
  TEST(G21_limit);
  TEST(A17_tokenEndsWithNinetyQueued);
  TEST(A10_endsItselfInItsDelivery);
  TEST(E1_endingDropsWhatWaits);
  TEST(E5_closingWithMessages);
  TEST(G21_failingWhenFull);
  TEST(G21_dropsTheOldest);
  TEST(G21_dropsTheOldestOfABatch);
  TEST(E12_keepsTheLatest);
  TEST(E12_deadTokensAndTheLatest);
  TEST(G21_boundOfBytes);
  TEST(G21_boundOfAllBytes);
  TEST(G21_deadTokensMakeRoom);
  TEST(G21_nestedRun);
  TEST(G21_twoThreadsRun);
  TEST(G12_queueEndsInside);
  TEST(G12_queueEndsWhileFreeing);
  TEST(A1_waitingForADelivery);
  TEST(E13_finish);
  TEST(E13_finishInside);
  TEST(G21_oneShots);
  TEST(G21_threadBound);
  TEST(G10_methodsTagsAndInvoke);
  TEST(G21_descriptor);
  TEST(G21_edgeTriggered);
  TEST(G11_jumpOutOfADelivery);
  TEST(G11_threadEndsInADelivery);
  TEST(G1_queuesRefuseWhatIsNotTheirs);
  TEST(G6_queuesWithoutMemory);
  TEST(H1_forked);
  TEST(H1_forkedInside);
  TEST(G17_endsWithItsOwner);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_queues);
  close_registry(registry);
  return finish();
}

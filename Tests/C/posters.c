/* SPDX-License-Identifier: Apache-2.0
 *
 * Posters that wait for room (G22), and queues with a thread of their own.
 */
#include "messages.h"

static cbr_registry registry;

typedef struct poster {
  cbr_queue queue;
  cbr_token token;
  int times;
  cbr_status status;
  payload *payloads;
  worker worker;
} poster;

static void post_it(void *context) {
  poster *self = context;
  for (int each = 0; each < self->times; each++) {
    self->status = post(self->queue, self->token, &self->payloads[each]);
    if (self->status != CBR_OK) break;
  }
}

static void start_posting(poster *self, cbr_queue queue, cbr_token token,
                          payload *payloads, int times) {
  *self = (poster){queue, token, times, CBR_E_USER, payloads, {0}};
  start(&self->worker, "poster", post_it, self);
}

/* Waits until so many posters wait. */
static void await_blocked(cbr_queue queue, uint64_t count) {
  AWAIT(counts_of(queue).blocked >= count);
}

enum { POSTERS = 8, EACH = 125 };

/* E3: eight posters, a queue of one, a thousand messages: all get through. */
static void E3_noWakeUpIsLost(void) {
  static payload payloads[POSTERS][EACH];
  for (uint32_t kind = 1; kind <= 2; kind++) {
    receiver it = {0};
    poster posters[POSTERS];
    cbr_queue queue = add_queue(registry, kind, CBR_QUEUE_BLOCK, 1);
    add_receiver(registry, &it, 0, CBR_NONE);
    memset(payloads, 0, sizeof payloads);
    for (int each = 0; each < POSTERS; each++)
      start_posting(&posters[each], queue, it.token, payloads[each], EACH);
    AWAIT((kind == CBR_QUEUE_PUMPED ? pump(queue) : 0,
           it.count == POSTERS * EACH));
    for (int each = 0; each < POSTERS; each++) {
      join(&posters[each].worker);
      EXPECT(CBR_OK, posters[each].status);
    }
    CHECK(!it.overlapped);
    EQUAL(1, counts_of(queue).peak_items);
    end(queue);
    for (int each = 0; each < POSTERS; each++)
      expect_freed(payloads[each], EACH);
    end(it.token);
  }
}

/* G22: ending wakes every one of them, also one that is about to sleep. */
static void G22_endingWakesPosters(void) {
  for (int finishing = 0; finishing < 2; finishing++) {
    static payload payloads[POSTERS + 1];
    receiver it = {0};
    poster posters[POSTERS];
    cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_BLOCK, 1);
    add_receiver(registry, &it, 0, CBR_NONE);
    memset(payloads, 0, sizeof payloads);
    EXPECT(CBR_OK, post(queue, it.token, &payloads[POSTERS]));
    for (int each = 0; each < POSTERS; each++)
      start_posting(&posters[each], queue, it.token, &payloads[each], 1);
    await_blocked(queue, POSTERS);
    if (finishing) {
      EXPECT(CBR_PENDING, cbr_queue_finish(queue));
    } else {
      end(queue);
    }
    for (int each = 0; each < POSTERS; each++) {
      join(&posters[each].worker);
      EXPECT(CBR_E_CLOSED, posters[each].status);
      EQUAL(0, payloads[each].freed);
    }
    if (finishing) EQUAL(1, pump(queue));
    EQUAL(1, payloads[POSTERS].freed);
    EQUAL(finishing, it.count);
    CHECK(!cbr_is_live(queue));
    end(it.token);
  }
}

/* The queue ends, or a message is taken, when a poster has looked and is about
 * to wait. */
static void G22_wokenBeforeItSleeps(void) {
  for (int ending = 0; ending < 2; ending++) {
    payload payloads[2] = {{0}};
    receiver it = {0};
    poster one;
    cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_BLOCK, 1);
    add_receiver(registry, &it, 0, CBR_NONE);
    EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
    gate at = GATE(POSTER_BLOCKED, queue, &one.worker);
    close_gate(&at);
    start_posting(&one, queue, it.token, &payloads[1], 1);
    await_gate(&at);
    if (ending)
      EXPECT(CBR_PENDING, cbr_invalidate(queue, CBR_REASON_ENDED));
    else
      EQUAL(1, pump(queue));
    open_gate(&at);
    join(&one.worker);
    EXPECT(ending ? CBR_E_CLOSED : CBR_OK, one.status);
    if (!ending) EQUAL(1, pump(queue));
    end_at_last(queue);
    EQUAL(1, payloads[0].freed);
    EQUAL(!ending, payloads[1].freed);
    end(it.token);
  }
}

static void G22_timeout(void) {
  receiver it = {0};
  payload payloads[2] = {{0}};
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  cbr_queue queue = CBR_NONE;
  options.overflow = CBR_QUEUE_BLOCK;
  options.max_items = 1;
  options.block_timeout_ns = 1;
  EXPECT(CBR_OK, cbr_queue_create(registry, &options, &queue));
  add_receiver(registry, &it, 0, CBR_NONE);
  EXPECT(CBR_OK, post(queue, it.token, &payloads[0]));
  EXPECT(CBR_E_TIMEOUT, post(queue, it.token, &payloads[1]));
  EQUAL(0, payloads[1].freed);
  EQUAL(0, counts_of(queue).blocked);
  EQUAL(1, pump(queue));
  end(queue);
  end(it.token);
}

static payload extra[4];

static void act_post_two(receiver *self, payload *it) {
  if (it->number != 0) return;
  EXPECT(CBR_OK, post(self->queue, self->token, &extra[0]));
  EXPECT(CBR_E_WOULD_DEADLOCK, post(self->queue, self->token, &extra[1]));
}

/* E6, G22: room that only the poster itself could make. */
static void E6_ownFullQueue(void) {
  for (uint32_t kind = 1; kind <= 2; kind++) {
    receiver it = {0};
    payload first = {0};
    cbr_queue queue = add_queue(registry, kind, CBR_QUEUE_BLOCK, 1);
    add_receiver(registry, &it, 0, CBR_NONE);
    memset(extra, 0, sizeof extra);
    extra[0].number = extra[1].number = 1;
    it.queue = queue;
    it.act = act_post_two;
    EXPECT(CBR_OK, post(queue, it.token, &first));
    if (kind == CBR_QUEUE_PUMPED) {
      EQUAL(1, pump(queue));
      EQUAL(1, pump(queue));
    }
    AWAIT(it.count == 2);
    end(queue);
    EQUAL(1, first.freed);
    EQUAL(1, extra[0].freed);
    EQUAL(0, extra[1].freed);
    end(it.token);
  }
}

static void act_post_to_other(receiver *self, payload *it) {
  if (it->number == 0)
    self->status = post(self->other->queue, self->other->token, &extra[0]);
}

static void run_it(void *context) {
  receiver *self = context;
  EXPECT(CBR_OK, cbr_queue_run(self->queue, 1, NULL));
}

/* A delivery waits for room in another queue: that is no ring. */
static void G22_insideAnotherDelivery(void) {
  receiver it[2] = {{0}};
  payload payloads[2] = {{0}};
  worker pumper;
  memset(extra, 0, sizeof extra);
  for (int each = 0; each < 2; each++) {
    it[each].queue = add_queue(registry, 0, CBR_QUEUE_BLOCK, 1);
    it[each].other = &it[1 - each];
    add_receiver(registry, &it[each], 0, CBR_NONE);
    EXPECT(CBR_OK, post(it[each].queue, it[each].token, &payloads[each]));
  }
  it[0].act = act_post_to_other;
  start(&pumper, "pumper", run_it, &it[0]);
  await_blocked(it[1].queue, 1);
  EXPECT(CBR_OK, cbr_queue_run(it[1].queue, 1, NULL));
  join(&pumper);
  EXPECT(CBR_OK, it[0].status);
  for (int each = 0; each < 2; each++) {
    end(it[each].queue);
    end(it[each].token);
  }
  expect_freed(payloads, 2);
  EQUAL(1, extra[0].freed);
}

static worker ring_pumper;
static gate ring_blocked;

static void act_close_ring(receiver *self, payload *it) {
  if (it->number != 0) return;
  payload unused = {0};
  /* Fill this queue again, and let the other thread come to wait for it. */
  EXPECT(CBR_OK, post(self->queue, self->token, &extra[2]));
  start(&ring_pumper, "pumper", run_it, self->other);
  await_gate(&ring_blocked);
  open_gate(&ring_blocked);
  await_blocked(self->queue, 1);
  EXPECT(CBR_E_WOULD_DEADLOCK,
         post(self->other->queue, self->other->token, &unused));
  CHECK(strstr(cbr_last_error(), "queue") != NULL);
  EQUAL(0, unused.freed);
}

static void act_fill_and_post(receiver *self, payload *it) {
  if (it->number != 0) return;
  EXPECT(CBR_OK, post(self->queue, self->token, &extra[3]));
  self->status = post(self->other->queue, self->other->token, &extra[0]);
}

static void G22_ringIsFound(void) {
  receiver it[2] = {{0}};
  payload payloads[2] = {{0}};
  memset(extra, 0, sizeof extra);
  for (int each = 0; each < 4; each++) extra[each].number = 1;
  for (int each = 0; each < 2; each++) {
    it[each].queue = add_queue(registry, 0, CBR_QUEUE_BLOCK, 1);
    it[each].other = &it[1 - each];
    add_receiver(registry, &it[each], 0, CBR_NONE);
    EXPECT(CBR_OK, post(it[each].queue, it[each].token, &payloads[each]));
  }
  it[0].act = act_close_ring;
  it[1].act = act_fill_and_post;
  ring_blocked = (gate)GATE(POSTER_BLOCKED, it[0].queue, &ring_pumper);
  close_gate(&ring_blocked);
  EXPECT(CBR_OK, cbr_queue_run(it[0].queue, 1, NULL));
  /* This one goes on: now the other poster has room. */
  EXPECT(CBR_OK, cbr_queue_run(it[0].queue, 1, NULL));
  join(&ring_pumper);
  EXPECT(CBR_OK, it[1].status);
  for (int each = 0; each < 2; each++) {
    end(it[each].queue);
    end(it[each].token);
  }
  expect_freed(payloads, 2);
  for (int each = 0; each < 4; each++)
    EQUAL(each != 1, extra[each].freed);
}

/* --------------------------------------------- with a thread of its own -- */

static void G21_threadDelivers(void) {
  enum { COUNT = 1000 };
  static payload payloads[COUNT];
  receiver it = {0};
  cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD, CBR_QUEUE_BLOCK, 64);
  memset(payloads, 0, sizeof payloads);
  add_receiver(registry, &it, 0, CBR_NONE);
  EQUAL(-1, cbr_queue_descriptor(queue));
  EXPECT(CBR_E_THREAD, cbr_queue_run(queue, 0, NULL));
  for (int each = 0; each < COUNT; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  cbr_status status = cbr_queue_finish(queue);
  CHECK(status == CBR_PENDING || status == CBR_OK);
  status = post(queue, it.token, &payloads[0]);
  CHECK(status == CBR_E_CLOSED || status == CBR_E_STALE);
  AWAIT(!cbr_is_live(queue));
  end_at_last(queue);
  expect_freed(payloads, COUNT);
  for (int each = 0; each < 64; each++) EQUAL(each, it.numbers[each]);
  end(it.token);
}

/* Ended while its thread sleeps, and while that delivers: after the wait it
 * runs nothing more. */
static void A1_threadIsWaitedFor(void) {
  for (int busy = 0; busy < 2; busy++) {
    receiver it = {0};
    payload payloads[20] = {{0}};
    cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD, 0, 0);
    add_receiver(registry, &it, 0, CBR_NONE);
    if (busy) {
      gate at = GATE(ENTER_CHECKED, it.token, NULL);
      close_gate(&at);
      for (int each = 0; each < 20; each++)
        EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
      await_gate(&at);
      EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(queue, CBR_REASON_ENDED, 0));
      open_gate(&at);
      EXPECT(CBR_ALREADY,
             cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
      EQUAL(1, it.count);
      expect_freed(payloads, 20);
    } else {
      end(queue);
    }
    end(it.token);
  }
}

static void act_wait_for_queue(receiver *self, payload *it) {
  (void)it;
  self->status =
      cbr_invalidate_wait(self->queue, CBR_REASON_ENDED, CBR_FOREVER);
}

static void G12_threadEndsItsQueue(void) {
  receiver it = {0};
  payload payloads[5] = {{0}};
  cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.queue = queue;
  it.act = act_wait_for_queue;
  it.status = CBR_E_USER;
  int posted = 0;
  while (posted < 5 && post(queue, it.token, &payloads[posted]) == CBR_OK)
    posted++;
  CHECK(posted >= 1);
  AWAIT(!cbr_is_live(queue));
  end_at_last(queue);
  expect_freed(payloads, posted);
  end(it.token);
  EQUAL(1, it.count);
  EXPECT(CBR_DEFERRED, it.status);
}

static void act_exit(receiver *self, payload *it) {
  if (it->number != 1) return;
  atomic_fetch_sub(&self->inside, 1);
  pthread_exit(NULL);
}

/* G11: the thread is ended by what it delivers: the queue gets another. */
static void G11_threadIsReplaced(void) {
  receiver it = {0};
  payload payloads[4] = {{0}};
  cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD, 0, 0);
  add_receiver(registry, &it, 0, CBR_NONE);
  it.act = act_exit;
  for (int each = 0; each < 4; each++) {
    payloads[each].number = each;
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  }
  AWAIT(it.count == 4);
  end(queue);
  expect_freed(payloads, 4);
  end(it.token);
}

/* The free count is exact, whatever meets: posters, the thread, ending tokens
 * and an ending queue, under each policy. */
static void G21_everythingAtOnce(void) {
  enum { ROUNDS = TIMES(40, 8), MESSAGES = 200 };
  static payload payloads[4][MESSAGES];
  for (int round = 0; round < ROUNDS; round++) {
    WITHIN("round %d", round);
    receiver it[2] = {{0}};
    poster posters[4];
    cbr_queue queue = add_queue(registry, CBR_QUEUE_THREAD,
                                (uint32_t)round % 4 + 1, 16);
    memset(payloads, 0, sizeof payloads);
    for (int each = 0; each < 2; each++)
      add_receiver(registry, &it[each], 0, CBR_NONE);
    for (int each = 0; each < 4; each++)
      start_posting(&posters[each], queue, it[each % 2].token, payloads[each],
                    MESSAGES);
    for (int turn = 0; turn < round * 20; turn++) sched_yield();
    end(it[0].token);
    for (int turn = 0; turn < round * 10; turn++) sched_yield();
    if (round % 8 < 4) {
      end(queue);
    } else {
      (void)cbr_queue_finish(queue);
      end_at_last(queue);
    }
    int delivered = it[0].count + it[1].count;
    for (int each = 0; each < 4; each++) {
      join(&posters[each].worker);
      bool ends = false;
      for (int number = 0; number < MESSAGES; number++) {
        if (payloads[each][number].freed == 0) ends = true;
        EQUAL(ends ? 0 : 1, payloads[each][number].freed);
      }
    }
    EQUAL(delivered, it[0].count + it[1].count);
    CHECK(!it[0].overlapped && !it[1].overlapped);
    end(it[1].token);
  }
}

int main(void) {
  registry = open_registry("posters", test_level());
  TEST(E3_noWakeUpIsLost);
  TEST(G22_endingWakesPosters);
  TEST(G22_wokenBeforeItSleeps);
  TEST(G22_timeout);
  TEST(E6_ownFullQueue);
  TEST(G22_insideAnotherDelivery);
  TEST(G22_ringIsFound);
  TEST(G21_threadDelivers);
  TEST(A1_threadIsWaitedFor);
  TEST(G12_threadEndsItsQueue);
  TEST(G11_threadIsReplaced);
  TEST(G21_everythingAtOnce);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_queues);
  close_registry(registry);
  return finish();
}

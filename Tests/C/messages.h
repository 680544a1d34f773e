/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues under test: payloads that know what became of them, and receivers
 * that note what they were called with.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "gates.h"

typedef struct payload {
  int number;
  _Atomic int freed;
  void (*when_freed)(struct payload *self);
  cbr_handle handle; /* for when_freed */
} payload;

typedef struct receiver {
  cbr_token token;
  cbr_queue queue;
  int numbers[64];
  _Atomic int count; /* of calls */
  _Atomic int inside;
  _Atomic bool overlapped;
  void (*act)(struct receiver *self, payload *it);
  struct receiver *other;
  cbr_status status;
  struct counted counted;
} receiver;

static inline void free_payload(void *context) {
  payload *it = context;
  atomic_fetch_add(&it->freed, 1);
  if (it->when_freed) it->when_freed(it);
}

static inline void receive(void *context, void *argument) {
  receiver *self = context;
  payload *it = argument;
  if (atomic_fetch_add(&self->inside, 1) > 0) self->overlapped = true;
  if (it) EQUAL(0, it->freed);
  int count = atomic_fetch_add(&self->count, 1);
  if (count < 64) self->numbers[count] = it ? it->number : -1;
  if (self->act) self->act(self, it);
  atomic_fetch_sub(&self->inside, 1);
}

static inline void receiver_destroyed(void *context) {
  receiver *self = context;
  EQUAL(0, self->inside);
  count_destroy(&self->counted);
}

static inline void add_receiver(cbr_registry registry, receiver *self,
                                uint32_t flags, cbr_owner owner) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "receiver";
  what.function = (cbr_function)(uintptr_t)receive;
  what.context = self;
  what.destroy = receiver_destroyed;
  what.flags = flags;
  what.owner = owner;
  EXPECT(CBR_OK, cbr_register(registry, &what, &self->token));
}

static inline cbr_queue add_queue(cbr_registry registry, uint32_t kind,
                                  uint32_t overflow, uint64_t max_items) {
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  cbr_queue queue = CBR_NONE;
  options.label = "queue";
  options.kind = kind;
  options.overflow = overflow;
  options.max_items = max_items;
  options.block_timeout_ns = CBR_FOREVER;
  EXPECT(CBR_OK, cbr_queue_create(registry, &options, &queue));
  return queue;
}

static inline cbr_status post(cbr_queue queue, cbr_token token, payload *it) {
  cbr_message message = CBR_MESSAGE_INIT;
  message.payload = it;
  message.payload_bytes = 10;
  message.free_payload = it ? free_payload : NULL;
  return cbr_post(queue, token, &message);
}

/* Runs all that waits, and says how many there were. */
static inline size_t pump(cbr_queue queue) {
  size_t ran = 1234;
  EXPECT(CBR_OK, cbr_queue_run(queue, 0, &ran));
  return ran;
}

static inline void end(cbr_handle handle) {
  EXPECT(CBR_OK, cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

/* Waits for the end of what has perhaps ended before. */
static inline void end_at_last(cbr_handle handle) {
  cbr_status status =
      cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER);
  CHECK(status == CBR_OK || status == CBR_ALREADY);
}

/* Lets others run until a condition holds. */
#define AWAIT(condition)                                                  \
  for (struct timespec now_, until_ = patience_(CLOCK_MONOTONIC);         \
       !(condition); sched_yield()) {                                     \
    clock_gettime(CLOCK_MONOTONIC, &now_);                                \
    if (now_.tv_sec > until_.tv_sec) stuck_(#condition, "never comes");   \
  }

static inline void expect_freed(const payload *payloads, int count) {
  for (int each = 0; each < count; each++) {
    WITHIN("payload %d", each);
    EQUAL(1, payloads[each].freed);
  }
  WITHIN("%s", "");
}

/* The counts of a queue, which add up. */
static inline cbr_queue_counts counts_of(cbr_queue queue) {
  cbr_queue_counts counts = CBR_QUEUE_COUNTS_INIT;
  EXPECT(CBR_OK, cbr_queue_statistics(queue, &counts));
  EQUAL(counts.posted,
        counts.delivered + counts.merged + counts.dropped_full +
            counts.dropped_stale + counts.dropped_refused +
            counts.dropped_ended + counts.waiting + counts.taken);
  return counts;
}

#endif

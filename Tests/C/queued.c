/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals whose handlers are called on a queue (D13).
 */
#include "messages.h"

static cbr_registry registry;

/* What handlers hear: the number of the emission, in a copy of their own. */
static _Atomic int copies, freed;

static void *copy_number(void *argument) {
  int *copy = malloc(sizeof *copy);
  *copy = *(int *)argument;
  atomic_fetch_add(&copies, 1);
  return copy;
}

static void free_number(void *payload) {
  free(payload);
  atomic_fetch_add(&freed, 1);
}

static void *copy_nothing(void *argument) {
  (void)argument;
  return NULL;
}

typedef struct listener {
  cbr_token token;
  int heard[8];
  int count;
  cbr_disposition answer;
} listener;

static cbr_disposition hear(void *context, void *argument) {
  listener *self = context;
  self->heard[self->count++ % 8] = *(int *)argument;
  return self->answer;
}

static cbr_status connect_on(cbr_signal signal, listener *self,
                             cbr_queue queue, uint32_t flags) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_connection_options options = CBR_CONNECTION_OPTIONS_INIT;
  what.function = (cbr_function)(uintptr_t)hear;
  what.context = self;
  what.flags = flags;
  options.queue = queue;
  options.copy_argument = copy_number;
  options.free_argument = free_number;
  return cbr_connect(signal, &what, &options, &self->token);
}

static cbr_signal add_signal(void) {
  cbr_signal signal = CBR_NONE;
  EXPECT(CBR_OK, cbr_signal_create(registry, "changed", CBR_NONE, &signal));
  copies = freed = 0;
  return signal;
}

static cbr_emission emit(cbr_signal signal, int number) {
  cbr_emission result = CBR_EMISSION_INIT;
  EXPECT(CBR_OK, cbr_emit(signal, &number, &result));
  return result;
}

static void D13_deliveredThroughItsQueue(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal();
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  EXPECT(CBR_OK, connect_on(signal, &it[0], queue, 0));
  EXPECT(CBR_OK, connect_on(signal, &it[1], queue, CBR_ONE_SHOT));
  EXPECT(CBR_OK, connect_on(signal, &it[2], CBR_NONE, 0));
  for (int number = 1; number <= 2; number++) {
    cbr_emission result = emit(signal, number);
    EQUAL(2, result.queued);
    EQUAL(1, result.called);
    EQUAL(0, result.refused);
  }
  EQUAL(0, it[0].count);
  EQUAL(2, it[2].count);
  EQUAL(4, pump(queue));
  EQUAL(2, it[0].count);
  EQUAL(1, it[0].heard[0]);
  EQUAL(2, it[0].heard[1]);
  EQUAL(1, it[1].count);
  EQUAL(4, copies);
  EQUAL(4, freed);
  end(signal);
  end(queue);
}

/* Disconnected, blocked, or with its signal gone before its turn: not called,
 * and what was copied is freed. */
static void D13_disconnectedBeforeItsTurn(void) {
  for (int how = 0; how < 4; how++) {
    WITHIN("way %d", how);
    listener it = {0};
    cbr_signal signal = add_signal();
    cbr_queue queue = add_queue(registry, 0, 0, 0);
    EXPECT(CBR_OK, connect_on(signal, &it, queue, 0));
    EQUAL(1, emit(signal, 1).queued);
    if (how == 0) end(it.token);
    if (how == 1) end(signal);
    if (how == 2) EXPECT(CBR_OK, cbr_block(it.token));
    if (how == 3) end(queue);
    if (how != 3) EQUAL(1, pump(queue));
    EQUAL(0, it.count);
    EQUAL(1, copies);
    EQUAL(1, freed);
    if (how != 1) end(signal);
    if (how != 3) end(queue);
  }
}

static void D13_answers(void) {
  listener it = {0};
  cbr_signal signal = add_signal();
  cbr_queue queue = add_queue(registry, 0, 0, 0);
  EXPECT(CBR_OK, connect_on(signal, &it, queue, 0));
  it.answer = CBR_STOP;
  for (int number = 0; number < 3; number++) emit(signal, number);
  EQUAL(1, (cbr_queue_run(queue, 1, NULL), it.count));
  it.answer = CBR_DISCONNECT;
  EQUAL(2, pump(queue));
  EQUAL(2, it.count);
  CHECK(!cbr_is_live(it.token));
  EQUAL(3, freed);
  end(signal);
  end(queue);
}

/* Only its signal calls it, by the queue, too. */
static void D13_refused(void) {
  listener it = {0};
  payload unused = {0};
  cbr_signal signal = add_signal();
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  cbr_queue foreign = add_queue(other, 0, 0, 0);
  cbr_queue queue = add_queue(registry, 0, CBR_QUEUE_FAIL, 1);
  EXPECT(CBR_E_FOREIGN, connect_on(signal, &it, foreign, 0));
  EXPECT(CBR_E_KIND, connect_on(signal, &it, signal, 0));
  EXPECT(CBR_E_INVALID, connect_on(signal, &it, UINT64_MAX, 0));
  close_registry(other);
  EXPECT(CBR_OK, connect_on(signal, &it, queue, 0));
  EXPECT(CBR_E_INTERFACE, post(queue, it.token, &unused));
  EQUAL(1, emit(signal, 1).queued);
  uint64_t refused = statistics_of(registry).refused;
  EQUAL(1, emit(signal, 2).refused);
  EQUAL(refused + 1, statistics_of(registry).refused);
  EQUAL(2, copies);
  EQUAL(1, freed);
  end(queue);
  EQUAL(1, emit(signal, 3).refused);
  EQUAL(3, freed);
  EXPECT(CBR_E_STALE, connect_on(signal, &it, queue, 0));
  queue = add_queue(registry, 0, 0, 0);
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_connection_options options = CBR_CONNECTION_OPTIONS_INIT;
  cbr_token token;
  what.function = (cbr_function)(uintptr_t)hear;
  options.queue = queue;
  options.copy_argument = copy_nothing;
  EXPECT(CBR_OK, cbr_connect(signal, &what, &options, &token));
  EQUAL(2, emit(signal, 4).refused);
  EQUAL(0, pump(queue));
  end(signal);
  end(queue);
}

int main(void) {
  registry = open_registry("queued", test_level());
  TEST(D13_deliveredThroughItsQueue);
  TEST(D13_disconnectedBeforeItsTurn);
  TEST(D13_answers);
  TEST(D13_refused);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_queues);
  close_registry(registry);
  return finish();
}

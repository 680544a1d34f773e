/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals: who is called, in which order, and what handlers may do meanwhile
 * (G20).
 */
#include "gates.h"

#include <setjmp.h>

static cbr_registry registry;

/* What one emission was heard by, as letters. */
typedef struct heard {
  char by[64];
  int count;
} heard;

typedef struct listener listener;
struct listener {
  char letter;
  cbr_token token;
  cbr_disposition answer;
  void (*act)(listener *self, heard *heard);
  listener *other;
  cbr_signal signal;
  int calls, depth;
  struct counted counted;
};

static cbr_disposition hear(void *context, void *argument) {
  listener *self = context;
  heard *heard = argument;
  if (heard->count < 63) heard->by[heard->count++] = self->letter;
  self->calls++;
  self->depth++;
  if (self->act) self->act(self, heard);
  self->depth--;
  return self->answer;
}

static void listener_destroyed(void *context) {
  listener *self = context;
  EQUAL(0, self->depth);
  count_destroy(&self->counted);
}

static cbr_signal add_signal(cbr_owner owner) {
  cbr_signal signal = CBR_NONE;
  EXPECT(CBR_OK, cbr_signal_create(registry, "changed", owner, &signal));
  return signal;
}

static void connect_as(cbr_signal signal, listener *self, char letter,
                       int32_t priority, uint32_t flags, cbr_owner owner) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_connection_options options = CBR_CONNECTION_OPTIONS_INIT;
  what.label = "listener";
  what.function = (cbr_function)(uintptr_t)hear;
  what.context = self;
  what.destroy = listener_destroyed;
  what.flags = flags;
  what.owner = owner;
  options.priority = priority;
  self->letter = letter;
  self->signal = signal;
  EXPECT(CBR_OK, cbr_connect(signal, &what, &options, &self->token));
}

static void connect_to(cbr_signal signal, listener *self, char letter) {
  connect_as(signal, self, letter, 0, 0, CBR_NONE);
}

/* Emits, and says who heard it. */
static void expect_heard(const char *by, cbr_status status,
                         cbr_signal signal) {
  heard heard = {{0}, 0};
  EXPECT(status, cbr_emit(signal, &heard, NULL));
  if (strcmp(by, heard.by) != 0) {
    fprintf(stderr, "heard by %s instead of %s\n", heard.by, by);
    fail_();
  }
}

static void end(cbr_handle handle) {
  EXPECT(CBR_OK, cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

static void end_signal(cbr_signal signal, listener *listeners, int count) {
  end(signal);
  for (int each = 0; each < count; each++) {
    CHECK(!cbr_is_live(listeners[each].token));
    EQUAL(1, destroyed(&listeners[each].counted));
  }
}

static void G20_orderOfConnection(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  expect_heard("", CBR_OK, signal);
  for (int each = 0; each < 3; each++)
    connect_to(signal, &it[each], "abc"[each]);
  expect_heard("abc", CBR_OK, signal);
  EQUAL(3, statistics_of(registry).live_tokens);
  end_signal(signal, it, 3);
  expect_heard("", CBR_E_STALE, signal);
}

static void G20_orderOfPriority(void) {
  listener it[8] = {{0}};
  const int32_t priorities[] = {0, 5, -5, 0, 5, INT32_MIN, INT32_MAX, 0};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 8; each++)
    connect_as(signal, &it[each], "abcdefgh"[each], priorities[each], 0,
               CBR_NONE);
  expect_heard("gbeadhcf", CBR_OK, signal);
  end(it[1].token);
  end(it[3].token);
  expect_heard("geahcf", CBR_OK, signal);
  end_signal(signal, it, 8);
}

/* D11: with churn, equal priorities keep the order of connection. */
static void D11_orderUnderChurn(void) {
  enum { COUNT = 1000 };
  static listener it[COUNT];
  int order[COUNT], count = 0;
  unsigned random = 1;
  cbr_signal signal = add_signal(CBR_NONE);
  memset(it, 0, sizeof it);
  for (int each = 0; each < COUNT; each++) {
    random = random * 1103515245u + 12345u;
    int32_t priority = (int32_t)(random >> 16) % 3;
    connect_as(signal, &it[each], (char)priority, priority, 0, CBR_NONE);
    int at = count;
    while (at > 0 && it[order[at - 1]].letter < priority) at--;
    memmove(order + at + 1, order + at, sizeof(int) * (size_t)(count - at));
    order[at] = each;
    count++;
    random = random * 1103515245u + 12345u;
    if (random >> 30 == 0) {
      int out = (int)(random >> 8) % count;
      EXPECT(CBR_OK, cbr_invalidate(it[order[out]].token, CBR_REASON_ENDED));
      memmove(order + out, order + out + 1,
              sizeof(int) * (size_t)(count - out - 1));
      count--;
    }
  }
  heard heard = {{0}, 0};
  cbr_emission result = CBR_EMISSION_INIT;
  EXPECT(CBR_OK, cbr_emit(signal, &heard, &result));
  EQUAL((uint64_t)count, result.called);
  for (int each = 0; each < 63 && each < count; each++)
    EQUAL(it[order[each]].letter, heard.by[each]);
  end(signal);
}

static void act_end_self(listener *self, heard *heard) {
  (void)heard;
  EXPECT(CBR_DEFERRED, cbr_invalidate(self->token, CBR_REASON_ENDED));
  EQUAL(0, destroyed(&self->counted));
}

static void act_end_other(listener *self, heard *heard) {
  (void)heard;
  EXPECT(CBR_OK, cbr_invalidate_wait(self->other->token, CBR_REASON_ENDED,
                                     CBR_FOREVER));
  EQUAL(1, destroyed(&self->other->counted));
  self->act = NULL;
}

static void act_connect(listener *self, heard *heard) {
  (void)heard;
  connect_to(self->signal, self->other, 'n');
  self->act = NULL;
}

static void act_emit_again(listener *self, heard *heard) {
  if (self->depth == 1)
    EXPECT(CBR_OK, cbr_emit(self->signal, heard, NULL));
}

static void act_emit_for_ever(listener *self, heard *heard) {
  (void)cbr_emit(self->signal, heard, NULL);
}

static void act_end_signal(listener *self, heard *heard) {
  (void)heard;
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait(self->signal, CBR_REASON_ENDED,
                                           CBR_FOREVER));
}

/* A7, D3: a handler ends itself, and is destroyed when it has returned. */
static void G20_handlerEndsItself(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 3; each++)
    connect_to(signal, &it[each], "abc"[each]);
  it[1].act = act_end_self;
  expect_heard("abc", CBR_OK, signal);
  EQUAL(1, destroyed(&it[1].counted));
  expect_heard("ac", CBR_OK, signal);
  it[0].answer = CBR_DISCONNECT;
  expect_heard("ac", CBR_OK, signal);
  EQUAL(1, destroyed(&it[0].counted));
  expect_heard("c", CBR_OK, signal);
  end_signal(signal, it, 3);
}

/* A11, D7: the next one is ended before its turn, and its memory freed. */
static void D7_endedBeforeItsTurn(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 3; each++)
    connect_to(signal, &it[each], "abc"[each]);
  it[0].act = act_end_other;
  it[0].other = &it[1];
  expect_heard("ac", CBR_OK, signal);
  it[2].act = act_end_other;
  it[2].other = &it[0];
  expect_heard("ac", CBR_OK, signal);
  expect_heard("c", CBR_OK, signal);
  end_signal(signal, it, 3);
}

/* D12, D14: what is connected during an emission is heard from the next on. */
static void G20_connectedMeanwhile(void) {
  for (int before = 0; before < 6; before++) {
    WITHIN("%d there before", before);
    listener it[6] = {{0}}, added = {0};
    cbr_signal signal = add_signal(CBR_NONE);
    for (int each = 0; each <= before; each++)
      connect_to(signal, &it[each], "abcdef"[each]);
    it[0].act = act_connect;
    it[0].other = &added;
    char expected[8] = "abcdef";
    expected[before + 1] = 0;
    expect_heard(expected, CBR_OK, signal);
    strcat(expected, "n");
    expect_heard(expected, CBR_OK, signal);
    end_signal(signal, &added, 1);
  }
}

/* One that a handler of the same signal makes (B16). */
static void G20_nested(void) {
  listener it[2] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 2; each++)
    connect_to(signal, &it[each], "ab"[each]);
  it[0].act = act_emit_again;
  expect_heard("aabb", CBR_OK, signal);
  end_signal(signal, it, 2);
}

/* D1, D9: a one-shot that is emitted again by itself runs once. */
static void D9_oneShotOnce(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 3; each++)
    connect_as(signal, &it[each], "abc"[each], 0, CBR_ONE_SHOT, CBR_NONE);
  it[0].act = act_emit_again;
  it[2].act = act_emit_again;
  expect_heard("abc", CBR_OK, signal);
  expect_heard("", CBR_OK, signal);
  end_signal(signal, it, 3);
}

/* D20 */
static void D20_depthIsLimited(void) {
  listener it = {0};
  cbr_signal signal = add_signal(CBR_NONE);
  uint64_t refused = statistics_of(registry).refused;
  connect_to(signal, &it, 'a');
  it.act = act_emit_for_ever;
  heard heard = {{0}, 0};
  EXPECT(CBR_OK, cbr_emit(signal, &heard, NULL));
  EQUAL(64, it.calls);
  EQUAL(refused + 1, statistics_of(registry).refused);
  it.act = NULL;
  expect_heard("a", CBR_OK, signal);
  end_signal(signal, &it, 1);
}

/* D4, D16: the emitter is ended by a handler of its own. */
static void D4_signalEndsInside(void) {
  for (int who = 0; who < 3; who++) {
    WITHIN("by handler %d", who);
    listener it[3] = {{0}};
    cbr_signal signal = add_signal(CBR_NONE);
    for (int each = 0; each < 3; each++)
      connect_to(signal, &it[each], "abc"[each]);
    it[who].act = act_end_signal;
    char expected[4] = "abc";
    expected[who + 1] = 0;
    expect_heard(expected, CBR_STOPPED, signal);
    for (int each = 0; each < 3; each++)
      EQUAL(1, destroyed(&it[each].counted));
    EXPECT(CBR_ALREADY,
           cbr_invalidate_wait(signal, CBR_REASON_ENDED, CBR_FOREVER));
  }
}

static void act_end_owner(listener *self, heard *heard) {
  (void)heard;
  EXPECT(CBR_DEFERRED, cbr_invalidate_wait((cbr_owner)self->signal,
                                           CBR_REASON_ENDED, CBR_FOREVER));
}

/* G17, F14: both sides. What observes ends with its owner, and what is
 * observed ends with its own. */
static void G17_ownersOnBothSides(void) {
  listener it[2] = {{0}};
  cbr_owner observer = add_owner(registry, "observer");
  cbr_owner observed = add_owner(registry, "observed");
  cbr_signal signal = add_signal(observed);
  connect_as(signal, &it[0], 'a', 0, 0, observer);
  connect_as(signal, &it[1], 'b', 0, 0, CBR_NONE);
  expect_heard("ab", CBR_OK, signal);
  it[0].act = act_end_owner;
  it[0].signal = observer;
  expect_heard("ab", CBR_OK, signal);
  EQUAL(1, destroyed(&it[0].counted));
  expect_heard("b", CBR_OK, signal);
  end(observed);
  EQUAL(1, destroyed(&it[1].counted));
  CHECK(!cbr_is_live(signal));
  EQUAL(0, statistics_of(registry).live_signals);
}

static void G20_stopAndResult(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 3; each++)
    connect_to(signal, &it[each], "abc"[each]);
  it[1].answer = CBR_STOP;
  heard heard = {{0}, 0};
  cbr_emission result = CBR_EMISSION_INIT;
  EXPECT(CBR_STOPPED, cbr_emit(signal, &heard, &result));
  EQUAL(2, result.called);
  EQUAL(it[1].token, result.stopped_by);
  it[1].answer = 1234;
  EXPECT(CBR_STOPPED, cbr_emit(signal, &heard, &result));
  EQUAL(it[1].token, result.stopped_by);
  end_signal(signal, it, 3);
}

static void G20_blocking(void) {
  listener it[2] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 2; each++)
    connect_to(signal, &it[each], "ab"[each]);
  EXPECT(CBR_E_INVALID, cbr_unblock(it[0].token));
  EXPECT(CBR_OK, cbr_block(it[0].token));
  EXPECT(CBR_OK, cbr_block(it[0].token));
  cbr_emission result = CBR_EMISSION_INIT;
  heard heard = {{0}, 0};
  EXPECT(CBR_OK, cbr_emit(signal, &heard, &result));
  EQUAL(1, result.called);
  EQUAL(1, result.blocked);
  EXPECT(CBR_OK, cbr_unblock(it[0].token));
  expect_heard("b", CBR_OK, signal);
  EXPECT(CBR_OK, cbr_unblock(it[0].token));
  expect_heard("ab", CBR_OK, signal);
  EXPECT(CBR_OK, cbr_block(signal));
  EXPECT(CBR_OK, cbr_emit(signal, NULL, &result));
  EQUAL(0, result.called);
  EQUAL(2, result.blocked);
  end(it[1].token); /* of what is gone nobody need know */
  EXPECT(CBR_OK, cbr_emit(signal, NULL, &result));
  EQUAL(1, result.blocked);
  EXPECT(CBR_OK, cbr_unblock(signal));
  expect_heard("a", CBR_OK, signal);
  end_signal(signal, it, 2);
  EXPECT(CBR_E_STALE, cbr_block(signal));
}

static cbr_disposition sum(void *context, void *argument, cbr_token handler,
                           cbr_disposition answer) {
  int *total = context;
  (void)argument;
  CHECK(cbr_is_live(handler));
  *total += answer;
  return *total > 100 ? CBR_STOP : CBR_CONTINUE;
}

static void G20_combiner(void) {
  listener it[3] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 3; each++) {
    connect_to(signal, &it[each], "abc"[each]);
    it[each].answer = 10;
  }
  heard heard = {{0}, 0};
  int total = 0;
  EXPECT(CBR_OK, cbr_emit_combined(signal, &heard, sum, &total, NULL));
  EQUAL(30, total);
  total = 85;
  EXPECT(CBR_STOPPED, cbr_emit_combined(signal, &heard, sum, &total, NULL));
  EQUAL(105, total);
  EXPECT(CBR_E_INVALID, cbr_emit_combined(signal, &heard, NULL, NULL, NULL));
  end_signal(signal, it, 3);
}

static void G1_signalsRefuseWhatIsNotTheirs(void) {
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  cbr_owner foreign = add_owner(other, "foreign");
  cbr_signal signal = add_signal(CBR_NONE);
  listener it = {0};
  connect_to(signal, &it, 'a');
  cbr_call call;
  EXPECT(CBR_E_INTERFACE, cbr_enter(it.token, &call));
  EXPECT(CBR_E_INTERFACE, cbr_enter_typed(it.token, signal, &call));
  EXPECT(CBR_E_KIND, cbr_emit(it.token, NULL, NULL));
  EXPECT(CBR_E_INVALID, cbr_emit(UINT64_MAX, NULL, NULL));
  /* A list's own handle is nobody's: kind 15 is not given out. */
  EXPECT(CBR_E_INVALID, cbr_invalidate((it.token & ~(cbr_handle)0x3C) | 0x3C,
                                       CBR_REASON_ENDED));
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token = it.token;
  EXPECT(CBR_E_INVALID, cbr_connect(signal, &what, NULL, &token));
  EQUAL(CBR_NONE, token);
  what.function = (cbr_function)(uintptr_t)hear;
  what.type_tag = 5;
  EXPECT(CBR_E_INVALID, cbr_connect(signal, &what, NULL, &token));
  what.type_tag = 0;
  const cbr_method method = {"hear", CBR_METHOD_REQUIRED, 0};
  const cbr_interface interface = {sizeof interface, "listener", 1, 1,
                                   &method};
  what.methods = &what.function;
  what.interface = &interface;
  cbr_registration methods = what;
  methods.function = NULL;
  EXPECT(CBR_E_INVALID, cbr_connect(signal, &methods, NULL, &token));
  what.methods = NULL;
  what.interface = NULL;
  what.owner = foreign;
  EXPECT(CBR_E_FOREIGN, cbr_connect(signal, &what, NULL, &token));
  what.owner = CBR_NONE;
  EXPECT(CBR_E_KIND, cbr_connect(registry, &what, NULL, &token));
  cbr_connection_options options = CBR_CONNECTION_OPTIONS_INIT;
  options.flags = 1;
  EXPECT(CBR_E_INVALID, cbr_connect(signal, &what, &options, &token));
  end_signal(signal, &it, 1);
  EXPECT(CBR_E_STALE, cbr_connect(signal, &what, NULL, &token));
  close_registry(other);
}

/* G6: whatever fails, nothing is taken, and the others are called. */
static void G6_connectingWithoutMemory(void) {
  cbr_signal signal = add_signal(CBR_NONE);
  listener it[9] = {{0}};
  int failures = 0;
  for (int each = 0; each < 9; each++) {
    cbr_registration what = CBR_REGISTRATION_INIT;
    it[each].letter = "abcdefghi"[each];
    what.function = (cbr_function)(uintptr_t)hear;
    what.context = &it[each];
    what.destroy = listener_destroyed;
    for (int64_t after = 0;; after++) {
      cbr_test_fail_allocation(after);
      cbr_status status = cbr_connect(signal, &what, NULL, &it[each].token);
      if (cbr_test_fail_allocation(-1) >= 0) {
        EXPECT(CBR_OK, status);
        break;
      }
      failures++;
      EXPECT(CBR_E_NOMEM, status);
      EQUAL(0, destroyed(&it[each].counted));
    }
  }
  CHECK(failures > 9);
  expect_heard("abcdefghi", CBR_OK, signal);
  end_signal(signal, it, 9);
}

/* An emission on another thread, which a gate stops. */
typedef struct emitting {
  cbr_signal signal;
  heard heard;
  cbr_status status;
} emitting;

static void emit_it(void *argument) {
  emitting *it = argument;
  it->status = cbr_emit(it->signal, &it->heard, NULL);
}

/* A18: ended between the check of another thread and its call, whichever
 * comes first. */
static void A18_endingAgainstEmission(void) {
  const int points[] = {ENTER_PINNED, ENTER_CHECKED};
  for (int each = 0; each < 2; each++) {
    WITHIN("point %d", points[each]);
    listener it[2] = {{0}};
    cbr_signal signal = add_signal(CBR_NONE);
    for (int one = 0; one < 2; one++)
      connect_to(signal, &it[one], "ab"[one]);
    emitting emission = {signal, {{0}, 0}, CBR_E_USER};
    worker emitter;
    gate at = GATE(points[each], it[1].token, &emitter);
    close_gate(&at);
    start(&emitter, "emitter", emit_it, &emission);
    await_gate(&at);
    bool is_entered = points[each] == ENTER_CHECKED;
    EXPECT(CBR_PENDING, cbr_invalidate(it[1].token, CBR_REASON_ENDED));
    EQUAL(0, destroyed(&it[1].counted));
    open_gate(&at);
    join(&emitter);
    EXPECT(CBR_OK, emission.status);
    EQUAL(is_entered ? 2 : 1, emission.heard.count);
    EQUAL(1, destroyed(&it[1].counted));
    end_signal(signal, it, 2);
  }
}

/* The list that an emission reads is replaced, and stays until it is left. */
static void G20_listsOutliveTheirEmissions(void) {
  listener it[2] = {{0}}, more[40] = {{0}};
  cbr_signal signal = add_signal(CBR_NONE);
  for (int each = 0; each < 2; each++)
    connect_to(signal, &it[each], "ab"[each]);
  emitting emission = {signal, {{0}, 0}, CBR_E_USER};
  worker emitter;
  gate at = GATE(ENTER_CHECKED, it[0].token, &emitter);
  close_gate(&at);
  start(&emitter, "emitter", emit_it, &emission);
  await_gate(&at);
  for (int each = 0; each < 40; each++)
    connect_as(signal, &more[each], 'm', each % 3, 0, CBR_NONE);
  EXPECT(CBR_PENDING, cbr_invalidate(signal, CBR_REASON_ENDED));
  open_gate(&at);
  join(&emitter);
  EXPECT(CBR_STOPPED, emission.status);
  EQUAL(1, emission.heard.count);
  for (int each = 0; each < 40; each++)
    EQUAL(1, destroyed(&more[each].counted));
}

/* A1: whoever waits for the signal waits for the handler that is running. */
static void A1_waitingForAnEmission(void) {
  listener it = {0};
  cbr_signal signal = add_signal(CBR_NONE);
  connect_to(signal, &it, 'a');
  emitting emission = {signal, {{0}, 0}, CBR_E_USER};
  worker emitter;
  gate at = GATE(ENTER_CHECKED, it.token, &emitter);
  close_gate(&at);
  start(&emitter, "emitter", emit_it, &emission);
  await_gate(&at);
  EXPECT(CBR_E_TIMEOUT, cbr_invalidate_wait(signal, CBR_REASON_ENDED, 0));
  EQUAL(0, destroyed(&it.counted));
  open_gate(&at);
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(signal, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(1, destroyed(&it.counted));
  join(&emitter);
}

static jmp_buf out;
static size_t mark;

static void act_jump(listener *self, heard *heard) {
  (void)heard;
  self->depth--;
  longjmp(out, 1);
}

/* G11: a handler is jumped out of; the emission's own hold is gone, too. */
static void G11_jumpOutOfAnEmission(void) {
  listener it = {0};
  cbr_signal signal = add_signal(CBR_NONE);
  connect_to(signal, &it, 'a');
  it.act = act_jump;
  heard heard = {{0}, 0};
  for (volatile int each = 0; each < 70; each++) {
    mark = cbr_mark();
    if (setjmp(out) == 0) (void)cbr_emit(signal, &heard, NULL);
    EXPECT(CBR_OK, cbr_unwind(mark));
  }
  EQUAL(70, it.calls);
  it.act = NULL;
  end_signal(signal, &it, 1);
}

int main(void) {
  registry = open_registry("emissions", test_level());
  TEST(G20_orderOfConnection);
  TEST(G20_orderOfPriority);
  TEST(D11_orderUnderChurn);
  TEST(G20_handlerEndsItself);
  TEST(D7_endedBeforeItsTurn);
  TEST(G20_connectedMeanwhile);
  TEST(G20_nested);
  TEST(D9_oneShotOnce);
  TEST(D20_depthIsLimited);
  TEST(D4_signalEndsInside);
  TEST(G17_ownersOnBothSides);
  TEST(G20_stopAndResult);
  TEST(G20_blocking);
  TEST(G20_combiner);
  TEST(G1_signalsRefuseWhatIsNotTheirs);
  TEST(G6_connectingWithoutMemory);
  TEST(A18_endingAgainstEmission);
  TEST(G20_listsOutliveTheirEmissions);
  TEST(A1_waitingForAnEmission);
  TEST(G11_jumpOutOfAnEmission);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_signals);
  close_registry(registry);
  return finish();
}

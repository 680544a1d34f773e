/* SPDX-License-Identifier: Apache-2.0
 *
 * What is seen of slots and signals: by those who look (cbr_impact,
 * cbr_registry_each_live, cbr_explain), and in the history.
 */
#include "history.h"

static cbr_registry registry;
static history kept;

static void open_kept(uint32_t level) {
  registry = open_with_history(&kept, "observed", level);
}

static void close_kept(void) { close_with_history(registry, &kept); }

static int64_t count_in(const char *query) {
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  return number_in(&kept, query);
}

/* ---------------------------------------------------------------- subjects */

typedef struct handler {
  cbr_token token;
  cbr_signal signal;
  void (*act)(struct handler *);
  int calls;
} handler;

static cbr_disposition hear(void *context, void *argument) {
  handler *self = context;
  (void)argument;
  self->calls++;
  if (self->act) self->act(self);
  return CBR_CONTINUE;
}

static void connect_as(cbr_signal signal, handler *self, const char *label,
                       cbr_owner owner, uint32_t flags) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = label;
  what.function = (cbr_function)(uintptr_t)hear;
  what.context = self;
  what.owner = owner;
  what.flags = flags;
  self->signal = signal;
  EXPECT(CBR_OK, cbr_connect(signal, &what, NULL, &self->token));
}

static cbr_signal add_signal(const char *label, cbr_owner owner) {
  cbr_signal signal = CBR_NONE;
  EXPECT(CBR_OK, cbr_signal_create(registry, label, owner, &signal));
  return signal;
}

static cbr_slot add_slot(const char *label, cbr_owner owner) {
  cbr_slot slot = CBR_NONE;
  EXPECT(CBR_OK, cbr_slot_create(registry, label, owner, &slot));
  return slot;
}

static void end(cbr_handle handle) {
  EXPECT(CBR_OK, cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

/* ----------------------------------------------------------------- looking */

/* How many of each kind were shown, and the last of them. */
typedef struct seen {
  int of_kind[8], all;
  uint64_t in_flight, leases;
  char labels[256];
} seen;

static cbr_disposition see(void *context, const cbr_item *item) {
  seen *it = context;
  CHECK(item->kind > CBR_KIND_NONE && item->kind <= CBR_KIND_SIGNAL);
  it->of_kind[item->kind & 7]++;
  it->all++;
  it->in_flight += item->calls_in_flight;
  it->leases += item->leases;
  CHECK(cbr_is_live(item->handle));
  snprintf(it->labels + strlen(it->labels),
           sizeof it->labels - strlen(it->labels), "%s.", item->label);
  return CBR_CONTINUE;
}

static seen impact_of(cbr_handle handle) {
  seen it = {0};
  EXPECT(CBR_OK, cbr_impact(handle, see, &it));
  return it;
}

static void look_while_called(handler *self) {
  EQUAL(1, impact_of(self->token).in_flight);
  EQUAL(1, impact_of(self->signal).in_flight);
}

/* What ending each would end: a signal's connections are among it, whoever
 * they belong to; the lists that emissions read are nobody's. */
static void G17_impactOfSignalsAndSlots(void) {
  registry = open_registry("looking", test_level());
  cbr_owner observer = add_owner(registry, "observer");
  cbr_owner observed = add_owner(registry, "observed");
  cbr_signal signal = add_signal("signal", observed);
  handler own = {0}, other = {0};
  connect_as(signal, &own, "own", observed, 0);
  connect_as(signal, &other, "other", observer, 0);
  cbr_slot slot = add_slot("slot", observer);
  EXPECT(CBR_OK, cbr_slot_set(slot, other.token));

  seen it = impact_of(signal);
  EQUAL(3, it.all);
  EQUAL(1, it.of_kind[CBR_KIND_SIGNAL]);
  EQUAL(2, it.of_kind[CBR_KIND_TOKEN]);
  EQUAL(0, it.leases);
  it = impact_of(observed);
  EQUAL(4, it.all);
  EQUAL(2, it.of_kind[CBR_KIND_TOKEN]);
  it = impact_of(observer);
  EQUAL(3, it.all);
  EQUAL(1, it.of_kind[CBR_KIND_SLOT]);
  EQUAL(1, it.of_kind[CBR_KIND_TOKEN]);
  it = impact_of(slot);
  EQUAL(1, it.all);
  CHECK(strcmp(it.labels, "slot.") == 0);
  it = impact_of(other.token);
  CHECK(strcmp(it.labels, "other.") == 0);
  own.act = look_while_called;
  EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  EQUAL(1, own.calls);

  it = (seen){0};
  EXPECT(CBR_OK, cbr_registry_each_live(registry, see, &it));
  EQUAL(6, it.all);
  EQUAL(2, it.of_kind[CBR_KIND_OWNER]);
  EXPECT(CBR_OK, cbr_invalidate(signal, CBR_REASON_ENDED));
  EXPECT(CBR_E_STALE, cbr_impact(signal, see, &it));
  it = (seen){0};
  EXPECT(CBR_OK, cbr_registry_each_live(registry, see, &it));
  EQUAL(3, it.all);
  close_registry(registry);
}

static void expect_explained(cbr_handle handle, const char *words[]) {
  char text[1024] = "";
  EXPECT(CBR_OK, cbr_explain(handle, text, sizeof text, NULL));
  for (; *words; words++)
    if (!CHECK(strstr(text, *words) != NULL))
      fprintf(stderr, "no \"%s\" in:\n%s", *words, text);
}

static void explain_each(cbr_handle signal, cbr_handle token, cbr_handle slot,
                         const char *state) {
  expect_explained(signal, (const char *[]){"signal", "\"changed\"",
                                            "\"model\"", state, NULL});
  expect_explained(token, (const char *[]){"token", "\"view\"", state, NULL});
  expect_explained(slot, (const char *[]){"slot", "\"delegate\"", state,
                                          NULL});
}

static void G1_explainSignalsAndSlots(void) {
  open_kept(CBR_LEVEL_CALLS);
  cbr_owner owner = add_owner(registry, "model");
  cbr_signal signal = add_signal("changed", owner);
  handler view = {0};
  connect_as(signal, &view, "view", CBR_NONE, 0);
  cbr_slot slot = add_slot("delegate", owner);
  explain_each(signal, view.token, slot, "live");
  end(owner);
  explain_each(signal, view.token, slot, "dead");
  /* Their slots are used again. */
  for (int each = 0; each < 5000; each++) {
    cbr_signal another = add_signal("another", CBR_NONE);
    EXPECT(CBR_OK, cbr_invalidate(another, CBR_REASON_ENDED));
  }
  explain_each(signal, view.token, slot, "dead");
  close_kept();
}

/* ----------------------------------------------------------------- history */

static void A1_slotsInTheHistory(void) {
  open_kept(CBR_LEVEL_LIFECYCLE);
  cbr_slot slot = add_slot("delegate", CBR_NONE);
  struct counted counted = {0};
  cbr_token one = add(registry, "one", &counted, false, CBR_NONE);
  cbr_token two = add(registry, "two", &counted, false, CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_set(slot, one));
  EXPECT(CBR_OK, cbr_slot_set(slot, two));
  EXPECT(CBR_OK, cbr_slot_set(slot, CBR_NONE));
  EXPECT(CBR_OK, cbr_slot_set(slot, two));
  EXPECT(CBR_OK, cbr_invalidate(two, CBR_REASON_USER + 7));
  EXPECT(CBR_OK, cbr_invalidate(one, CBR_REASON_ENDED));
  EQUAL(4, count_in("SELECT count(*) FROM history WHERE event = 'slot set' "
                    "AND label = 'delegate'"));
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE event = 'slot set' "
                    "AND detail LIKE '%\"one\"%'"));
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE event = 'slot set' "
                    "AND detail = 'nothing'"));
  EQUAL(1, count_in("SELECT count(*) FROM history "
                    "WHERE event = 'slot cleared'"));
  EQUAL(1, count_in("SELECT count(*) FROM history "
                    "WHERE event = 'slot cleared' AND label = 'delegate' "
                    "AND detail LIKE '%\"two\": reason 1007'"));
  end(slot);
  close_kept();
}

static void A1_signalsInTheHistory(void) {
  open_kept(CBR_LEVEL_CALLS);
  cbr_signal signal = add_signal("changed", CBR_NONE);
  handler one = {0}, once = {0};
  connect_as(signal, &one, "one", CBR_NONE, 0);
  connect_as(signal, &once, "once", CBR_NONE, CBR_ONE_SHOT);
  for (int each = 0; each < 2; each++) EXPECT(CBR_OK, cbr_block(one.token));
  EXPECT(CBR_OK, cbr_unblock(one.token));
  EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  EXPECT(CBR_OK, cbr_unblock(one.token));
  EXPECT(CBR_OK, cbr_block(signal));
  EXPECT(CBR_OK, cbr_unblock(signal));
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  end(signal);
  EXPECT(CBR_E_STALE, cbr_emit(signal, NULL, NULL));
  EQUAL(2, count_in("SELECT count(*) FROM history WHERE label = 'one' AND "
                    "event = 'blocked'"));
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE label = 'one' AND "
                    "event = 'blocked' AND detail = '2 times'"));
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE label = 'one' AND "
                    "event = 'unblocked' AND detail = '1 times'"));
  EQUAL(2, count_in("SELECT count(*) FROM history WHERE "
                    "label = 'changed' AND event IN ('blocked', "
                    "'unblocked')"));
  EQUAL(3, count_in("SELECT count(*) FROM history WHERE label = 'one' AND "
                    "event = 'call'"));
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE label = 'once' AND "
                    "event = 'call'"));
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE "
                    "label = 'changed' AND event = 'refused' AND "
                    "detail = 'CBR_E_STALE'"));
  close_kept();
}

/* A connection has a level of its own; a signal and a slot have none. */
static void A1_levelsOfConnections(void) {
  open_kept(CBR_LEVEL_CALLS);
  cbr_signal signal = add_signal("changed", CBR_NONE);
  cbr_slot slot = add_slot("slot", CBR_NONE);
  handler one = {0};
  connect_as(signal, &one, "one", CBR_NONE, 0);
  EXPECT(CBR_E_KIND, cbr_audit_level(signal, CBR_LEVEL_OFF));
  EXPECT(CBR_E_KIND, cbr_audit_level(slot, CBR_LEVEL_OFF));
  const uint32_t levels[] = {CBR_LEVEL_CALLS, CBR_LEVEL_LIFECYCLE,
                             CBR_LEVEL_OFF, CBR_LEVEL_CALLS};
  for (int each = 0; each < 4; each++) {
    EXPECT(CBR_OK, cbr_audit_level(one.token, levels[each]));
    EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  }
  EQUAL(4, one.calls);
  EQUAL(2, count_in("SELECT count(*) FROM history WHERE event = 'call'"));
  end(signal);
  end(slot);
  close_kept();
}

/* The level changes while a handler is being entered: the call is recorded as
 * it was begun, or not at all. */
static void emit_it(void *argument) {
  EXPECT(CBR_OK, cbr_emit(*(cbr_signal *)argument, NULL, NULL));
}

static void A1_levelChangesWhileEntering(void) {
  for (int is_on = 0; is_on < 2; is_on++) {
    WITHIN("on %d", is_on);
    open_kept(CBR_LEVEL_CALLS);
    cbr_signal signal = add_signal("changed", CBR_NONE);
    handler one = {0};
    connect_as(signal, &one, "one", CBR_NONE, 0);
    EXPECT(CBR_OK, cbr_audit_level(one.token, is_on ? CBR_LEVEL_LIFECYCLE
                                                    : CBR_LEVEL_CALLS));
    worker emitter;
    gate at = GATE(ENTER_PINNED, one.token, &emitter);
    close_gate(&at);
    start(&emitter, "emitter", emit_it, &signal);
    await_gate(&at);
    EXPECT(CBR_OK, cbr_audit_level(one.token, is_on ? CBR_LEVEL_CALLS
                                                    : CBR_LEVEL_LIFECYCLE));
    open_gate(&at);
    join(&emitter);
    EQUAL(1, one.calls);
    EQUAL(0, count_in("SELECT count(*) FROM history WHERE event = 'call' "
                      "AND duration_ns > 3600000000000"));
    end(signal);
    close_kept();
  }
}

/* Emissions on other threads pass over what is bound to one, and say so. */
static void A1_boundHandlersOfOtherThreads(void) {
  open_kept(CBR_LEVEL_LIFECYCLE);
  cbr_signal signal = add_signal("changed", CBR_NONE);
  handler bound = {0}, any = {0};
  connect_as(signal, &bound, "bound", CBR_NONE, CBR_THREAD_BOUND);
  connect_as(signal, &any, "any", CBR_NONE, 0);
  worker emitter;
  start(&emitter, "emitter", emit_it, &signal);
  join(&emitter);
  EQUAL(0, bound.calls);
  EQUAL(1, any.calls);
  EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  EQUAL(1, bound.calls);
  EQUAL(1, count_in("SELECT count(*) FROM history WHERE label = 'bound' AND "
                    "event = 'refused' AND detail = 'CBR_E_THREAD'"));
  end(signal);
  close_kept();
}

int main(void) {
  TEST(G17_impactOfSignalsAndSlots);
  TEST(G1_explainSignalsAndSlots);
  TEST(A1_slotsInTheHistory);
  TEST(A1_signalsInTheHistory);
  TEST(A1_levelsOfConnections);
  TEST(A1_levelChangesWhileEntering);
  TEST(A1_boundHandlersOfOtherThreads);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots: what they hold, and that they let go of what has died (G19).
 */
#include "gates.h"

static cbr_registry registry;

static cbr_slot add_slot(const char *label, cbr_owner owner) {
  cbr_slot slot = CBR_NONE;
  EXPECT(CBR_OK, cbr_slot_create(registry, label, owner, &slot));
  return slot;
}

static cbr_token add_plain(struct counted *counted, cbr_owner owner) {
  return add(registry, "delegate", counted, false, owner);
}

static void end(cbr_handle handle) {
  EXPECT(CBR_OK, cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

/* What an observer has been told. */
typedef struct told {
  int times;
  cbr_slot slot;
  cbr_token token;
  cbr_token held_then;
} told;

static void note_clearing(void *context, cbr_slot slot, cbr_token token) {
  told *it = context;
  it->times++;
  it->slot = slot;
  it->token = token;
  it->held_then = cbr_slot_get(slot);
}

static cbr_token add_observer(told *told) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "observer", note_clearing, told, NULL,
                              CBR_NONE, &token));
  return token;
}

static void G19_slotHoldsOneToken(void) {
  struct counted first = {0}, second = {0};
  cbr_token one = add_plain(&first, CBR_NONE);
  cbr_token other = add_plain(&second, CBR_NONE);
  cbr_slot slot = add_slot("delegate of a view", CBR_NONE);
  cbr_call call;
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  EXPECT(CBR_EMPTY, cbr_slot_enter(slot, NULL, 0, &call));
  EXPECT(CBR_OK, cbr_slot_set(slot, one));
  EQUAL(one, cbr_slot_get(slot));
  EXPECT(CBR_OK, cbr_slot_enter(slot, NULL, 0, &call));
  EQUAL(one, call.token);
  CHECK(call.context == &first);
  EXPECT(CBR_OK, cbr_leave(&call));
  EXPECT(CBR_OK, cbr_slot_set(slot, other));
  EQUAL(other, cbr_slot_get(slot));
  end(one); /* it is held no longer */
  EQUAL(other, cbr_slot_get(slot));
  EXPECT(CBR_OK, cbr_slot_set(slot, CBR_NONE));
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  EXPECT(CBR_OK, cbr_slot_set(slot, other));
  end(other);
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  EXPECT(CBR_E_STALE, cbr_slot_set(slot, other));
  end(slot);
  EXPECT(CBR_E_STALE, cbr_slot_enter(slot, NULL, 0, &call));
  EXPECT(CBR_E_STALE, cbr_slot_set(slot, CBR_NONE));
  EQUAL(CBR_NONE, cbr_slot_get(slot));
}

/* F8: one delegate in five slots of three objects. */
static void G19_deathClearsEverySlot(void) {
  cbr_owner objects[3];
  for (int each = 0; each < 3; each++)
    objects[each] = add_owner(registry, "object");
  for (int way = 0; way < 4; way++) {
    WITHIN("way %d", way);
    cbr_owner mine = add_owner(registry, "controller");
    struct counted counted = {0};
    cbr_token token = add_plain(&counted, mine);
    told told = {0};
    cbr_token observer = add_observer(&told);
    cbr_slot slots[5];
    for (int each = 0; each < 5; each++) {
      slots[each] = add_slot("delegate", objects[each % 3]);
      EXPECT(CBR_OK, cbr_slot_set(slots[each], token));
      EXPECT(CBR_OK, cbr_slot_on_clear(slots[each], observer));
    }
    EXPECT(CBR_OK, cbr_slot_set(slots[way], CBR_NONE));
    end(slots[4]);
    switch (way) {
      case 0: CHECK(cbr_invalidate(token, CBR_REASON_ENDED) == CBR_OK); break;
      case 1: end(token); break;
      case 2: CHECK(cbr_invalidate(mine, CBR_REASON_ENDED) == CBR_OK); break;
      case 3: end(mine); break;
    }
    EQUAL(3, told.times); /* the replaced and the ended one hold nothing */
    EQUAL(token, told.token);
    EQUAL(CBR_NONE, told.held_then);
    for (int each = 0; each < 5; each++)
      EQUAL(CBR_NONE, cbr_slot_get(slots[each]));
    end(observer);
  }
  for (int each = 0; each < 3; each++) end(objects[each]);
  EQUAL(0, statistics_of(registry).live_slots);
}

/* Slots let go of a token in any order, some before it dies. */
static void G19_slotsLetGoInAnyOrder(void) {
  enum { SLOTS = 4 };
  for (int order = 0; order < SLOTS * SLOTS * SLOTS; order++) {
    WITHIN("order %d", order);
    struct counted counted = {0};
    cbr_token token = add_plain(&counted, CBR_NONE);
    told told = {0};
    cbr_token observer = add_observer(&told);
    cbr_slot slots[SLOTS];
    for (int each = 0; each < SLOTS; each++) {
      slots[each] = add_slot("delegate", CBR_NONE);
      EXPECT(CBR_OK, cbr_slot_set(slots[each], token));
      EXPECT(CBR_OK, cbr_slot_on_clear(slots[each], observer));
    }
    bool has_let_go[SLOTS] = {false};
    for (int which = order, step = 0; step < 3; step++, which /= SLOTS) {
      EXPECT(CBR_OK, cbr_slot_set(slots[which % SLOTS], CBR_NONE));
      has_let_go[which % SLOTS] = true;
    }
    int holding = 0;
    for (int each = 0; each < SLOTS; each++) {
      EQUAL(has_let_go[each] ? CBR_NONE : token, cbr_slot_get(slots[each]));
      if (!has_let_go[each]) holding++;
    }
    end(token);
    EQUAL(holding, told.times);
    for (int each = 0; each < SLOTS; each++) {
      EQUAL(CBR_NONE, cbr_slot_get(slots[each]));
      end(slots[each]);
    }
    end(observer);
  }
}

/* What a slot held that has ended, and what took its place, are strangers. */
static void G16_endedSlotIsForgotten(void) {
  struct counted counted = {0};
  cbr_registry small = open_registry("small", test_level());
  cbr_token one = add(small, "one", &counted, false, CBR_NONE);
  cbr_token two = add(small, "two", &counted, false, CBR_NONE);
  cbr_slot former, slot = CBR_NONE;
  EXPECT(CBR_OK, cbr_slot_create(small, "former", CBR_NONE, &former));
  EXPECT(CBR_OK, cbr_slot_set(former, one));
  end(former);
  for (int each = 0; each < 5000 && slot_of(slot) != slot_of(former); each++)
    EXPECT(CBR_OK, cbr_slot_create(small, "slot", CBR_NONE, &slot));
  EQUAL(slot_of(former), slot_of(slot));
  EXPECT(CBR_OK, cbr_slot_set(slot, two));
  end(one);
  EQUAL(two, cbr_slot_get(slot));
  end(two);
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  close_registry(small);
}

static void G19_oneShotClearsItsSlot(void) {
  struct counted counted = {0};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "once";
  what.function = (cbr_function)(uintptr_t)count_call;
  what.context = &counted;
  what.flags = CBR_ONE_SHOT;
  cbr_token token;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  told told = {0};
  cbr_token observer = add_observer(&told);
  cbr_slot slot = add_slot("once", CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_on_clear(slot, observer));
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  cbr_call call;
  EXPECT(CBR_OK, cbr_slot_enter(slot, NULL, 0, &call));
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  EQUAL(1, told.times);
  EXPECT(CBR_OK, cbr_leave(&call));
  EXPECT(CBR_EMPTY, cbr_slot_enter(slot, NULL, 0, &call));
  end(observer);
  end(slot);
}

static int refresh(void *context) { return *(int *)context; }

/* A slot of an interface: absent methods and absent delegates have answers. */
static void G19_slotOfAnInterface(void) {
  const cbr_method methods[] = {
      {"refresh", CBR_METHOD_REQUIRED, 0},
      {"should_close", CBR_METHOD_DEFAULT, 7},
  };
  const cbr_interface interface = {sizeof interface, "view-delegate", 1, 2,
                                   methods};
  const cbr_function table[] = {(cbr_function)(uintptr_t)refresh, NULL};
  int answer = 42;
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "controller";
  what.interface = &interface;
  what.methods = table;
  what.context = &answer;
  cbr_token token;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  cbr_slot slot = add_slot("delegate", CBR_NONE);
  cbr_call call;
  EXPECT(CBR_EMPTY, cbr_slot_enter(slot, &interface, 1, &call));
  EQUAL(7, call.disposition);
  CHECK(call.function == NULL);
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  EXPECT(CBR_E_UNIMPLEMENTED, cbr_slot_enter(slot, &interface, 1, &call));
  EQUAL(7, call.disposition);
  EXPECT(CBR_OK, cbr_slot_enter(slot, &interface, 0, &call));
  EQUAL(42, ((int (*)(void *))(uintptr_t)call.function)(call.context));
  EXPECT(CBR_OK, cbr_leave(&call));
  EXPECT(CBR_E_INTERFACE, cbr_slot_enter(slot, NULL, 0, &call));
  EXPECT(CBR_E_INVALID, cbr_slot_enter(slot, NULL, 1, &call));
  end(token);
  end(slot);
}

static void G1_slotsRefuseWhatIsNotTheirs(void) {
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  struct counted counted = {0};
  cbr_token foreign = add(other, "foreign", &counted, false, CBR_NONE);
  cbr_token token = add_plain(&counted, CBR_NONE);
  cbr_slot slot = add_slot("slot", CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  EXPECT(CBR_E_FOREIGN, cbr_slot_set(slot, foreign));
  EXPECT(CBR_E_KIND, cbr_slot_set(slot, registry));
  EXPECT(CBR_E_KIND, cbr_slot_set(slot, slot));
  EXPECT(CBR_E_INVALID, cbr_slot_set(slot, UINT64_MAX));
  EXPECT(CBR_E_KIND, cbr_slot_set(token, token));
  EXPECT(CBR_E_INVALID, cbr_slot_set(CBR_NONE, token));
  EXPECT(CBR_E_FOREIGN, cbr_slot_on_clear(slot, foreign));
  EXPECT(CBR_E_KIND, cbr_slot_on_clear(slot, slot));
  EQUAL(token, cbr_slot_get(slot));
  EQUAL(CBR_NONE, cbr_slot_get(token));
  cbr_slot none = slot;
  EXPECT(CBR_E_KIND, cbr_slot_create(token, "", CBR_NONE, &none));
  EQUAL(CBR_NONE, none);
  EXPECT(CBR_E_KIND, cbr_slot_create(registry, "", token, &none));
  EXPECT(CBR_E_INVALID, cbr_slot_create(registry, "\n", CBR_NONE, &none));
  EXPECT(CBR_E_KIND, cbr_block(slot));
  end(token);
  end(slot);
  close_registry(other);
}

/* An observer may do anything: here it fills the slot again, and ends it. */
typedef struct refiller {
  cbr_token successor;
  int times;
} refiller;

static void refill(void *context, cbr_slot slot, cbr_token token) {
  refiller *it = context;
  it->times++;
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  EXPECT(CBR_OK, cbr_slot_set(slot, it->successor));
}

static void G12_observerActs(void) {
  struct counted counted = {0};
  cbr_token token = add_plain(&counted, CBR_NONE);
  refiller it = {add_plain(&counted, CBR_NONE), 0};
  cbr_token observer = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "refill", refill, &it, NULL, CBR_NONE,
                              &observer));
  cbr_slot slot = add_slot("slot", CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  EXPECT(CBR_OK, cbr_slot_on_clear(slot, observer));
  end(token);
  EQUAL(1, it.times);
  EQUAL(it.successor, cbr_slot_get(slot));
  EXPECT(CBR_OK, cbr_slot_on_clear(slot, CBR_NONE));
  end(it.successor);
  EQUAL(1, it.times);
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  end(slot);
  end(observer);
}

/* The slot reads as empty from the mark on, before anything is told. */
typedef struct dying {
  cbr_token token;
  cbr_status status;
} dying;

static void end_token(void *argument) {
  dying *it = argument;
  it->status = cbr_invalidate(it->token, CBR_REASON_ENDED);
}

static void G19_emptyFromTheMarkOn(void) {
  struct counted counted = {0};
  dying it = {add_plain(&counted, CBR_NONE), CBR_E_USER};
  cbr_slot slot = add_slot("slot", CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_set(slot, it.token));
  worker ender;
  gate at = GATE(END_MARKED, it.token, &ender);
  close_gate(&at);
  start(&ender, "ender", end_token, &it);
  await_gate(&at);
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  /* The slot ends, and is reused, while its clearing is yet to be told. */
  EXPECT(CBR_OK, cbr_invalidate(slot, CBR_REASON_ENDED));
  open_gate(&at);
  join(&ender);
  EXPECT(CBR_OK, it.status);
}

/* Who reads while one live token takes another's place finds one of them. */
typedef struct reader {
  cbr_slot slot;
  atomic_bool is_over;
  int empty;
} reader;

static void read_slot(void *argument) {
  reader *it = argument;
  while (!atomic_load(&it->is_over))
    if (cbr_slot_get(it->slot) == CBR_NONE) it->empty++;
}

static void G19_replacedInOneStep(void) {
  struct counted counted = {0};
  cbr_token tokens[2] = {add_plain(&counted, CBR_NONE),
                         add_plain(&counted, CBR_NONE)};
  reader it = {.slot = add_slot("slot", CBR_NONE)};
  EXPECT(CBR_OK, cbr_slot_set(it.slot, tokens[0]));
  worker worker;
  start(&worker, "reader", read_slot, &it);
  for (int round = 1; round < 100000; round++)
    EXPECT(CBR_OK, cbr_slot_set(it.slot, tokens[round % 2]));
  atomic_store(&it.is_over, true);
  join(&worker);
  EQUAL(0, it.empty);
  end(tokens[0]);
  end(tokens[1]);
  end(it.slot);
}

/* No memory: the slot holds what it held. */
static void G6_settingWithoutMemory(void) {
  struct counted counted = {0};
  cbr_token one = add_plain(&counted, CBR_NONE);
  cbr_token other = add_plain(&counted, CBR_NONE);
  cbr_slot slot = add_slot("slot", CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_set(slot, one));
  int failures = 0;
  for (int64_t after = 0; after < 10; after++) {
    cbr_test_fail_allocation(after);
    cbr_status status = cbr_slot_set(slot, other);
    if (cbr_test_fail_allocation(-1) >= 0) {
      EXPECT(CBR_OK, status);
      break;
    }
    failures++;
    EXPECT(CBR_E_NOMEM, status);
    EQUAL(one, cbr_slot_get(slot));
  }
  CHECK(failures > 0);
  EQUAL(other, cbr_slot_get(slot));
  end(one);
  end(other);
  end(slot);
}

int main(void) {
  registry = open_registry("slots", test_level());
  TEST(G19_slotHoldsOneToken);
  TEST(G19_deathClearsEverySlot);
  TEST(G19_slotsLetGoInAnyOrder);
  TEST(G16_endedSlotIsForgotten);
  TEST(G19_oneShotClearsItsSlot);
  TEST(G19_slotOfAnInterface);
  TEST(G1_slotsRefuseWhatIsNotTheirs);
  TEST(G12_observerActs);
  TEST(G19_emptyFromTheMarkOn);
  TEST(G19_replacedInOneStep);
  TEST(G6_settingWithoutMemory);
  EQUAL(0, statistics_of(registry).live_slots);
  EQUAL(0, statistics_of(registry).live_tokens);
  close_registry(registry);
  return finish();
}

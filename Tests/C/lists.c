/* SPDX-License-Identifier: Apache-2.0
 *
 * What signals and slots cost, counted by steps and not by time; that nothing
 * of a list, a connection or a holder is left behind; and that lists hold what
 * they should while threads change them.
 */
#include "gates.h"

#include <malloc.h>

static cbr_registry registry;

/* ---------------------------------------------------------------- handlers */

static cbr_disposition count_emission(void *context, void *argument) {
  (void)argument;
  count_call(context);
  return CBR_CONTINUE;
}

static cbr_status try_connect(cbr_signal signal, struct counted *counted,
                              int32_t priority, cbr_owner owner,
                              cbr_token *out) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_connection_options options = CBR_CONNECTION_OPTIONS_INIT;
  what.label = "handler";
  what.function = (cbr_function)(uintptr_t)count_emission;
  what.context = counted;
  what.destroy = count_destroy;
  what.owner = owner;
  options.priority = priority;
  return cbr_connect(signal, &what, &options, out);
}

static cbr_token connect_to(cbr_signal signal, struct counted *counted,
                            int32_t priority, cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, try_connect(signal, counted, priority, owner, &token));
  return token;
}

static cbr_signal add_signal_to(cbr_registry its) {
  cbr_signal signal = CBR_NONE;
  EXPECT(CBR_OK, cbr_signal_create(its, "signal", CBR_NONE, &signal));
  return signal;
}

static cbr_signal add_signal(void) { return add_signal_to(registry); }

static void end(cbr_handle handle) {
  EXPECT(CBR_OK, cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

/* ------------------------------------------------------------------- steps */

static _Atomic long steps[64];

static void count_step(int32_t point, uint64_t handle) {
  (void)handle;
  if (point < 64)
    atomic_fetch_add_explicit(&steps[point], 1, memory_order_relaxed);
}

static void count_steps(void) {
  for (int each = 0; each < 64; each++) atomic_store(&steps[each], 0);
  cbr_test_set_hook(count_step);
}

static long all_steps(void) {
  long sum = 0;
  for (int each = 0; each < 64; each++) sum += atomic_load(&steps[each]);
  return sum;
}

/* How many allocations one connecting makes. */
static long allocations_of(cbr_signal signal, struct counted *counted,
                           int32_t priority) {
  const int64_t many = 1000000;
  cbr_test_fail_allocation(many);
  (void)connect_to(signal, counted, priority, CBR_NONE);
  return (long)(many - cbr_test_fail_allocation(-1));
}

/* Connecting behind all others copies no list, but when it doubles. */
static void G20_connectingAtTheEndIsConstant(void) {
  enum { COUNT = 4096 };
  struct counted counted = {0};
  cbr_signal signal = add_signal();
  long sum = 0;
  for (int each = 0; each < COUNT; each++)
    sum += allocations_of(signal, &counted, 0);
  CHECK(sum < COUNT + COUNT / 8);
  end(signal);
  EQUAL(COUNT, destroyed(&counted));
}

/* Handlers that are gone are passed over a few times, not for ever. */
static void G20_goneHandlersAreForgotten(void) {
  enum { COUNT = 1000 };
  static cbr_token tokens[COUNT];
  struct counted counted = {0};
  cbr_signal signal = add_signal();
  for (int each = 0; each < COUNT; each++)
    tokens[each] = connect_to(signal, &counted, 0, CBR_NONE);
  for (int each = 1; each < COUNT; each++)
    EXPECT(CBR_OK, cbr_invalidate(tokens[each], CBR_REASON_ENDED));
  for (int each = 0; each < 2; each++)
    EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  count_steps();
  EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  cbr_test_set_hook(reach);
  CHECK(all_steps() < 20);
  EQUAL(3, calls_of(&counted));
  /* The list that was made anew leaves room behind: it is ended with all. */
  tokens[1] = connect_to(signal, &counted, 0, CBR_NONE);
  EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  EQUAL(5, calls_of(&counted));
  end(signal);
}

/* A signal that ends in an emission that finds most of it gone. */
static cbr_disposition end_and_go_on(void *context, void *argument) {
  (void)argument;
  EXPECT(CBR_DEFERRED,
         cbr_invalidate(*(cbr_signal *)context, CBR_REASON_ENDED));
  return CBR_CONTINUE;
}

static void D4_mostOfTheListEndsInside(void) {
  struct counted counted = {0};
  cbr_signal signal = add_signal();
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token;
  what.function = (cbr_function)(uintptr_t)end_and_go_on;
  what.context = &signal;
  EXPECT(CBR_OK, cbr_connect(signal, &what, NULL, &token));
  for (int each = 0; each < 40; each++)
    (void)connect_to(signal, &counted, 0, CBR_NONE);
  EXPECT(CBR_STOPPED, cbr_emit(signal, NULL, NULL));
  EQUAL(40, destroyed(&counted));
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(signal, CBR_REASON_ENDED, 0));
  EQUAL(0, calls_of(&counted));
}

/* Lists that are replaced, and slots that were taken for them, are used again:
 * a signal that changes for ever needs no more room than one that did once. */
static void G2_nothingOfAListIsLeft(void) {
  struct counted counted = {0};
  cbr_signal signal = add_signal();
  cbr_token kept = connect_to(signal, &counted, 0, CBR_NONE);
  uint64_t slots = statistics_of(registry).slots;
  for (int each = 0; each < 40000; each++) {
    cbr_token token = connect_to(signal, &counted, each & 1, CBR_NONE);
    EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
    if (each % 16 == 0) EXPECT(CBR_OK, cbr_emit(signal, NULL, NULL));
  }
  CHECK(statistics_of(registry).slots <= slots + 2048);
  EQUAL(1, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).unsettled);
  CHECK(cbr_is_live(kept));
  end(signal);
}

/* The same when there is no memory for a list. */
static void G6_nothingIsLeftWithoutMemory(void) {
  struct counted counted = {0};
  cbr_signal signal = add_signal();
  (void)connect_to(signal, &counted, 0, CBR_NONE);
  uint64_t slots = statistics_of(registry).slots;
  for (int each = 0; each < 20000; each++)
    for (int after = 0; after < 3; after++) {
      cbr_token token = CBR_NONE;
      cbr_test_fail_allocation(after);
      cbr_status status = try_connect(signal, &counted, 1, CBR_NONE, &token);
      cbr_test_fail_allocation(-1);
      if (status == CBR_OK) {
        EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
      } else {
        EXPECT(CBR_E_NOMEM, status);
      }
    }
  CHECK(statistics_of(registry).slots <= slots + 2048);
  end(signal);
}

/* What ends, and what is refused, takes its memory along. Sanitizers, which
 * have an eye on that themselves, answer 0 here. */
static size_t memory_in_use(void) {
  struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

static void come_and_go(cbr_registry quiet, struct counted *counted) {
  cbr_signal signal = CBR_NONE, none;
  cbr_slot slot = CBR_NONE;
  cbr_owner owner = add_owner(quiet, "owner"), dead = add_owner(quiet, "dead");
  end(dead);
  EXPECT(CBR_E_STALE, cbr_signal_create(quiet, "signal", dead, &none));
  EXPECT(CBR_OK, cbr_signal_create(quiet, "signal", owner, &signal));
  EXPECT(CBR_OK, cbr_slot_create(quiet, "slot", owner, &slot));
  cbr_token token = connect_to(signal, counted, 0, CBR_NONE), refused;
  (void)connect_to(signal, counted, 1, owner);
  EXPECT(CBR_E_STALE, try_connect(signal, counted, 0, dead, &refused));
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  end(token);
  EXPECT(CBR_E_STALE, cbr_slot_set(slot, token));
  end(owner);
}

static void G7_nothingLeaks(void) {
  enum { TURNS = TIMES(5000, 100) };
  struct counted counted = {0};
  cbr_registry quiet = open_registry("quiet", CBR_LEVEL_OFF);
  size_t before = 0;
  for (int each = 0; each < 4 * TURNS; each++) {
    if (each == TURNS) before = memory_in_use();
    come_and_go(quiet, &counted);
  }
  CHECK(memory_in_use() < before + 8 * TURNS);
  EQUAL(8 * TURNS, destroyed(&counted));
  close_registry(quiet);
}

/* G17: a hundred thousand connections of one owner, to a hundred signals, and
 * as many slots that hold one of them: so many steps each, and one fence. */
static void G17_manyConnectionsEndAtOnce(void) {
  enum { COUNT = TIMES(100000, 20000), SIGNALS = 100 };
  struct counted counted = {0};
  cbr_owner owner = add_owner(registry, "observer");
  cbr_signal signals[SIGNALS];
  for (int each = 0; each < SIGNALS; each++) signals[each] = add_signal();
  cbr_token last = CBR_NONE;
  for (int each = 0; each < COUNT; each++)
    last = connect_to(signals[each % SIGNALS], &counted, 0, owner);
  cbr_slot slot = CBR_NONE;
  for (int each = 0; each < COUNT / 10; each++) {
    EXPECT(CBR_OK, cbr_slot_create(registry, "slot", CBR_NONE, &slot));
    EXPECT(CBR_OK, cbr_slot_set(slot, last));
  }
  uint64_t fences = statistics_of(registry).heavy_fences;
  count_steps();
  end(owner);
  cbr_test_set_hook(reach);
  CHECK(all_steps() < 8L * COUNT);
  CHECK(statistics_of(registry).heavy_fences <= fences + 4);
  EQUAL(COUNT, destroyed(&counted));
  EQUAL(CBR_NONE, cbr_slot_get(slot));
  for (int each = 0; each < SIGNALS; each++) {
    EXPECT(CBR_OK, cbr_emit(signals[each], NULL, NULL));
    end(signals[each]);
  }
  EQUAL(0, calls_of(&counted));
}

/* ------------------------------------------------------------------- races */

/* An emission has read which list its signal has; before it pins that, the
 * list is replaced and freed, and its slot serves another one. */
typedef struct emission {
  cbr_signal signal;
  cbr_status status;
  cbr_emission result;
} emission;

static void emit_it(void *argument) {
  emission *it = argument;
  it->result = (cbr_emission)CBR_EMISSION_INIT;
  it->status = cbr_emit(it->signal, NULL, &it->result);
}

/* Takes every slot of a registry that is free. */
static void use_slots_again(cbr_registry its, struct counted *counted) {
  uint64_t slots = statistics_of(its).slots;
  while (statistics_of(its).slots == slots)
    (void)connect_to(add_signal_to(its), counted, 0, CBR_NONE);
}

static void G20_listIsReplacedBeforeItIsPinned(void) {
  for (int is_over = 0; is_over < 2; is_over++) {
    WITHIN("over %d", is_over);
    cbr_registry small = open_registry("small", test_level());
    struct counted counted = {0}, others = {0};
    cbr_signal signal = add_signal_to(small);
    (void)connect_to(signal, &counted, 0, CBR_NONE);
    emission running = {.signal = signal};
    worker emitter;
    gate at = GATE(LIST_READ, signal, &emitter);
    close_gate(&at);
    start(&emitter, "emitter", emit_it, &running);
    await_gate(&at);
    if (is_over) {
      end(signal);
    } else {
      (void)connect_to(signal, &counted, 1, CBR_NONE);
    }
    use_slots_again(small, &others);
    open_gate(&at);
    join(&emitter);
    EXPECT(is_over ? CBR_E_STALE : CBR_OK, running.status);
    EQUAL(is_over ? 0 : 2, running.result.called);
    EQUAL(is_over ? 0 : 2, calls_of(&counted));
    EQUAL(0, calls_of(&others));
    (void)cbr_registry_close(small, CBR_FOREVER);
  }
}

/* ------------------------------------------------------------------- churn */

/* Four threads connect, end, block and emit, and set slots; what each of them
 * has connected itself it hears in its order. */
typedef struct churner {
  cbr_signal signal;
  cbr_slot slot;
  cbr_owner owner;
  unsigned random;
  struct counted counted;
  long heard, connected;
} churner;

static unsigned next(churner *it) {
  it->random = it->random * 1103515245u + 12345u;
  return it->random >> 16;
}

static void churn(void *argument) {
  enum { MINE = 8 };
  churner *it = argument;
  cbr_token tokens[MINE] = {0};
  for (int round = 0; round < TIMES(4000, 1500); round++) {
    cbr_token *token = &tokens[next(it) % MINE];
    switch (next(it) % 6) {
      case 0:
      case 1:
        if (*token != CBR_NONE)
          CHECK(cbr_invalidate(*token, CBR_REASON_ENDED) >= CBR_OK);
        *token = connect_to(it->signal, &it->counted, (int32_t)(next(it) % 3),
                            next(it) % 2 ? it->owner : CBR_NONE);
        it->connected++;
        break;
      case 2:
        if (*token != CBR_NONE)
          CHECK(cbr_invalidate_wait(*token, CBR_REASON_ENDED, CBR_FOREVER) >=
                CBR_OK);
        *token = CBR_NONE;
        break;
      case 3: {
        cbr_emission result = CBR_EMISSION_INIT;
        int before = calls_of(&it->counted);
        EXPECT(CBR_OK, cbr_emit(it->signal, NULL, &result));
        int own = 0;
        for (int each = 0; each < MINE; each++)
          if (tokens[each] != CBR_NONE) own++;
        CHECK((long)result.called >= own);
        CHECK(calls_of(&it->counted) >= before + own);
        break;
      }
      case 4:
        if (*token != CBR_NONE) {
          EXPECT(CBR_OK, cbr_block(*token));
          EXPECT(CBR_OK, cbr_unblock(*token));
        }
        break;
      default:
        EXPECT(CBR_OK, cbr_slot_set(it->slot, *token));
        EQUAL(CBR_NONE == *token, cbr_slot_get(it->slot) == CBR_NONE);
    }
  }
  for (int each = 0; each < MINE; each++)
    if (tokens[each] != CBR_NONE)
      CHECK(cbr_invalidate(tokens[each], CBR_REASON_ENDED) >= CBR_OK);
}

static void D12_churnOnFourThreads(void) {
  enum { THREADS = 4 };
  static churner churners[THREADS];
  worker workers[THREADS];
  cbr_signal signal = add_signal();
  for (unsigned each = 0; each < THREADS; each++) {
    churner *it = &churners[each];
    memset(it, 0, sizeof *it);
    it->signal = signal;
    it->random = each + 1;
    it->owner = add_owner(registry, "churner");
    EXPECT(CBR_OK, cbr_slot_create(registry, "slot", it->owner, &it->slot));
    start(&workers[each], "churner", churn, it);
  }
  for (int each = 0; each < THREADS; each++)
    while (!run_far(&workers[each])) sched_yield();
  for (int each = 0; each < THREADS; each++) join(&workers[each]);
  end(signal);
  for (int each = 0; each < THREADS; each++) {
    EQUAL(churners[each].connected, destroyed(&churners[each].counted));
    end(churners[each].owner);
  }
}

int main(void) {
  registry = open_registry("lists", test_level());
  TEST(G20_connectingAtTheEndIsConstant);
  TEST(G20_goneHandlersAreForgotten);
  TEST(D4_mostOfTheListEndsInside);
  TEST(G2_nothingOfAListIsLeft);
  TEST(G6_nothingIsLeftWithoutMemory);
  TEST(G7_nothingLeaks);
  TEST(G17_manyConnectionsEndAtOnce);
  TEST(G20_listIsReplacedBeforeItIsPinned);
  TEST(D12_churnOnFourThreads);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_signals);
  close_registry(registry);
  return finish();
}

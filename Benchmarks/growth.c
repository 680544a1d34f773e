// SPDX-License-Identifier: Apache-2.0
//
// What an operation costs beside many live tokens: growth LIVE
//
// Each operation is measured on ten tokens spread among all (few:
// cache misses aside), on all in the order of their registration
// (sequential), and on all in random order (random). Each round goes on
// where the last one stopped. The bare load says what the same order of
// access costs in an array of one cache line per token.
#include <string.h>

#include "ours.h"

enum { line_bytes = 64, few = 10 };

static cbr_registry registry;
static uint64_t live;
static cbr_token *in_order, *shuffled, spread[few];
static uint32_t *order;
static char *lines;

static uint64_t random_below(uint64_t bound) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state % bound;
}

// Walks through the tokens of an array, round after round.
typedef struct walk {
  cbr_token **tokens;
  uint64_t next;
} walk;

static cbr_token *first_spread = spread;
static walk few_walk = {&first_spread, 0};
static walk order_walk = {&in_order, 0}, random_walk = {&shuffled, 0};

static cbr_token *step(walk *walk, uint64_t length) {
  if (walk->next >= length) walk->next = 0;
  return &(*walk->tokens)[walk->next++];
}

static inline void enter_leave(walk *walk, uint64_t length, uint64_t count) {
  while (count--) {
    cbr_call call;
    ours_must(cbr_enter(*step(walk, length), &call), "cbr_enter");
    cbr_leave(&call);
  }
}

static inline void is_live(walk *walk, uint64_t length, uint64_t count) {
  while (count--)
    if (!cbr_is_live(*step(walk, length))) abort();
}

static inline void replace(walk *walk, uint64_t length, uint64_t count) {
  while (count--) {
    cbr_token *token = step(walk, length);
    ours_end(*token);
    *token = ours_register(registry, CBR_NONE, NULL);
  }
}

#define CASE(name, operation, walk, length)             \
  static void name(uint64_t count, unsigned thread) {   \
    (void)thread;                                       \
    operation(&walk, length, count);                    \
  }
CASE(enter_few, enter_leave, few_walk, few)
CASE(enter_order, enter_leave, order_walk, live)
CASE(enter_random, enter_leave, random_walk, live)
CASE(is_live_few, is_live, few_walk, few)
CASE(is_live_order, is_live, order_walk, live)
CASE(is_live_random, is_live, random_walk, live)
CASE(replace_few, replace, few_walk, few)
CASE(replace_order, replace, order_walk, live)
CASE(replace_random, replace, random_walk, live)

static volatile uint64_t loaded;

static void load_order(uint64_t count, unsigned thread) {
  (void)thread;
  static uint64_t next;
  uint64_t sum = 0;
  while (count--) {
    if (next >= live) next = 0;
    sum += *(uint64_t *)(lines + line_bytes * next++);
  }
  loaded = sum;
}

static void load_random(uint64_t count, unsigned thread) {
  (void)thread;
  static uint64_t next;
  uint64_t sum = 0;
  while (count--) {
    if (next >= live) next = 0;
    sum += *(uint64_t *)(lines + (uint64_t)line_bytes * order[next++]);
  }
  loaded = sum;
}

static void *allocate(uint64_t size) {
  void *memory = malloc(live * size);
  if (!memory) exit(1);
  memset(memory, 1, live * size);
  return memory;
}

static void shuffle(void) {
  for (uint64_t i = 0; i < live; i++) order[i] = (uint32_t)i;
  for (uint64_t i = live - 1; i > 0; i--) {
    uint64_t j = random_below(i + 1);
    uint32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

static void copy_shuffled(void) {
  for (uint64_t i = 0; i < live; i++) shuffled[i] = in_order[order[i]];
}

// Picks one in each tenth, at random: even steps would share a cache set.
static void pick_few(void) {
  for (int i = 0; i < few; i++)
    spread[i] = in_order[live / few * i + random_below(live / few)];
}

void bench_program(int count, char **arguments) {
  live = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000;
  if (live < few) exit(1);
  char group[64];
  snprintf(group, sizeof group, "growth %llu", (unsigned long long)live);
  registry = ours_open("silent", CBR_LEVEL_OFF);
  in_order = allocate(sizeof *in_order);
  shuffled = allocate(sizeof *shuffled);
  order = allocate(sizeof *order);
  lines = allocate(line_bytes);
  for (uint64_t i = 0; i < live; i++)
    in_order[i] = ours_register(registry, CBR_NONE, NULL);
  shuffle();
  copy_shuffled();
  pick_few();

  bench_group(group);
  bench_add("enter+leave, few", enter_few);
  bench_add("enter+leave, sequential", enter_order);
  bench_add("enter+leave, random", enter_random);
  bench_add("cbr_is_live, few", is_live_few);
  bench_add("cbr_is_live, sequential", is_live_order);
  bench_add("cbr_is_live, random", is_live_random);
  bench_add("bare load, sequential", load_order);
  bench_add("bare load, random", load_random);
  bench_measure();

  // These replace tokens, so each begins with an array that is up to date.
  bench_group(group);
  bench_add("invalidate+register, sequential", replace_order);
  bench_measure();
  copy_shuffled();
  bench_group(group);
  bench_add("invalidate+register, random", replace_random);
  bench_measure();
  memcpy(in_order, shuffled, live * sizeof *in_order);
  pick_few();
  bench_group(group);
  bench_add("invalidate+register, few", replace_few);
  bench_measure();
}

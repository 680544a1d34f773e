// SPDX-License-Identifier: Apache-2.0
//
// Registering and ending: one token at a time, and an owner of many.
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ours.h"

enum { owned = 100000 };

static cbr_registry registry;
static cbr_token other;
static cbr_owner owner;
static uint64_t destroyed;

static void destroy(void *context) { destroyed += *(uint64_t *)context; }

static void run_plain(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(ours_register(registry, CBR_NONE, NULL));
}

static void run_destroy(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(ours_register(registry, CBR_NONE, destroy));
}

static void run_owner(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--) ours_end(owner);
}

static void run_membarrier(uint64_t count, unsigned thread) {
  (void)thread;
  while (count--)
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

// The other thread is busy with calls of another token.
static void run_other(uint64_t count, unsigned thread) {
  (void)thread;
  ours_call(other, count);
}

static void fill_owner(cbr_destroy how) {
  ours_must(cbr_owner_create(registry, "crowd", &owner), "cbr_owner_create");
  for (unsigned i = 0; i < owned; i++) ours_register(registry, owner, how);
}

static void fill_plain(uint64_t count) {
  (void)count;
  fill_owner(NULL);
}

static void fill_destroy(uint64_t count) {
  (void)count;
  fill_owner(destroy);
}

static void add_busy(const char *name, bench_run run) {
  bench_case what = {.name = name, .run = run, .busy = run_other};
  bench_add_case(&what);
}

static void add_owner(const char *name, void (*fill)(uint64_t)) {
  bench_case what = {.name = name, .run = run_owner, .before = fill,
                     .count = 1};
  bench_add_case(&what);
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  registry = ours_open("silent", CBR_LEVEL_OFF);
  other = ours_register(registry, CBR_NONE, NULL);
  bool fence = !syscall(SYS_membarrier,
                        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);

  bench_group("lifetimes");
  bench_add("register+invalidate", run_plain);
  bench_add("register+invalidate, with destroy", run_destroy);
  add_busy("register+invalidate, busy thread", run_plain);
  add_busy("register+invalidate, with destroy, busy thread", run_destroy);
  if (fence) {
    bench_add("one membarrier", run_membarrier);
    add_busy("one membarrier, busy thread", run_membarrier);
  }
  bench_measure();

  bench_group("owners");
  add_owner("invalidate an owner of 100 000 tokens", fill_plain);
  add_owner("invalidate an owner of 100 000 tokens, with destroy",
            fill_destroy);
  bench_measure();
}

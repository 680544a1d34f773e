/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "CPlatform.h"
#include "internal.h"

#ifdef CBR_TEST_HOOKS
/* How many allocations are left until one fails; negative: none does. */
static _Thread_local int64_t left_of_this_thread = -1;
static _Atomic int64_t left_of_all_threads = -1;

bool cbr_allocation_fails(void) {
  if (left_of_this_thread >= 0 && left_of_this_thread-- == 0) return true;
  return left_of_all_threads >= 0 && left_of_all_threads-- == 0;
}
#else
bool cbr_allocation_fails(void) { return false; }
#endif

void *cbr_allocate(size_t bytes, size_t alignment) {
  if (cbr_allocation_fails()) return NULL;
  if (alignment <= 16) return calloc(1, bytes);
  void *memory = NULL;
  if (posix_memalign(&memory, alignment, bytes) != 0) return NULL;
  return memset(memory, 0, bytes);
}

void cbr_release(void *memory) { free(memory); }

uint64_t cbr_random(void) {
  uint64_t value = 0;
  if (getrandom(&value, sizeof value, GRND_NONBLOCK) == sizeof value)
    return value;
  /* Early in boot, or refused: distinct from other runs, not secret. */
  value = cbr_realtime_nanoseconds() * 0x9e3779b97f4a7c15u;
  return value ^ (uint64_t)(uintptr_t)&value;
}

#ifdef CBR_TEST_HOOKS
void (*cbr_platform_hook)(int32_t point, uint64_t handle);
int cbr_test_membarrier_error;

/* The interface of tests to a library that was built with hook points. */
void cbr_test_set_hook(void (*hook)(int32_t, uint64_t));
int64_t cbr_test_fail_allocation(int64_t after);
int64_t cbr_test_fail_any_allocation(int64_t after);
void cbr_test_set_membarrier_error(int error);

void cbr_test_set_hook(void (*hook)(int32_t, uint64_t)) {
  __atomic_store_n(&cbr_platform_hook, hook, __ATOMIC_RELEASE);
}
int64_t cbr_test_fail_allocation(int64_t after) {
  int64_t left = left_of_this_thread;
  left_of_this_thread = after;
  return left;
}
int64_t cbr_test_fail_any_allocation(int64_t after) {
  return atomic_exchange(&left_of_all_threads, after);
}
void cbr_test_set_membarrier_error(int error) {
  cbr_test_membarrier_error = error;
}
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What several test programs build their tests of. Each function here that
 * must not fail in a test reports when it does.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* How often something is repeated: less under a sanitizer. */
#ifdef SANITIZED
#define TIMES(plain, sanitized) (sanitized)
#else
#define TIMES(plain, sanitized) (plain)
#endif

/* Of a library that was built for tests: the allocation after the next `after`
 * ones fails; -1: none does. Returns what was left of the number given before:
 * -1 when that one has failed. The first counts the calling thread's alone, so
 * that none of the library's own takes the failure; the second everybody's. */
int64_t cbr_test_fail_allocation(int64_t after);
int64_t cbr_test_fail_any_allocation(int64_t after);

/* The slot of a handle, as LayoutTests.swift pins it. Nothing but a test that
 * wants a slot to be reused has to know this. */
static inline uint32_t slot_of(cbr_handle handle) {
  return (uint32_t)(handle >> 6) & ((1u << 26) - 1);
}

/* What a letter in a cell of a table stands for. */
static inline bool is_status(char cell, cbr_status status) {
  switch (cell) {
    case 'O': return status == CBR_OK;
    case 'A': return status == CBR_ALREADY;
    case 'D': return status == CBR_DEFERRED;
    case 'P': return status == CBR_PENDING;
    case 'B': return status == CBR_ALREADY || status == CBR_DEFERRED;
    case 'M': return status == CBR_EMPTY;
    case 'I': return status == CBR_E_INVALID;
    case 'S': return status == CBR_E_STALE;
    case 'K': return status == CBR_E_KIND;
    case 'E': return status == CBR_E_INTERFACE;
    case 'X': return status == CBR_E_FOREIGN;
    case 'Y': return status == CBR_E_DYING;
    case 'C': return status == CBR_E_CLOSED;
    case 'F': return status == CBR_E_FORKED;
    case 'R':
      return status == CBR_E_INVALID || status == CBR_E_KIND ||
             status == CBR_E_STALE;
    default: return false;
  }
}

static inline void expect_cell(char cell, cbr_status status) {
  if (is_status(cell, status)) return;
  fprintf(stderr, "%s instead of %c (last error: %s)\n",
          cbr_status_name(status), cell, cbr_last_error());
  fail_();
}

/* How much is recorded by tests that hold at every level: what CBR_TEST_LEVEL
 * says (off, lifecycle, calls), else nothing. */
static inline uint32_t test_level(void) {
  const char *const names[] = {"off", "lifecycle", "calls"};
  const char *name = getenv("CBR_TEST_LEVEL");
  for (uint32_t each = 0; name && each < 3; each++)
    if (strcmp(name, names[each]) == 0) return CBR_LEVEL_OFF + each;
  CHECK(name == NULL);
  return CBR_LEVEL_OFF;
}

static inline cbr_registry open_registry(const char *label, uint32_t level) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_registry registry = CBR_NONE;
  options.label = label;
  options.level = level;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  return registry;
}

static inline void close_registry(cbr_registry registry) {
  EXPECT(CBR_OK, cbr_registry_close(registry, CBR_FOREVER));
}

/* A context that counts what happens to it. */
struct counted {
  int calls;
  int destroyed;
  pthread_t destroyed_by;
};

static inline void count_call(void *context) {
  __atomic_add_fetch(&((struct counted *)context)->calls, 1,
                     __ATOMIC_RELAXED);
}

static inline void count_destroy(void *context) {
  struct counted *counted = context;
  counted->destroyed_by = pthread_self();
  __atomic_add_fetch(&counted->destroyed, 1, __ATOMIC_SEQ_CST);
}

static inline int calls_of(const struct counted *counted) {
  return __atomic_load_n(&counted->calls, __ATOMIC_SEQ_CST);
}

static inline int destroyed(const struct counted *counted) {
  return __atomic_load_n(&counted->destroyed, __ATOMIC_SEQ_CST);
}

/* Registers count_call with a context; count_destroy too if it is to. */
static inline cbr_token add(cbr_registry registry, const char *label,
                            struct counted *counted, bool with_destroy,
                            cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK,
         CBR_REGISTER(registry, label, count_call, counted,
                      with_destroy ? count_destroy : NULL, owner, &token));
  return token;
}

static inline cbr_owner add_owner(cbr_registry registry, const char *label) {
  cbr_owner owner = CBR_NONE;
  EXPECT(CBR_OK, cbr_owner_create(registry, label, &owner));
  return owner;
}

/* Calls a token, and says whether it was live. */
static inline bool calls(cbr_token token) {
  bool called = false;
  CBR_CALL(token, void (*)(void *), ((called = true, cbr_now.context)));
  return called;
}

static inline cbr_statistics statistics_of(cbr_registry registry) {
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(CBR_OK, cbr_registry_statistics(registry, &statistics));
  return statistics;
}

/* Runs a function in a forked child, and says whether its expectations held
 * there. A child that hangs is ended. */
static inline bool holds_in_child(void (*body)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    failures_of_test = 0;
    alarm(60);
    body();
    fflush(NULL);
    _exit(failures_of_test != 0);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Runs a function on a thread of its own, to its end. */
static inline void on_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0);
  pthread_join(thread, NULL);
}

/* A gate that threads wait at until it is opened. */
struct gate {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  bool is_open;
};
#define GATE_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}

static inline void gate_open(struct gate *gate) {
  pthread_mutex_lock(&gate->lock);
  gate->is_open = true;
  pthread_cond_broadcast(&gate->opened);
  pthread_mutex_unlock(&gate->lock);
}

static inline void gate_pass(struct gate *gate) {
  pthread_mutex_lock(&gate->lock);
  while (!gate->is_open) pthread_cond_wait(&gate->opened, &gate->lock);
  pthread_mutex_unlock(&gate->lock);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives one exact interleaving. A gate says "when that thread reaches this
 * point, it stops there until I open it"; a worker is a thread that a test
 * starts and whose progress it can ask for. Every wait is bounded: a test
 * that would hang fails instead. There are no sleeps.
 *
 *   gate stop = GATE(END_MARKED, token, &ender);
 *   close_gate(&stop);
 *   start(&ender, "ender", end_it, &token);
 *   await_gate(&stop);       the ender stands there
 *   ...
 *   open_gate(&stop);
 *   join(&ender);
 *
 * Points below 100 are the library's (Platform/Hook.swift); a test reports
 * its own with reach().
 */
#ifndef GATES_H
#define GATES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* before any system header: pthread_timedjoin_np */
#endif

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

/* What a library that was built for tests has besides its header. */
void cbr_test_set_hook(void (*hook)(int32_t point, uint64_t handle));
void cbr_test_set_membarrier_error(int error);

enum {
  ENTER_PINNED = 1, ENTER_CHECKED, LEAVE_CLEARED, LEAVE_CHECKED, END_MARKED,
  END_FENCED, END_SCANNED, END_DRAINED, TRY_SCANNED, TRY_CLAIMED, DESTROYED,
  LEASE_ADDED, LEASE_DROPPED, REGISTER_ALLOCATED, REGISTER_PUBLISHED,
  SLOT_FREED, TABLE_GROWN, THREAD_ENDED, WAIT_BEGAN, WAIT_WOKEN,
  CONSUMED_MARKED, PARKED, RING_FULL, ENTER_TIMED, BATCH_BEGAN, BATCH_WRITTEN,
  BATCH_COMMITTED, LOG_COPIED, RINGS_READ, RINGS_ENDED, RINGS_COMMITTED,
  RINGS_REMOVED, SEGMENT_ADDED, ROWS_PURGED, LIST_READ, MESSAGE_POSTED,
  POSTER_BLOCKED, MESSAGE_TAKEN, DELIVERY_ENDING, MESSAGE_DROPPED,
  ALARM_TAKEN, THUNK_PINNED, LOG_FOUND,
  IN_CALLBACK = 100, IN_DESTROY, IN_VISITOR, BEFORE_ACT, AFTER_ACT,
  BEFORE_FORK, AFTER_FORK
};

typedef struct worker {
  const char *name;
  void (*body)(void *);
  void *argument;
  pthread_t thread;
  _Atomic int kernel_number;
  _Atomic bool is_passing; /* it may sleep, but only for the tests' lock */
  bool is_done; /* its body has returned; guarded by gates_lock */
} worker;

typedef struct gate_at {
  int point;
  cbr_handle handle; /* CBR_NONE: any */
  worker *by;        /* NULL: any thread */
  worker *at;        /* who stands there */
  bool is_reached, is_open;
  struct gate_at *next;
} gate;

#define GATE(point, handle, by) \
  { (point), (handle), (by), NULL, false, false, NULL }

/* One lock and one condition serve all gates and workers. While no gate is
 * closed, reaching a point costs one relaxed load: nothing is ordered that
 * the library does not order itself, so ThreadSanitizer sees as much as
 * without hooks. */
static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gates_changed;
static pthread_once_t gates_once = PTHREAD_ONCE_INIT;
static gate *gates;
static _Atomic int gates_closed;
static __thread worker *worker_self;

enum { PATIENCE_SECONDS = 5 };

static inline struct timespec patience_(clockid_t clock) {
  struct timespec when;
  clock_gettime(clock, &when);
  when.tv_sec += PATIENCE_SECONDS;
  return when;
}

/* A thread hangs that cannot be stopped: the program ends as failed. */
static inline void stuck_(const char *who, const char *where) {
  fprintf(stderr, "STUCK: %s %s\n", who, where);
  printf("%d passed, %d failed\n", tests_passed, tests_failed + 1);
  fflush(stdout);
  _exit(1);
}

/* Waits, with the lock held, for a change; false when patience is at an
 * end. */
static inline bool await_change_(const struct timespec *until) {
  return pthread_cond_timedwait(&gates_changed, &gates_lock, until) !=
         ETIMEDOUT;
}

/* Orders nothing, like the rest. */
static inline void note_passing_(worker *it, bool is_passing) {
  if (it)
    atomic_store_explicit(&it->is_passing, is_passing, memory_order_relaxed);
}

static inline void reach(int32_t point, uint64_t handle) {
  if (atomic_load_explicit(&gates_closed, memory_order_relaxed) == 0) return;
  struct timespec until = patience_(CLOCK_MONOTONIC);
  note_passing_(worker_self, true);
  pthread_mutex_lock(&gates_lock);
  gate *at = gates;
  while (at && (at->is_reached || at->point != point ||
                (at->handle != CBR_NONE && at->handle != handle) ||
                (at->by && at->by != worker_self)))
    at = at->next;
  if (at) {
    at->is_reached = true;
    at->at = worker_self;
    pthread_cond_broadcast(&gates_changed);
    note_passing_(worker_self, false);
    while (!at->is_open)
      if (!await_change_(&until)) stuck_("a gate", "is never opened");
  }
  pthread_mutex_unlock(&gates_lock);
  note_passing_(worker_self, false);
}

/* In a forked child nobody opens gates. */
static inline void forget_gates_(void) {
  gates = NULL;
  atomic_store(&gates_closed, 0);
}

static inline void prepare_gates_(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&gates_changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_atfork(NULL, NULL, forget_gates_);
  cbr_test_set_hook(reach);
}

/* From now on the first thread that comes to the gate stops there. */
static inline void close_gate(gate *at) {
  pthread_once(&gates_once, prepare_gates_);
  pthread_mutex_lock(&gates_lock);
  at->is_reached = at->is_open = false;
  at->at = NULL;
  at->next = gates;
  gates = at;
  atomic_fetch_add(&gates_closed, 1);
  pthread_mutex_unlock(&gates_lock);
}

/* Lets who stands there go on, and forgets the gate. */
static inline void open_gate(gate *at) {
  pthread_mutex_lock(&gates_lock);
  for (gate **link = &gates; *link; link = &(*link)->next)
    if (*link == at) {
      *link = at->next;
      atomic_fetch_sub(&gates_closed, 1);
      break;
    }
  at->is_open = true;
  note_passing_(at->at, true);
  at->at = NULL;
  pthread_cond_broadcast(&gates_changed);
  pthread_mutex_unlock(&gates_lock);
}

/* Waits until a thread stands at the gate. False when its worker ends without
 * having come there; a gate for any thread must be reached. */
static inline bool comes_to_within(gate *at, int seconds) {
  struct timespec until = patience_(CLOCK_MONOTONIC);
  until.tv_sec += seconds - PATIENCE_SECONDS;
  pthread_mutex_lock(&gates_lock);
  while (!at->is_reached && !(at->by && at->by->is_done))
    if (!await_change_(&until)) stuck_("a gate", "is never reached");
  bool is_reached = at->is_reached;
  pthread_mutex_unlock(&gates_lock);
  return is_reached;
}

static inline bool comes_to(gate *at) {
  return comes_to_within(at, PATIENCE_SECONDS);
}

/* Whether a thread has come to the gate so far. */
static inline bool is_at(gate *at) {
  pthread_mutex_lock(&gates_lock);
  bool is_reached = at->is_reached;
  pthread_mutex_unlock(&gates_lock);
  return is_reached;
}

static inline void await_gate(gate *at) { CHECK(comes_to(at)); }

static inline void *run_worker_(void *argument) {
  worker *self = argument;
  worker_self = self;
  atomic_store(&self->kernel_number, (int)syscall(SYS_gettid));
  self->body(self->argument);
  note_passing_(self, true);
  pthread_mutex_lock(&gates_lock);
  self->is_done = true;
  pthread_cond_broadcast(&gates_changed);
  pthread_mutex_unlock(&gates_lock);
  return NULL;
}

/* Runs body(argument) on a thread of its own. */
static inline void start(worker *it, const char *name, void (*body)(void *),
                         void *argument) {
  pthread_once(&gates_once, prepare_gates_);
  it->name = name;
  it->body = body;
  it->argument = argument;
  it->is_done = false;
  atomic_store(&it->kernel_number, 0);
  atomic_store(&it->is_passing, false);
  if (pthread_create(&it->thread, NULL, run_worker_, it) != 0)
    stuck_(name, "cannot be started");
}

static inline bool is_done(worker *it) {
  pthread_mutex_lock(&gates_lock);
  bool done = it->is_done;
  pthread_mutex_unlock(&gates_lock);
  return done;
}

/* Waits until the thread has ended altogether. A thread that ended itself
 * (pthread_exit) can be joined, too. */
static inline void join(worker *it) {
  struct timespec until = patience_(CLOCK_REALTIME);
  if (pthread_timedjoin_np(it->thread, NULL, &until) != 0)
    stuck_(it->name, "does not end");
}

/* The kernel's state of a worker: 'S' while it sleeps, 'X' when it is gone. */
static inline char kernel_state_(worker *it) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat",
           atomic_load(&it->kernel_number));
  FILE *file = fopen(path, "r");
  if (!file) return 'X';
  size_t bytes = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[bytes] = 0;
  const char *name_end = strrchr(text, ')');
  return name_end && name_end[1] ? name_end[2] : 'X';
}

/* Lets the worker run as far as it can: until its body has returned or its
 * thread is gone (true), or it sleeps, for a lock or for another thread
 * (false). That it sleeps is what the kernel said at one moment: tests use it
 * to come to the state that they are about, and hold if it was not reached,
 * too. */
static inline bool run_far(worker *it) {
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  for (int sleeping = 0; sleeping < TIMES(10, 30);) {
    if (is_done(it)) return true;
    bool is_passing = atomic_load(&it->is_passing);
    char state =
        atomic_load(&it->kernel_number) == 0 ? 'R' : kernel_state_(it);
    if (state == 'X') return true;
    sleeping = state == 'S' && !is_passing ? sleeping + 1 : 0;
    sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_(it->name, "neither ends nor waits");
  }
  return false;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "CPlatform.h"

struct monitor {
  pthread_mutex_t lock;
  pthread_cond_t condition;
};

static struct monitor of_process[CBR_MONITOR_COUNT];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void initialize(struct monitor *monitor) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&monitor->condition, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&monitor->lock, NULL);
}

void *cbr_monitor_create(void) {
  struct monitor *monitor =
      cbr_allocate(sizeof *monitor, _Alignof(struct monitor));
  if (monitor) initialize(monitor);
  return monitor;
}

void cbr_monitor_destroy(void *monitor) {
  if (!monitor) return;
  pthread_cond_destroy(&((struct monitor *)monitor)->condition);
  pthread_mutex_destroy(&((struct monitor *)monitor)->lock);
  cbr_release(monitor);
}

void cbr_monitor_lock(void *monitor) {
  pthread_mutex_lock(&((struct monitor *)monitor)->lock);
}

void cbr_monitor_unlock(void *monitor) {
  pthread_mutex_unlock(&((struct monitor *)monitor)->lock);
}

void cbr_monitor_wake(void *monitor) {
  pthread_cond_broadcast(&((struct monitor *)monitor)->condition);
}

bool cbr_monitor_wait(void *monitor, uint64_t deadline) {
  struct monitor *on = monitor;
  struct timespec when = {.tv_sec = (time_t)(deadline / 1000000000u),
                          .tv_nsec = (long)(deadline % 1000000000u)};
  /* A thread that is cancelled here would keep the lock for ever: it is
   * cancelled when it has come back to its program. */
  int before, problem;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  problem = deadline == UINT64_MAX
                ? pthread_cond_wait(&on->condition, &on->lock)
                : pthread_cond_timedwait(&on->condition, &on->lock, &when);
  pthread_setcancelstate(before, NULL);
  return problem != ETIMEDOUT;
}

void cbr_monitors_of_process_renew(void) {
  for (int each = 0; each < CBR_MONITOR_COUNT; each++)
    initialize(&of_process[each]);
}

void *cbr_monitor_of_process(int which) {
  pthread_once(&made, cbr_monitors_of_process_renew);
  return &of_process[which];
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite has locks of its own that are not made anew in a forked child: one
 * that another thread holds when the process forks stays locked there for
 * ever, and no new registry could open its history. So a fork waits until
 * nobody is inside SQLite on the library's behalf.
 *
 * users and is_forking are guarded by the monitor of databases, which the
 * forking thread holds from before the fork until after it.
 */
#include "CPlatform.h"
#include "internal.h"

static uint32_t users;
static bool is_forking;

/* A disk that does not answer must not hold up a fork for ever. */
static const uint64_t patience = 2000000000u;

static void *monitor(void) {
  return cbr_monitor_of_process(CBR_MONITOR_DATABASES);
}

void cbr_database_enter(void) {
  cbr_monitor_lock(monitor());
  while (is_forking) cbr_monitor_wait(monitor(), UINT64_MAX);
  users++;
  cbr_monitor_unlock(monitor());
}

void cbr_database_leave(void) {
  cbr_monitor_lock(monitor());
  users--;
  if (is_forking) cbr_monitor_wake(monitor());
  cbr_monitor_unlock(monitor());
}

void cbr_before_fork(void) {
  cbr_monitor_lock(monitor());
  while (is_forking) cbr_monitor_wait(monitor(), UINT64_MAX);
  is_forking = true;
  uint64_t deadline = cbr_monotonic_nanoseconds() + patience;
  while (users > 0 && cbr_monitor_wait(monitor(), deadline)) {}
  cbr_wakeups_before_fork();
}

void cbr_after_fork_in_parent(void) {
  cbr_wakeups_after_fork_in_parent();
  is_forking = false;
  cbr_monitor_wake(monitor());
  cbr_monitor_unlock(monitor());
}

void cbr_after_fork_in_child(void) {
  cbr_wakeups_after_fork_in_child();
  cbr_monitors_of_process_renew();
  is_forking = false;
  users = 0;
}

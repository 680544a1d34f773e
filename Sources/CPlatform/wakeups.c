/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors that a program polls: each is an epoll instance that watches an
 * event, which is set and cleared, and a timer; it is readable while one of
 * these is. A timer is so once it has run out, until it is set anew.
 *
 * A forked child must not keep those of its parent: it would be woken for what
 * is not its own, and take it away. So all are in a list, and a fork waits
 * until nobody changes it.
 *
 * first, next, and which numbers are open: guarded by `lock`, which the
 * forking thread holds from before the fork until after it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "CPlatform.h"
#include "internal.h"

struct wakeup {
  int32_t descriptor, event, timer;
  struct wakeup *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wakeup *first;

static bool watch(const struct wakeup *it, int32_t descriptor) {
  struct epoll_event readable = {.events = EPOLLIN};
  return epoll_ctl(it->descriptor, EPOLL_CTL_ADD, descriptor, &readable) == 0;
}

static bool open_descriptors(struct wakeup *it) {
  it->descriptor = epoll_create1(EPOLL_CLOEXEC);
  it->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  it->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  return it->descriptor >= 0 && it->event >= 0 && it->timer >= 0 &&
         watch(it, it->event) && watch(it, it->timer);
}

static void close_descriptors(const struct wakeup *it) {
  if (it->timer >= 0) close(it->timer);
  if (it->event >= 0) close(it->event);
  if (it->descriptor >= 0) close(it->descriptor);
}

void *cbr_wakeup_create(void) {
  struct wakeup *made = cbr_allocate(sizeof *made, _Alignof(struct wakeup));
  if (!made) return NULL;
  pthread_mutex_lock(&lock);
  bool is_open = open_descriptors(made);
  if (is_open) {
    made->next = first;
    first = made;
  } else {
    close_descriptors(made);
  }
  pthread_mutex_unlock(&lock);
  if (is_open) return made;
  cbr_release(made);
  return NULL;
}

void cbr_wakeup_destroy(void *wakeup) {
  struct wakeup *it = wakeup;
  if (!it) return;
  pthread_mutex_lock(&lock);
  struct wakeup **link = &first;
  while (*link != it) link = &(*link)->next;
  *link = it->next;
  close_descriptors(it);
  pthread_mutex_unlock(&lock);
  cbr_release(it);
}

int32_t cbr_wakeup_descriptor(const void *wakeup) {
  return ((const struct wakeup *)wakeup)->descriptor;
}

int32_t cbr_wakeup_duplicate(const void *wakeup) {
  return fcntl(cbr_wakeup_descriptor(wakeup), F_DUPFD_CLOEXEC, 0);
}

/* A counter that is as high as it can be is readable as well: that the write
 * then fails does not matter. Neither does a signal in between: the
 * descriptors do not block. */
void cbr_wakeup_set(const void *wakeup) {
  if (eventfd_write(((const struct wakeup *)wakeup)->event, 1) != 0) return;
}

void cbr_wakeup_clear(const void *wakeup) {
  eventfd_t count;
  if (eventfd_read(((const struct wakeup *)wakeup)->event, &count) != 0)
    return;
}

/* Times of zero would stop the timer: no deadline is that early. */
void cbr_wakeup_at(const void *wakeup, uint64_t deadline) {
  struct itimerspec when = {{0, 0}, {0, 0}};
  if (deadline != UINT64_MAX) {
    when.it_value.tv_sec = (time_t)(deadline / 1000000000u);
    when.it_value.tv_nsec = (long)(deadline % 1000000000u);
  }
  timerfd_settime(((const struct wakeup *)wakeup)->timer, TFD_TIMER_ABSTIME,
                  &when, NULL);
}

void cbr_wakeups_before_fork(void) { pthread_mutex_lock(&lock); }

void cbr_wakeups_after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

void cbr_wakeups_after_fork_in_child(void) {
  for (struct wakeup *each = first; each; each = each->next)
    close_descriptors(each);
  first = NULL;
  pthread_mutex_unlock(&lock);
}

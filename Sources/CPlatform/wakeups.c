/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors that a program polls. A forked child must not keep those of its
 * parent: it would be woken for what is not its own, and take it away. So all
 * are in a list, and a fork waits until nobody changes it.
 *
 * first, next, and which numbers are open: guarded by `lock`, which the
 * forking thread holds from before the fork until after it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "CPlatform.h"
#include "internal.h"

struct wakeup {
  int32_t descriptor;
  struct wakeup *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wakeup *first;

void *cbr_wakeup_create(void) {
  struct wakeup *made = cbr_allocate(sizeof *made, _Alignof(struct wakeup));
  if (!made) return NULL;
  pthread_mutex_lock(&lock);
  made->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made->descriptor >= 0) {
    made->next = first;
    first = made;
  }
  pthread_mutex_unlock(&lock);
  if (made->descriptor >= 0) return made;
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
  close(it->descriptor);
  pthread_mutex_unlock(&lock);
  cbr_release(it);
}

int32_t cbr_wakeup_descriptor(const void *wakeup) {
  return ((const struct wakeup *)wakeup)->descriptor;
}

/* A counter that is as high as it can be is readable as well: that the write
 * then fails does not matter. Neither does a signal in between: the
 * descriptors do not block. */
void cbr_wakeup_set(const void *wakeup) {
  if (eventfd_write(cbr_wakeup_descriptor(wakeup), 1) != 0) return;
}

void cbr_wakeup_clear(const void *wakeup) {
  eventfd_t count;
  if (eventfd_read(cbr_wakeup_descriptor(wakeup), &count) != 0) return;
}

void cbr_wakeups_before_fork(void) { pthread_mutex_lock(&lock); }

void cbr_wakeups_after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

void cbr_wakeups_after_fork_in_child(void) {
  for (struct wakeup *each = first; each; each = each->next)
    close(each->descriptor);
  first = NULL;
  pthread_mutex_unlock(&lock);
}

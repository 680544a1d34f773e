/* SPDX-License-Identifier: Apache-2.0
 * cc epoll.c -pthread $(pkg-config --cflags --libs callbackregistry)
 *
 * A queue in a loop of epoll. By edges it works as well: a run that leaves
 * messages makes another edge. */
#include <sys/epoll.h>
#include <unistd.h>

#include "work.h"

static void stop(void *context) { *(int *)context = 0; }

int main(void) {
  work work;
  window window = {0, 0};
  int goes_on = 1;
  begin_work(&work, &window, stop, &goes_on);

  int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  if (epoll_ctl(loop, EPOLL_CTL_ADD, cbr_queue_descriptor(work.queue),
                &event) != 0)
    return EXIT_FAILURE;
  while (goes_on) {
    /* Eight at a time, so that other events have their turn. */
    if (epoll_wait(loop, &event, 1, -1) == 1)
      must(cbr_queue_run(work.queue, 8, NULL));
  }
  close(loop);
  return end_work(&work);
}

/* SPDX-License-Identifier: Apache-2.0
 * cc libevent.c -pthread $(pkg-config --cflags --libs libevent_core \
 *   callbackregistry)
 *
 * A queue in a loop of libevent. */
#include <event2/event.h>

#include "work.h"

static void deliver(evutil_socket_t descriptor, short events, void *context) {
  work *it = context;
  (void)descriptor;
  (void)events;
  must(cbr_queue_run(it->queue, 8, NULL));
}

static void stop(void *context) { event_base_loopbreak(context); }

int main(void) {
  work work;
  window window = {0, 0};
  struct event_base *loop = event_base_new();
  begin_work(&work, &window, stop, loop);

  struct event *readable =
      event_new(loop, cbr_queue_descriptor(work.queue), EV_READ | EV_PERSIST,
                deliver, &work);
  event_add(readable, NULL);
  event_base_dispatch(loop);
  event_free(readable);
  event_base_free(loop);
  return end_work(&work);
}

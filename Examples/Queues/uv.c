/* SPDX-License-Identifier: Apache-2.0
 * cc uv.c -pthread $(pkg-config --cflags --libs libuv callbackregistry)
 *
 * A queue in a loop of libuv. Unlike uv_async_send, a queue does not merge
 * messages, unless it is told to (CBR_QUEUE_KEEP_LATEST). */
#include <uv.h>

#include "work.h"

static uv_loop_t loop;

static void deliver(uv_poll_t *poll, int status, int events) {
  work *it = poll->data;
  (void)status;
  (void)events;
  must(cbr_queue_run(it->queue, 8, NULL));
}

static void stop(void *context) { uv_close(context, NULL); }

int main(void) {
  work work;
  window window = {0, 0};
  uv_poll_t poll;
  uv_loop_init(&loop);
  begin_work(&work, &window, stop, (uv_handle_t *)&poll);

  poll.data = &work;
  uv_poll_init(&loop, &poll, cbr_queue_descriptor(work.queue));
  uv_poll_start(&poll, UV_READABLE, deliver);
  uv_run(&loop, UV_RUN_DEFAULT); /* until the last handle is closed */
  uv_loop_close(&loop);
  return end_work(&work);
}

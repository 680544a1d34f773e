/* SPDX-License-Identifier: Apache-2.0
 *
 * A timer that nobody stops when its owner dies; another one ends the loop.
 */
#include <stdio.h>
#include <uv.h>

#include "subject.h"

static int turns;

static void tick(uv_timer_t *timer) {
  if (subject_called() == 2) subject_died(timer);
}

static void turn(uv_timer_t *timer) {
  if (++turns == 20) uv_stop(timer->loop);
}

int main(void) {
  uv_timer_t ticking, turning, wrong;
  uv_loop_t *loop = uv_default_loop();
  uv_timer_init(loop, &ticking);
  uv_timer_init(loop, &turning);
  uv_timer_init(loop, &wrong);
  printf("refused %d\n", uv_timer_start(&wrong, NULL, 1, 0) == UV_EINVAL);
  uv_timer_start(&ticking, tick, 5, 5);
  uv_timer_start(&ticking, tick, 0, 1);
  uv_timer_start(&turning, turn, 0, 2);
  uv_run(loop, UV_RUN_DEFAULT);
  uv_close((uv_handle_t *)&ticking, NULL);
  uv_close((uv_handle_t *)&turning, NULL);
  uv_close((uv_handle_t *)&wrong, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  printf("closed %d\n", uv_loop_close(loop));
  return subject_tell();
}

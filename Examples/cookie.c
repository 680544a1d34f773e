/* SPDX-License-Identifier: Apache-2.0
 * cc cookie.c $(pkg-config --cflags --libs callbackregistry) */
#include <callback_registry.h>
#include <stdio.h>
#include <stdlib.h>

/* An old timer that nobody can change: a function and a void *. */
typedef int (*timer_function)(unsigned elapsed, void *user_data);
static timer_function timer_call;
static void *timer_user_data;

static void timer_set(timer_function call, void *user_data) {
  timer_call = call;
  timer_user_data = user_data;
}

/* What it calls instead: -1 tells the old code to stop. */
CBR_TRAMPOLINE(guarded_timer, int, -1, (unsigned elapsed, void *cookie),
               cookie, (elapsed, cbr_now.context))

static int tick(unsigned elapsed, void *window) {
  printf("%s after %u s\n", (const char *)window, elapsed);
  return 0;
}

int main(void) {
  cbr_registry registry;
  cbr_token token;
  if (cbr_registry_open(NULL, &registry) != CBR_OK ||
      CBR_REGISTER(registry, "tick", tick, "main window", NULL, CBR_NONE,
                   &token) != CBR_OK)
    return EXIT_FAILURE;

  timer_set(guarded_timer, cbr_cookie(token));
  int while_live = timer_call(1, timer_user_data);

  /* The window dies, and nobody tells the timer. */
  if (cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER) != CBR_OK)
    return EXIT_FAILURE;
  int too_late = timer_call(2, timer_user_data);

  return while_live == 0 && too_late == -1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the four programs beside it share: a thread that works, and posts its
 * progress to a queue; and a window, which the main loop's thread owns. The
 * program ends the window when it is half way: what waits for it then is not
 * delivered, and what the worker goes on posting is refused. */
#ifndef WORK_H
#define WORK_H

#include <callback_registry.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 100, SHOWN = 50 };

typedef struct window {
  int shown;   /* steps; touched by the main loop's thread alone */
  int is_open;
} window;

typedef struct work {
  cbr_registry registry;
  cbr_queue queue;
  cbr_token progress;
  window *window;
  pthread_t worker;
  void (*when_done)(void *context); /* ends the main loop */
  void *context;
} work;

static inline void must(cbr_status status) {
  if (status >= CBR_OK) return;
  fprintf(stderr, "%s: %s\n", cbr_status_name(status), cbr_last_error());
  exit(EXIT_FAILURE);
}

/* Runs where the queue is pumped, so it needs no lock. */
static inline void show_progress(void *context, void *payload) {
  work *it = context;
  int step = *(int *)payload;
  if (!it->window->is_open) abort(); /* cannot be */
  it->window->shown++;
  if (step + 1 < SHOWN) return;
  /* The window closes. From here on nobody calls this, whatever is queued. */
  must(cbr_invalidate(it->progress, CBR_REASON_ENDED));
  it->window->is_open = 0;
  it->when_done(it->context);
}

static inline void *do_work(void *context) {
  work *it = context;
  for (int step = 0; step < STEPS; step++) {
    int *payload = malloc(sizeof *payload);
    if (!payload) abort();
    *payload = step;
    cbr_message message = CBR_MESSAGE_INIT;
    message.payload = payload;
    message.free_payload = free; /* after delivery, or instead of it */
    if (cbr_post(it->queue, it->progress, &message) < CBR_OK) {
      free(payload); /* refused: it is still ours */
      break;
    }
  }
  return NULL;
}

static inline void begin_work(work *it, window *window,
                              void (*when_done)(void *), void *context) {
  *it = (work){.window = window, .when_done = when_done, .context = context};
  window->is_open = 1;
  must(cbr_registry_open(NULL, &it->registry));
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  options.label = "main loop";
  options.overflow = CBR_QUEUE_BLOCK; /* a worker that is too fast waits */
  options.max_items = 16;
  must(cbr_queue_create(it->registry, &options, &it->queue));
  must(CBR_REGISTER(it->registry, "progress", show_progress, it, NULL,
                    CBR_NONE, &it->progress));
  if (pthread_create(&it->worker, NULL, do_work, it) != 0) abort();
}

/* The main loop no longer polls the descriptor. */
static inline int end_work(work *it) {
  /* Posts are refused from now on; it ends when what waits has had its turn. */
  if (cbr_queue_finish(it->queue) == CBR_PENDING)
    must(cbr_queue_run(it->queue, 0, NULL));
  pthread_join(it->worker, NULL);
  must(cbr_registry_close(it->registry, CBR_FOREVER));
  printf("%d of %d steps were shown\n", it->window->shown, STEPS);
  return it->window->shown == SHOWN ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program does in its first five minutes, for valgrind to look at: a
 * history in a file, opened twice; calls, a thunk, and two threads.
 */
#include <callback_registry.h>

#include <pthread.h>
#include <stdlib.h>

static void must(cbr_status status) {
  if (status != CBR_OK) exit(EXIT_FAILURE);
}

static void count(void *context) { ++*(int *)context; }

static void *call(void *token) {
  for (int each = 0; each < 100; each++)
    CBR_CALL(cbr_from_cookie(token), void (*)(void *), (cbr_now.context));
  return NULL;
}

static void live(const char *path) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_signature signature = CBR_SIGNATURE_INIT;
  cbr_registry registry;
  cbr_token token;
  cbr_thunk thunk;
  pthread_t thread;
  options.history_path = path;
  options.level = CBR_LEVEL_CALLS;
  must(cbr_registry_open(&options, &registry));
  int *counted = calloc(1, sizeof *counted);
  must(CBR_REGISTER(registry, "counted", count, counted, free, CBR_NONE,
                    &token));
  must(cbr_thunk_create(registry, token, &signature, &thunk));
  if (pthread_create(&thread, NULL, call, cbr_cookie(token)) != 0)
    exit(EXIT_FAILURE);
  call(cbr_cookie(token));
  pthread_join(thread, NULL);
  cbr_function function = cbr_thunk_function(thunk);
  function();
  must(cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  function(); /* too late */
  must(cbr_registry_close(registry, CBR_FOREVER));
}

int main(int count, char **words) {
  if (count != 2) return EXIT_FAILURE;
  live(words[1]);
  live(words[1]);
}

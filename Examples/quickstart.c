/* SPDX-License-Identifier: Apache-2.0
 * cc quickstart.c $(pkg-config --cflags --libs callbackregistry) */
#include <callback_registry.h>
#include <stdio.h>
#include <stdlib.h>

static void greet(void *context, const char *name) {
  printf("Good morning, %s!\n", name);
  ++*(int *)context;
}

static void expect(cbr_status wanted, cbr_status status) {
  if (status == wanted) return;
  fprintf(stderr, "%s: %s\n", cbr_status_name(status), cbr_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = "quickstart.history"; /* query it with sqlite3 */
  cbr_registry registry;
  expect(CBR_OK, cbr_registry_open(&options, &registry));

  int greetings = 0;
  cbr_token token; /* a number: copy it, keep it, it never dangles */
  expect(CBR_OK, CBR_REGISTER(registry, "greeter", greet, &greetings, NULL,
                              CBR_NONE, &token));
  CBR_CALL(token, void (*)(void *, const char *), (cbr_now.context, "world"));

  /* After this, nothing is running and nothing will: freeing is safe. */
  expect(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));

  cbr_call late; /* too late: refused, and recorded */
  expect(CBR_E_STALE, cbr_enter(token, &late));
  char life[4096];
  expect(CBR_OK, cbr_explain(token, life, sizeof(life), NULL));
  fputs(life, stdout);
  expect(CBR_OK, cbr_registry_close(registry, CBR_FOREVER));
  return greetings == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: Apache-2.0
 * cc delegate.c $(pkg-config --cflags --libs callbackregistry) */
#include <callback_registry.h>
#include <stdio.h>
#include <stdlib.h>

static void expect(cbr_status wanted, cbr_status status) {
  if (status == wanted) return;
  fprintf(stderr, "%s: %s\n", cbr_status_name(status), cbr_last_error());
  exit(EXIT_FAILURE);
}

static void select_row(void *context, int row) {
  printf("%s: row %d\n", (const char *)context, row);
}

static cbr_disposition save(void *context, void *argument) {
  printf("%s is saved\n", (const char *)argument);
  ++*(int *)context;
  return CBR_CONTINUE;
}

int main(void) {
  cbr_registry registry;
  expect(CBR_OK, cbr_registry_open(NULL, &registry));

  /* A list has a delegate property. It holds nothing alive. */
  cbr_slot delegate;
  cbr_token controller;
  expect(CBR_OK, cbr_slot_create(registry, "list.delegate", CBR_NONE,
                                 &delegate));
  expect(CBR_OK, CBR_REGISTER(registry, "controller", select_row,
                              "controller", NULL, CBR_NONE, &controller));
  expect(CBR_OK, cbr_slot_set(delegate, controller));
  cbr_call call;
  expect(CBR_OK, cbr_slot_enter(delegate, NULL, 0, &call));
  ((void (*)(void *, int))call.function)(call.context, 3);
  expect(CBR_OK, cbr_leave(&call));

  /* The controller dies: the property is empty, and the list knows. */
  expect(CBR_OK, cbr_invalidate_wait(controller, CBR_REASON_ENDED,
                                     CBR_FOREVER));
  expect(CBR_EMPTY, cbr_slot_enter(delegate, NULL, 0, &call));

  /* A signal calls all handlers that are connected. */
  int saved = 0;
  cbr_signal closing;
  cbr_token handler;
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "save";
  what.function = CBR_FUNCTION_CAST_(cbr_function, save);
  what.context = &saved;
  expect(CBR_OK, cbr_signal_create(registry, "closing", CBR_NONE, &closing));
  expect(CBR_OK, cbr_connect(closing, &what, NULL, &handler));
  expect(CBR_OK, cbr_emit(closing, (void *)"letter.txt", NULL));
  expect(CBR_OK, cbr_invalidate_wait(handler, CBR_REASON_ENDED, CBR_FOREVER));
  expect(CBR_OK, cbr_emit(closing, (void *)"letter.txt", NULL));

  expect(CBR_OK, cbr_registry_close(registry, CBR_FOREVER));
  return saved == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

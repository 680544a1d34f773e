/* SPDX-License-Identifier: Apache-2.0
 * cc session.c $(pkg-config --cflags --libs callbackregistry) */
#include <callback_registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(cbr_status wanted, cbr_status status) {
  if (status == wanted) return;
  fprintf(stderr, "%s: %s\n", cbr_status_name(status), cbr_last_error());
  exit(EXIT_FAILURE);
}

/* What is told waits for the answer, which may come later, from any thread. */
static void did_receive_response(void *context, cbr_task task,
                                 const void *response, size_t size,
                                 cbr_reply reply) {
  (void)context, (void)task;
  bool is_good = size == 2 && memcmp(response, "OK", 2) == 0;
  expect(CBR_OK, cbr_reply_send(reply, is_good ? CBR_ALLOW : CBR_CANCEL,
                                CBR_NONE));
}

static void did_receive_data(void *context, cbr_task task, const void *bytes,
                             size_t size) {
  (void)context, (void)task;
  printf("%.*s", (int)size, (const char *)bytes);
}

/* Once for each task, after all else of it. */
static void did_complete(void *context, cbr_task task, int error) {
  (void)task;
  *(int *)context += error == 0 ? 1 : 100;
}

/* Once, after the last did_complete: nothing uses the delegate any more. */
static void did_become_invalid(void *context, cbr_session session,
                               cbr_reason reason) {
  (void)session;
  *(int *)context += reason == CBR_REASON_ENDED ? 1000 : 0;
}

int main(void) {
  cbr_registry registry;
  expect(CBR_OK, cbr_registry_open(NULL, &registry));

  int told = 0;
  const cbr_function methods[CBR_SESSION_METHODS] = {
      CBR_FUNCTION_CAST_(cbr_function, did_receive_response),
      CBR_FUNCTION_CAST_(cbr_function, did_receive_data),
      CBR_FUNCTION_CAST_(cbr_function, did_complete),
      CBR_FUNCTION_CAST_(cbr_function, did_become_invalid)};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "reader";
  what.interface = cbr_session_interface();
  what.methods = methods;
  what.context = &told;
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  options.label = "pages";
  expect(CBR_OK, cbr_register(registry, &what, &options.delegate));
  cbr_session session;
  expect(CBR_OK, cbr_session_create(registry, &options, &session));

  /* The work says what happens; the delegate is told. */
  cbr_task good, bad;
  expect(CBR_OK, cbr_task_begin(session, NULL, &good));
  expect(CBR_OK, cbr_task_respond(good, "OK", 2));
  expect(CBR_OK, cbr_task_data(good, "Good morning!\n", 14));
  expect(CBR_OK, cbr_task_complete(good, 0));
  expect(CBR_OK, cbr_task_begin(session, NULL, &bad));
  expect(CBR_OK, cbr_task_respond(bad, "no", 2)); /* is cancelled */
  expect(CBR_OK, cbr_session_finish(session));

  expect(CBR_OK, cbr_registry_close(registry, CBR_FOREVER));
  return told == 1101 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What cbr_explain tells of each kind of handle beside its life (D17).
 */
#include "messages.h"

static cbr_registry registry;

static void expect_words(cbr_handle handle, const char *words) {
  char text[2048];
  EXPECT(CBR_OK, cbr_explain(handle, text, sizeof text, NULL));
  CHECK(strstr(text, words) != NULL);
  if (!strstr(text, words)) fprintf(stderr, "no \"%s\" in:\n%s", words, text);
}

static void nothing(void *context, void *argument) {
  (void)context;
  (void)argument;
}

static void D17_aQueueTellsItsMessages(void) {
  static receiver it;
  payload payloads[3] = {{0}};
  registry = open_registry("queues", CBR_LEVEL_CALLS);
  cbr_queue queue = add_queue(registry, CBR_QUEUE_PUMPED, CBR_QUEUE_FAIL, 8);
  add_receiver(registry, &it, 0, CBR_NONE);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, post(queue, it.token, &payloads[each]));
  expect_words(queue, "messages waiting: 3 of ");
  expect_words(queue, "posted: 3; delivered: 0; posters that wait: 0\n");
  EXPECT(CBR_OK, cbr_queue_run(queue, 1, NULL));
  expect_words(queue, "messages waiting: 2 of ");
  expect_words(queue, "posted: 3; delivered: 1");
  close_registry(registry);
}

static void D17_aSignalTellsItsConnections(void) {
  cbr_signal signal = CBR_NONE;
  cbr_token token = CBR_NONE;
  cbr_registration what = CBR_REGISTRATION_INIT;
  registry = open_registry("signals", CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, cbr_signal_create(registry, "changed", CBR_NONE, &signal));
  expect_words(signal, "connections: 0\n");
  what.function = (cbr_function)(uintptr_t)nothing;
  EXPECT(CBR_OK, cbr_connect(signal, &what, NULL, &token));
  expect_words(signal, "connections: 1\n");
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  expect_words(signal, "connections: 0\n");
  close_registry(registry);
}

static void D17_aSlotTellsWhatItHolds(void) {
  struct counted context = {0};
  cbr_slot slot = CBR_NONE;
  char text[2048], words[64];
  registry = open_registry("slots", CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, cbr_slot_create(registry, "delegate", CBR_NONE, &slot));
  EXPECT(CBR_OK, cbr_explain(slot, text, sizeof text, NULL));
  CHECK(strstr(text, "holds") == NULL);
  cbr_token token = add(registry, "controller", &context, true, CBR_NONE);
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  snprintf(words, sizeof words, "holds token 0x%016llx \"controller\"\n",
           (unsigned long long)token);
  expect_words(slot, words);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_explain(slot, text, sizeof text, NULL));
  CHECK(strstr(text, "holds") == NULL);
  close_registry(registry);
}

static void done(void *context, cbr_task task, int error) {
  (void)context;
  (void)task;
  (void)error;
}

static void D17_aSessionAndATaskTellTheirDelegate(void) {
  const cbr_function methods[] = {NULL, NULL, (cbr_function)(uintptr_t)done,
                                  NULL, NULL};
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_task_options of_task = CBR_TASK_OPTIONS_INIT;
  cbr_session session = CBR_NONE;
  cbr_task task = CBR_NONE;
  registry = open_registry("sessions", CBR_LEVEL_CALLS);
  what.label = "downloader";
  what.interface = cbr_session_interface();
  what.methods = methods;
  EXPECT(CBR_OK, cbr_register(registry, &what, &options.delegate));
  EXPECT(CBR_OK, cbr_session_create(registry, &options, &session));
  EXPECT(CBR_OK, cbr_task_begin(session, &of_task, &task));
  expect_words(session, "\"downloader\"\n");
  expect_words(session, "holds token ");
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EXPECT(CBR_OK, cbr_session_finish(session));
  close_registry(registry);
}

int main(void) {
  TEST(D17_aQueueTellsItsMessages);
  TEST(D17_aSignalTellsItsConnections);
  TEST(D17_aSlotTellsWhatItHolds);
  TEST(D17_aSessionAndATaskTellTheirDelegate);
  return finish();
}

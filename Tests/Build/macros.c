/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses each macro of the header, for the compilers' warnings. It is compiled
 * as C, as C++, and through callback_registry.hpp; it is never run. */
#include <callback_registry.h>

int use_every_macro(void);

static int add(void *context, int number) {
  (void)context;
  return number;
}

static cbr_disposition visit(void *context, const cbr_item *item) {
  (void)context;
  return item->owner == CBR_NONE ? CBR_CONTINUE : CBR_STOP;
}

static cbr_disposition hear(void *context, void *argument) {
  (void)context;
  return argument == NULL ? CBR_CONTINUE : CBR_STOP;
}

struct pair {
  int first, second;
};

CBR_TRAMPOLINE(add_later, int, -1, (void *cookie, int number), cookie,
               (cbr_now.context, number))
CBR_TRAMPOLINE_VOID(tell_later, (const struct pair *what, void *cookie),
                    cookie, (what, cbr_now.context))

int use_every_macro(void) {
  cbr_registry registry = CBR_NONE;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  if (cbr_registry_open(&options, &registry) != CBR_OK) return -1;

  cbr_token token;
  if (CBR_REGISTER(registry, "add", add, NULL, NULL, CBR_NONE, &token) !=
      CBR_OK)
    return -1;
  int result = 0;
  CBR_CALL(token, int (*)(void *, int), (cbr_now.context, 1));
  if (result == 0)
    CBR_CALL_RESULT(result, token, int (*)(void *, int),
                    (cbr_now.context, 2));

  CBR_SCOPED_OWNER(owner, registry, "scope");
  if (owner == CBR_NONE) return -1;

  result += add_later(cbr_cookie(token), 3);
  struct pair pair = {1, 2};
  tell_later(&pair, cbr_cookie(CBR_NONE));

  cbr_registration registration = CBR_REGISTRATION_INIT;
  registration.function = CBR_FUNCTION_CAST_(cbr_function, add);
  if (cbr_register(registry, &registration, &token) != CBR_OK) return -1;
  cbr_call call = CBR_CALL_INIT;
  if (cbr_enter(token, &call) == CBR_OK) (void)cbr_leave(&call);

  cbr_signal signal = CBR_NONE;
  if (cbr_signal_create(registry, "signal", CBR_NONE, &signal) != CBR_OK)
    return -1;
  cbr_connection_options first = CBR_CONNECTION_OPTIONS_INIT;
  first.priority = 1;
  registration.function = CBR_FUNCTION_CAST_(cbr_function, hear);
  if (cbr_connect(signal, &registration, &first, &token) != CBR_OK) return -1;
  cbr_emission emission = CBR_EMISSION_INIT;
  (void)cbr_emit(signal, NULL, &emission);

  cbr_signature signature = CBR_SIGNATURE_INIT;
  signature.result.kind = CBR_TYPE_LONG;
  cbr_thunk thunk;
  if (cbr_thunk_create(registry, token, &signature, &thunk) != CBR_OK)
    return -1;

  cbr_session_options session_options = CBR_SESSION_OPTIONS_INIT;
  session_options.delegate = token;
  cbr_session session;
  if (cbr_session_create(registry, &session_options, &session) != CBR_OK)
    return -1;
  cbr_task_options task_options = CBR_TASK_OPTIONS_INIT;
  task_options.flags = CBR_TASK_GATHER;
  task_options.unanswered = CBR_ALLOW;
  cbr_task task;
  if (cbr_task_begin(session, &task_options, &task) != CBR_OK) return -1;
  (void)cbr_task_cancel(task);
  (void)cbr_session_cancel(session);

  cbr_queue_options queue_options = CBR_QUEUE_OPTIONS_INIT;
  queue_options.kind = CBR_QUEUE_PUMPED;
  cbr_queue queue;
  if (cbr_queue_create(registry, &queue_options, &queue) != CBR_OK) return -1;
  cbr_message message = CBR_MESSAGE_INIT;
  (void)cbr_post(queue, token, &message);
  (void)cbr_queue_run(queue, 0, NULL);
  cbr_queue_counts counts = CBR_QUEUE_COUNTS_INIT;
  (void)cbr_queue_statistics(queue, &counts);

  cbr_statistics statistics = CBR_STATISTICS_INIT;
  (void)cbr_registry_statistics(registry, &statistics);
  (void)cbr_registry_each_live(registry, visit, NULL);
  (void)cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER);
  (void)cbr_registry_close(registry, CBR_FOREVER);
  return result;
}

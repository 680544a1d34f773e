/* SPDX-License-Identifier: Apache-2.0 */
#include "interchange.h"

/* The signature of a callback that Swift can call, and that calls Swift. */
typedef cbr_status (*interchange_function)(void *context, const void *input,
                                           void *output);

cbr_status interchange_call(cbr_token token, uint64_t type_tag,
                            const void *input, void *output) {
  cbr_call call = CBR_CALL_INIT;
  cbr_status status = cbr_enter_typed(token, type_tag, &call);
  if (status != CBR_OK) return status;
  status = ((interchange_function)call.function)(call.context, input, output);
  cbr_leave(&call);
  return status;
}

static cbr_status weigh(void *context, const void *input, void *output) {
  struct interchange_seen *seen = context;
  seen->point = *(const struct interchange_point *)input;
  seen->calls++;
  *(double *)output = seen->point.x * seen->point.weight;
  return CBR_OK;
}

static void forget(void *context) {
  ((struct interchange_seen *)context)->destroyed++;
}

cbr_status interchange_register(cbr_registry registry, uint64_t type_tag,
                                struct interchange_seen *seen,
                                cbr_token *out) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "weigh";
  what.function = (cbr_function)weigh;
  what.context = seen;
  what.destroy = forget;
  what.type_tag = type_tag;
  return cbr_register(registry, &what, out);
}

static cbr_status answer(void *context, const void *input, void *output) {
  (void)input;
  (void)output;
  return (cbr_status)(intptr_t)context;
}

cbr_status interchange_register_answer(cbr_registry registry,
                                       uint64_t type_tag, int value,
                                       cbr_token *out) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "answer";
  what.function = (cbr_function)answer;
  what.context = (void *)(intptr_t)value;
  what.type_tag = type_tag;
  return cbr_register(registry, &what, out);
}

static void untagged(void *context) { (void)context; }

cbr_status interchange_register_untagged(cbr_registry registry,
                                         cbr_token *out) {
  return CBR_REGISTER(registry, "untagged", untagged, NULL, NULL, CBR_NONE,
                      out);
}

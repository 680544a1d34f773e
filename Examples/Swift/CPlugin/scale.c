// SPDX-License-Identifier: Apache-2.0
//
// A plug-in in C. Its code is gone once it has been unloaded: a call that came
// later would end the process.
#include <callback_registry.h>
#include <stdlib.h>

// What Token<Double, Double> of the host calls.
static cbr_status scale(void *context, const void *input, void *output) {
  *(double *)output = *(const double *)input * *(double *)context;
  return CBR_OK;
}

// What the host looks up and calls once; returns a token, 0 on failure. The
// tag stands for the types of input and output.
cbr_token plugin_start(cbr_registry registry, cbr_owner owner,
                       uint64_t type_tag) {
  double *factor = malloc(sizeof *factor);
  cbr_token token = CBR_NONE;
  cbr_registration what = CBR_REGISTRATION_INIT;
  if (!factor) return CBR_NONE;
  *factor = 3;
  what.label = "scale (C)";
  what.function = (cbr_function)scale;
  what.context = factor;
  what.destroy = free;
  what.owner = owner;
  what.type_tag = type_tag;
  if (cbr_register(registry, &what, &token)) free(factor);
  return token;
}

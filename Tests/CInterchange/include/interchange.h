/* SPDX-License-Identifier: Apache-2.0
 *
 * The C side of the tests of callbacks that pass between C and Swift. */
#ifndef INTERCHANGE_H
#define INTERCHANGE_H

#include "callback_registry.h"

struct interchange_point {
  double x;
  int32_t weight;
};

/* Enters a token by its tag, calls it, and leaves it. The status of entering,
 * or what the function answered. */
cbr_status interchange_call(cbr_token token, uint64_t type_tag,
                            const void *input, void *output);

/* What the registered functions were called with, and how often each context
 * was destroyed. */
struct interchange_seen {
  struct interchange_point point;
  int calls;
  int destroyed;
};

/* Registers a C function from struct interchange_point to double: x * weight,
 * noted in `seen`. */
cbr_status interchange_register(cbr_registry registry, uint64_t type_tag,
                                struct interchange_seen *seen,
                                cbr_token *out);

/* Registers a C function from and to nothing that answers `answer`. */
cbr_status interchange_register_answer(cbr_registry registry,
                                       uint64_t type_tag, int answer,
                                       cbr_token *out);

/* Registers a C function of its own signature, without a tag. */
cbr_status interchange_register_untagged(cbr_registry registry,
                                         cbr_token *out);

#endif

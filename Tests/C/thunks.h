/* SPDX-License-Identifier: Apache-2.0
 *
 * Thunks of a test: their signatures in few words, and their functions. */
#ifndef THUNKS_H
#define THUNKS_H

#include "history.h"

#define SCALAR(kind) { (kind), 0, NULL }
#define STRUCT(fields) \
  { CBR_TYPE_STRUCT, sizeof(fields) / sizeof *(fields), (fields) }
#define COUNT(list) (sizeof(list) / sizeof *(list))

static inline cbr_signature signature_of(cbr_type result,
                                         const cbr_type *arguments,
                                         size_t count, int32_t context) {
  cbr_signature signature = CBR_SIGNATURE_INIT;
  signature.result = result;
  signature.arguments = arguments;
  signature.count = (uint32_t)count;
  signature.context = context;
  return signature;
}

/* Makes a thunk of a token. */
static inline cbr_thunk make_thunk(cbr_registry registry, cbr_token token,
                                   const cbr_signature *signature) {
  cbr_thunk thunk = CBR_NONE;
  EXPECT(CBR_OK, cbr_thunk_create(registry, token, signature, &thunk));
  CHECK(cbr_thunk_function(thunk) != NULL);
  return thunk;
}

/* Calls a void (*)(void), as which the thunk of count_call is made here. */
static inline cbr_thunk make_plain_thunk(cbr_registry registry,
                                         cbr_token token) {
  cbr_signature signature = CBR_SIGNATURE_INIT;
  return make_thunk(registry, token, &signature);
}

static inline void end_now(cbr_handle handle) {
  EXPECT(CBR_OK, cbr_invalidate_wait(handle, CBR_REASON_ENDED, CBR_FOREVER));
}

#endif

// SPDX-License-Identifier: Apache-2.0
//
// The few lines that every benchmark of the library needs.
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include <callback_registry.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static inline void ours_must(cbr_status status, const char *what) {
  if (status >= CBR_OK) return;
  fprintf(stderr, "%s: %s\n", what, cbr_last_error());
  exit(1);
}

static inline cbr_registry ours_open(const char *label, uint32_t level) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  cbr_registry registry;
  options.label = label;
  options.level = level;
  ours_must(cbr_registry_open(&options, &registry), label);
  return registry;
}

static inline cbr_token ours_register(cbr_registry registry, cbr_owner owner,
                                      cbr_destroy destroy) {
  cbr_token token;
  ours_must(CBR_REGISTER(registry, "benchmark", bench_work, &bench_context,
                         destroy, owner, &token), "cbr_register");
  return token;
}

static inline void ours_end(cbr_handle handle) {
  ours_must(cbr_invalidate(handle, CBR_REASON_ENDED), "cbr_invalidate");
}

static inline void ours_call(cbr_token token, uint64_t count) {
  while (count--) {
    cbr_call call;
    ours_must(cbr_enter(token, &call), "cbr_enter");
    ((void (*)(void *))call.function)(call.context);
    cbr_leave(&call);
  }
}

static inline cbr_statistics ours_statistics(cbr_registry registry) {
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  ours_must(cbr_registry_statistics(registry, &statistics), "statistics");
  return statistics;
}

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Twenty thousand guarded calls, for which a ring has room, under a tool that
// counts instructions.
//
//   profile LEVEL     off, lifecycle or calls
#include <callback_registry.h>
#include <stdlib.h>
#include <string.h>

static void nothing(void *context) { (void)context; }

static void must(cbr_status status) {
  if (status < CBR_OK) abort();
}

int main(int count, char **arguments) {
  enum { calls = 20000 };
  const char *level = count > 1 ? arguments[1] : "off";
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.level = strcmp(level, "calls") == 0 ? CBR_LEVEL_CALLS
                  : strcmp(level, "lifecycle") == 0 ? CBR_LEVEL_LIFECYCLE
                                                    : CBR_LEVEL_OFF;
  cbr_registry registry;
  cbr_token token;
  must(cbr_registry_open(&options, &registry));
  must(CBR_REGISTER(registry, "profile", nothing, NULL, NULL, CBR_NONE,
                    &token));
  for (int each = 0; each < calls; each++) {
    cbr_call call;
    must(cbr_enter(token, &call));
    ((void (*)(void *))call.function)(call.context);
    must(cbr_leave(&call));
    if (!cbr_is_live(token)) abort();
  }
  must(cbr_invalidate(token, CBR_REASON_ENDED));
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in: its callback, and the memory that this uses, go when it is
 * unloaded.
 */
#include <callback_registry.h>

static volatile int work[1000];

cbr_status plugin_start(cbr_owner owner, cbr_registry registry,
                        cbr_token *out);

static void on_event(void *context) {
  int each;
  for (each = 0; each < 1000; each++) work[each] += each;
  __atomic_add_fetch((int *)context, 1, __ATOMIC_RELAXED);
}

static int calls;

cbr_status plugin_start(cbr_owner owner, cbr_registry registry,
                        cbr_token *out) {
  return CBR_REGISTER(registry, "plug-in", on_event, &calls, NULL, owner, out);
}

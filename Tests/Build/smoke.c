/* SPDX-License-Identifier: Apache-2.0 */
#include <callback_registry.h>
#include <string.h>

int main(void) {
  cbr_call call;
  if (strcmp(cbr_status_name(CBR_OK), "CBR_OK") != 0) return 1;
  if (cbr_is_live(0)) return 2;
  if (cbr_enter(0, &call) == CBR_OK) return 3;
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The interfaces that are the library's own: constant, and laid out like
 * cbr_interface and cbr_method.
 */
#include "CPlatform.h"

enum { REQUIRED = 1, HAS_DEFAULT = 2 };

static const struct {
  const char *name;
  uint32_t flags;
  int32_t default_disposition;
} session_methods[] = {
    {"did_receive_response", HAS_DEFAULT, CBR_DISPOSITION_ALLOW},
    {"did_receive_data", 0, 0},
    {"did_complete", REQUIRED, 0},
    {"did_become_invalid", 0, 0},
    {"did_hand_over", 0, 0},
};

static const struct {
  size_t size;
  const char *name;
  uint32_t version, count;
  const void *methods;
} session_interface = {
    sizeof session_interface, "cbr_session_delegate", 1,
    sizeof session_methods / sizeof *session_methods, session_methods};

const void *cbr_platform_session_interface(void) {
  return &session_interface;
}

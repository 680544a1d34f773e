/* SPDX-License-Identifier: Apache-2.0
 *
 * The asymmetric fence, after membarrier(2): "MEMBARRIER_CMD_PRIVATE_EXPEDITED
 * ... all its running threads siblings have passed through a state where all
 * memory accesses to user-space addresses match program order between entry
 * to and return from the system call". Registration is needed once a process
 * and is inherited through fork, but not through exec.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CPlatform.h"
#include "internal.h"

int cbr_platform_asymmetric;

static long membarrier(int command) {
#ifdef CBR_TEST_HOOKS
  if (cbr_test_membarrier_error != 0) {
    errno = cbr_test_membarrier_error;
    return -1;
  }
#endif
  return syscall(SYS_membarrier, command, 0, 0);
}

void cbr_fences_prepare(void) {
  const char *forced = getenv("CBR_FORCE_FALLBACK");
  if (forced && *forced && strcmp(forced, "0") != 0) return;
  long commands = membarrier(MEMBARRIER_CMD_QUERY);
  if (commands < 0 || !(commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0) return;
  /* A sandbox may refuse the command itself: probe it. */
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) return;
  cbr_platform_asymmetric = 1;
}

void cbr_heavy_fence(void) {
  cbr_full_fence();
  if (!cbr_platform_asymmetric) return;
  /* Once it has worked it can only be taken away by a filter that the host
   * installs later. Readers rely on it, so going on would be unsafe. */
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
    static const char text[] =
        "callbackregistry: membarrier was taken away while in use; set "
        "CBR_FORCE_FALLBACK=1 before installing such a filter\n";
    cbr_print_error(text, sizeof text - 1);
    abort();
  }
}

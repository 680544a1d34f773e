/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as what the command cbr is given: words, tokens, histories. */
#include <stddef.h>
#include <stdint.h>

void fuzz_command(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  fuzz_command(bytes, count);
  return 0;
}

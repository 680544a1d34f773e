/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as a file of rings that a process has left. With "--damage" it damages
 * a whole one in every place instead, and prints how many tests passed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void fuzz_rings(const uint8_t *bytes, size_t count);
int fuzz_damage(void);

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  if (*count == 2 && strcmp((*arguments)[1], "--damage") == 0)
    exit(fuzz_damage());
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  fuzz_rings(bytes, count);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (RFC 3720, appendix B.4: polynomial 0x1edc6f41, reflected), as the
 * instruction of SSE 4.2 computes it.
 */
#include "CPlatform.h"
#include "internal.h"

int cbr_platform_has_check_instruction;

#if defined(__x86_64__)
#include <cpuid.h>

void cbr_checks_prepare(void) {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  cbr_platform_has_check_instruction =
      __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) != 0;
}
#else
void cbr_checks_prepare(void) {}
#endif

uint32_t cbr_check_by_bits(uint32_t sum, uint64_t word) {
  for (int byte = 0; byte < 8; byte++) {
    sum ^= (uint8_t)(word >> (8 * byte));
    for (int bit = 0; bit < 8; bit++)
      sum = sum >> 1 ^ (0x82f63b78u & (0u - (sum & 1)));
  }
  return sum;
}

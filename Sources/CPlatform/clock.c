/* SPDX-License-Identifier: Apache-2.0
 *
 * The counter is used where the kernel itself keeps time with it: then it is
 * constant, does not stop, and agrees between processors.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "CPlatform.h"
#include "internal.h"

int cbr_platform_counter_is_trusted;

static uint64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t cbr_monotonic_nanoseconds(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t cbr_realtime_nanoseconds(void) { return read_clock(CLOCK_REALTIME); }

void cbr_clock_prepare(void) {
#if defined(__x86_64__)
  char name[8];
  cbr_read_line("/sys/devices/system/clocksource/clocksource0/"
                "current_clocksource", name, sizeof name);
  cbr_platform_counter_is_trusted = strncmp(name, "tsc", 3) == 0;
#endif
}

void cbr_pause(uint64_t nanoseconds) {
  struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                          .tv_nsec = (long)(nanoseconds % 1000000000u)};
  nanosleep(&time, NULL);
}

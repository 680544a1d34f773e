// SPDX-License-Identifier: Apache-2.0
//
// Memory for one live registration, at a million that share a label.
#include <unistd.h>

#include "ours.h"

enum { many = 1000000 };

static double resident_bytes(void) {
  unsigned long total, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%lu %lu", &total, &resident) != 2) exit(1);
  fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  cbr_registry registry = ours_open("silent", CBR_LEVEL_OFF);
  for (int i = 0; i < 1000; i++) ours_register(registry, CBR_NONE, NULL);
  double before = resident_bytes();
  for (int i = 0; i < many; i++) ours_register(registry, CBR_NONE, NULL);
  double after = resident_bytes();
  cbr_statistics statistics = ours_statistics(registry);
  bench_value("memory resident", (after - before) / many);
  bench_value("memory by statistics",
              (double)statistics.memory_bytes / (double)(many + 1000));
  bench_value("memory of a slot",
              (double)statistics.memory_bytes / (double)statistics.slots);
}

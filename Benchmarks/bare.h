// SPDX-License-Identifier: Apache-2.0
//
// What SQLite alone can do: rows as the library's writer inserts them, into a
// table of the same form, and nothing else.
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stdint.h>

typedef struct bare_cost {
  double seconds;      // by the clock
  double cpu_seconds;  // of the thread that writes
} bare_cost;

// Inserts so many rows into a new database, on the calling thread.
bare_cost bare_insert(const char *path, uint64_t rows);

#endif

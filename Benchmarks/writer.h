// SPDX-License-Identifier: Apache-2.0
//
// The thread of the library that writes a history, seen from outside.
#ifndef BENCH_WRITER_H
#define BENCH_WRITER_H

#include <sys/types.h>

// Finds it; there must be one.
pid_t writer_find(void);

// The processor time that a thread of this process has used, in seconds.
double writer_cpu_seconds(pid_t thread);

#endif

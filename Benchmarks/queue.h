// SPDX-License-Identifier: Apache-2.0
//
// Messages from one thread to another: what a peer gives to be measured
// beside ours.
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include "harness.h"

#ifdef __cplusplus
extern "C" {
#endif

// How many messages the other thread has received.
uint64_t queue_received(void);

// Does bench_work, as what a message calls does, and counts it.
void queue_receive(void);

// Waits until so many messages have been received since `before`.
void queue_await(uint64_t before, uint64_t count);

// Adds a case of many messages at once: where they are few, it is measured how
// long a thread takes to wake.
void queue_add_sustained(const char *name, bench_run run);

// Adds a peer's cases: sustained, and one by one.
void peer_queue(void);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
//
// What a peer that records events has: it measures its cases by
// spread_measure, in the group "peer events", and may write into a folder.
#ifndef BENCH_EVENTS_H
#define BENCH_EVENTS_H

#include "../spread.h"

#ifdef __cplusplus
extern "C"
#endif
void peer_events(const char *folder);

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Histories in files of their own, filled with as many calls as one wants,
// each with a row: whoever calls waits while many of them are not written, so
// that the rings never run full and the writer always finds some.
#ifndef BENCH_FEED_H
#define BENCH_FEED_H

#include "ours.h"

enum { feed_path_bytes = 512 };

// A folder for histories, in the folder that BENCH_FOLDER names.
typedef struct feed_folder {
  char path[feed_path_bytes];
} feed_folder;

feed_folder feed_make_folder(const char *parent);  // NULL: BENCH_FOLDER
void feed_remove_folder(const feed_folder *folder);
void feed_name(const feed_folder *folder, const char *name, char *path);

typedef struct feed {
  cbr_registry registry;
  cbr_token token;
} feed;

// Options of a history that records each call.
cbr_registry_options feed_options(const char *path);
feed feed_open(const cbr_registry_options *options);
void feed_calls(const feed *to, uint64_t count);
void feed_flush(const feed *to);
void feed_close(const feed *to);

// Seconds of the monotonic clock.
double feed_seconds(void);

// How much of everything: quick in a first impression, else normal.
uint64_t feed_amount(uint64_t quick, uint64_t normal);

#endif

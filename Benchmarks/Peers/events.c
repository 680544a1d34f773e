// SPDX-License-Identifier: Apache-2.0
//
// Runs one peer that records events beside a call of ours that is recorded
// and timed. It is linked with the file of the peer.
#include "../feed.h"
#include "events.h"

static feed recorded;
static cbr_token tokens[2];

static void run_ours(uint64_t count, unsigned thread) {
  ours_call(tokens[thread], count);
}

static void flush(void) { feed_flush(&recorded); }

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  char path[feed_path_bytes];
  feed_folder folder = feed_make_folder(NULL);
  feed_name(&folder, "history", path);
  cbr_registry_options options = feed_options(path);
  recorded = feed_open(&options);
  tokens[0] = recorded.token;
  tokens[1] = ours_register(recorded.registry, CBR_NONE, NULL);
  spread_case ours = {.group = "peer events",
                      .name = "ours, a call with begin and end",
                      .run = run_ours, .after = flush};
  spread_measure(&ours);
  peer_events(folder.path);
  feed_close(&recorded);
  feed_remove_folder(&folder);
}

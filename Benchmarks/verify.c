// SPDX-License-Identifier: Apache-2.0
//
// How fast a history is verified: by the command cbr, and by verify.sql in
// the stock shell. Both are processes of their own, timed from start to end;
// the history was written just before, so that its file is in memory.
#include <string.h>

#include "feed.h"

static const char group[] = "verify";

static void fill(const char *path, uint64_t rows) {
  cbr_registry_options options = feed_options(path);
  feed to = feed_open(&options);
  feed_calls(&to, rows);
  feed_close(&to);
}

// Runs a command and gives the line that says "intact"; "" without one. The
// time is in seconds.
static double run(const char *command, char *line, size_t size) {
  char read[512];
  line[0] = 0;
  double began = feed_seconds();
  FILE *output = popen(command, "r");
  if (!output) abort();
  while (fgets(read, sizeof read, output))
    if (!strncmp(read, "intact", 6)) snprintf(line, size, "%s", read);
  pclose(output);
  char *end = strstr(line, ", head");
  if (end) *end = 0;
  return feed_seconds() - began;
}

static void measure(const char *name, const char *command, uint64_t rows) {
  char line[512], key[64];
  double time = run(command, line, sizeof line);
  if (!line[0]) {
    bench_note(group, "%s: not measured, since it does not say \"intact\".",
               name);
    return;
  }
  snprintf(key, sizeof key, "verify by %s", name);
  bench_value(key, (double)rows / time);
  bench_note(group, "%s: %s.", name, line);
}

// What an environment variable names; "" when that is not there.
static const char *tool(const char *variable) {
  const char *path = getenv(variable);
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) {
    bench_note(group, "%s skipped: it names no file.", variable);
    return "";
  }
  fclose(file);
  return path;
}

void bench_program(int count, char **arguments) {
  (void)count, (void)arguments;
  uint64_t rows = feed_amount(500000, 2000000);
  char path[feed_path_bytes], command[3 * feed_path_bytes];
  feed_folder folder = feed_make_folder(NULL);
  feed_name(&folder, "history", path);
  fill(path, rows);
  const char *cbr = tool("BENCH_CBR"), *sql = tool("BENCH_VERIFY_SQL");
  snprintf(command, sizeof command, "'%s' verify '%s'", cbr, path);
  if (cbr[0]) measure("cbr verify", command, rows);
  snprintf(command, sizeof command, "sqlite3 -readonly '%s' < '%s'", path,
           sql);
  if (sql[0]) measure("verify.sql", command, rows);
  feed_remove_folder(&folder);
}

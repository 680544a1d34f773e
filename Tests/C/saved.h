/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as they were, to be put back: a history, and the rings that a dead
 * process has left beside it.
 */
#ifndef SAVED_H
#define SAVED_H

#include "history.h"

#include <sys/stat.h>

typedef struct saved {
  char path[384];
  char *bytes; /* NULL: there is no such file */
  size_t size;
} saved;

static inline saved save(const char *path) {
  saved it = {0};
  FILE *file = fopen(path, "rb");
  snprintf(it.path, sizeof it.path, "%s", path);
  if (!file) return it;
  fseek(file, 0, SEEK_END);
  it.size = (size_t)ftell(file);
  it.bytes = malloc(it.size + 1);
  rewind(file);
  EQUAL(it.size, fread(it.bytes, 1, it.size, file));
  fclose(file);
  return it;
}

/* Puts back as many bytes of a file. */
static inline void restore(const saved *it, size_t size) {
  if (!it->bytes) return;
  FILE *file = fopen(it->path, "wb");
  if (!CHECK(file != NULL)) return;
  EQUAL(size, fwrite(it->bytes, 1, size, file));
  fclose(file);
}

/* The only file of rings that there is. */
static inline saved save_rings(const history *it) {
  char directory[96], path[384] = "";
  snprintf(directory, sizeof directory, "%s.rings", it->path);
  DIR *listing = opendir(directory);
  for (struct dirent *each; listing && (each = readdir(listing));)
    if (strstr(each->d_name, ".ring"))
      snprintf(path, sizeof path, "%s/%s", directory, each->d_name);
  if (listing) closedir(listing);
  return save(path);
}

/* All that a dead process has left. */
typedef struct remains {
  saved database, log, rings;
} remains;

static inline remains save_remains(const history *it) {
  char path[96];
  snprintf(path, sizeof path, "%s-wal", it->path);
  return (remains){save(it->path), save(path), save_rings(it)};
}

/* Puts all back, and of the rings as many bytes. */
static inline void restore_remains(const history *it, const remains *what,
                                   size_t size) {
  char path[96];
  snprintf(path, sizeof path, "%s.rings", it->path);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s-shm", it->path);
  unlink(path);
  snprintf(path, sizeof path, "%s-wal", it->path);
  unlink(path);
  restore(&what->database, what->database.size);
  restore(&what->log, what->log.size);
  restore(&what->rings, size);
}

static inline void forget_remains(remains *what) {
  free(what->database.bytes);
  free(what->log.bytes);
  free(what->rings.bytes);
}

#endif

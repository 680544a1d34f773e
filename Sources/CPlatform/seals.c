/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files with a secret: made once, overwritten in place, never followed
 * to where a link points.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CPlatform.h"

bool cbr_secret_make(void *memory, size_t bytes) {
  /* Up to 256 bytes come at once, or not at all. */
  ssize_t count;
  do count = getrandom(memory, bytes, 0);
  while (count < 0 && errno == EINTR);
  return count == (ssize_t)bytes;
}

void cbr_secret_wipe(void *memory, size_t bytes) {
  explicit_bzero(memory, bytes);
}

int32_t cbr_secret_open(const char *path) {
  int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno == ENOENT ? CBR_FILE_GONE : CBR_FILE_FAILED;
  struct stat found;
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) return file;
  close(file);
  return CBR_FILE_FAILED;
}

bool cbr_secret_write(int32_t file, const void *memory, size_t bytes) {
  ssize_t count;
  do count = pwrite(file, memory, bytes, 0);
  while (count < 0 && errno == EINTR);
  return count == (ssize_t)bytes;
}

/* A file of root's would keep out the programs of others, which write it. */
static bool give(int file, const char *owner_of) {
  struct stat found;
  return geteuid() != 0 || (stat(owner_of, &found) == 0 &&
                            fchown(file, found.st_uid, found.st_gid) == 0);
}

int32_t cbr_secret_create(const char *path, const char *owner_of,
                          const void *memory, size_t bytes) {
  int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int file = open(path, flags, 0600);
  if (file < 0) return errno == EEXIST ? CBR_FILE_IN_USE : errno;
  /* What the caller's umask takes away would keep the writer out. */
  bool is_made = fchmod(file, 0600) == 0 && give(file, owner_of) &&
                 cbr_secret_write(file, memory, bytes) && fsync(file) == 0;
  int reason = is_made ? 0 : errno ? errno : EIO;
  if (!is_made) unlink(path);
  close(file);
  return reason;
}

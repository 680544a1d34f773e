/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "CPlatform.h"

/* Files beside a history have its name and up to 21 bytes more, or are in a
 * directory whose name has 6 bytes more, by names of 51 bytes. */
enum { ENDING_BYTES = 21, RING_NAME_BYTES = 51,
       NAME_IN_DIRECTORY_BYTES = 6 + 1 + RING_NAME_BYTES };

static bool is_too_long(const char *path) {
  const char *slash = strrchr(path, '/');
  return strlen(slash ? slash + 1 : path) + ENDING_BYTES > NAME_MAX ||
         strlen(path) + NAME_IN_DIRECTORY_BYTES >= PATH_MAX;
}

/* File systems that other machines can change, or that their own server only
 * seems to share memory and locks for (statfs(2), linux/magic.h; coda.h,
 * ceph.h and lustre's own headers for what that lacks). */
static bool is_remote(const char *directory) {
  struct statfs system;
  if (statfs(directory, &system) != 0) return false;
  switch ((uint32_t)system.f_type) {
    case 0x6969:     /* NFS */
    case 0x517B:     /* SMB */
    case 0xFF534D42: /* CIFS */
    case 0xFE534D42: /* SMB2 */
    case 0x564C:     /* NCP */
    case 0x5346414F: /* AFS */
    case 0x73757245: /* Coda */
    case 0x01021997: /* 9P */
    case 0x00C36400: /* Ceph */
    case 0x0BD00BD0: /* Lustre */
    case 0x7461636F: /* OCFS2 */
    case 0x01161970: /* GFS2 */
      return true;
    default: return false;
  }
}

int cbr_path_obstacle(const char *path) {
  if (is_too_long(path)) return CBR_PATH_TOO_LONG;
  struct stat file;
  bool exists = stat(path, &file) == 0;
  if (exists && S_ISDIR(file.st_mode)) return CBR_PATH_IS_DIRECTORY;
  if (exists && !S_ISREG(file.st_mode)) return CBR_PATH_IS_NO_FILE;
  if (exists && file.st_size == 1) return CBR_PATH_IS_ONE_BYTE;
  if (exists && access(path, W_OK) != 0)
    return errno == EROFS ? CBR_PATH_FILE_SYSTEM_READ_ONLY
                          : CBR_PATH_READ_ONLY;
  /* The directory is the path up to its last slash. */
  const char *slash = strrchr(path, '/');
  if (!slash) return CBR_PATH_FREE;
  size_t length = slash == path ? 1 : (size_t)(slash - path);
  char *directory = cbr_allocate(length + 1, 1);
  if (!directory) return CBR_PATH_FREE;
  memcpy(directory, path, length);
  int result = CBR_PATH_FREE;
  if (access(directory, W_OK | X_OK) != 0)
    result = errno == EROFS    ? CBR_PATH_FILE_SYSTEM_READ_ONLY
             : errno == ENOENT ? CBR_PATH_NO_DIRECTORY
                               : CBR_PATH_DIRECTORY_READ_ONLY;
  else if (is_remote(directory)) result = CBR_PATH_IS_REMOTE;
  cbr_release(directory);
  return result;
}

/* Makes a file, and removes it again. */
static int try_file(const char *directory, uint64_t bytes, uint64_t number) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%016" PRIx64 ".ring.new", directory, number);
  int file =
      open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int error = file < 0 ? errno : posix_fallocate(file, 0, (off_t)bytes);
  if (file >= 0) {
    unlink(path);
    close(file);
  }
  switch (error) {
    case 0: return CBR_PATH_FREE;
    case ENOSPC:
    case EDQUOT: return CBR_PATH_IS_FULL;
    default: return CBR_PATH_MAKES_NO_FILE;
  }
}

int cbr_directory_obstacle(const char *path, uint64_t bytes,
                           uint64_t number) {
  struct stat found;
  if (strlen(path) + 1 + RING_NAME_BYTES >= PATH_MAX)
    return CBR_PATH_TOO_LONG;
  if (stat(path, &found) != 0)
    return errno == ENOENT         ? CBR_PATH_NO_DIRECTORY
           : errno == ENOTDIR      ? CBR_PATH_IS_NO_DIRECTORY
           : errno == ENAMETOOLONG ? CBR_PATH_TOO_LONG
                                   : CBR_PATH_DIRECTORY_READ_ONLY;
  if (!S_ISDIR(found.st_mode)) return CBR_PATH_IS_NO_DIRECTORY;
  if (access(path, W_OK | X_OK) != 0)
    return errno == EROFS ? CBR_PATH_FILE_SYSTEM_READ_ONLY
                          : CBR_PATH_DIRECTORY_READ_ONLY;
  if (is_remote(path)) return CBR_PATH_IS_REMOTE;
  return try_file(path, bytes, number);
}

/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "CPlatform.h"

/* Files beside a history have its name and up to 21 bytes more, or are in a
 * directory whose name has 6 bytes more, by names of 45 bytes. */
enum { ENDING_BYTES = 21, NAME_IN_DIRECTORY_BYTES = 6 + 1 + 45 };

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

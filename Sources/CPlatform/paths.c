/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CPlatform.h"

/* Files beside a history have its name and up to 8 bytes more, or are in a
 * directory whose name has 6 bytes more, by names of 45 bytes. */
enum { ENDING_BYTES = 8, NAME_IN_DIRECTORY_BYTES = 6 + 1 + 45 };

static bool is_too_long(const char *path) {
  const char *slash = strrchr(path, '/');
  return strlen(slash ? slash + 1 : path) + ENDING_BYTES > NAME_MAX ||
         strlen(path) + NAME_IN_DIRECTORY_BYTES >= PATH_MAX;
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
  cbr_release(directory);
  return result;
}

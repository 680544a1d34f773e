/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CPlatform.h"

int cbr_path_obstacle(const char *path) {
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

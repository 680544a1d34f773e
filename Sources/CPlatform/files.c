/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that outlive the process: locked for its life, reserved before they
 * are mapped.
 *
 * The lock is one of an open file description (F_OFD_SETLK, fcntl(2)): it ends
 * with the process however that ends, and closing some other descriptor of the
 * file does not drop it. A forked child shares it until it closes its copy. A
 * mapping keeps the description that it was made with (mmap(2)), in a forked
 * child, too: so what is locked is another description than what is mapped.
 * posix_fallocate(3) reserves the blocks: a hole in a mapping is SIGBUS when
 * the disk is full.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CPlatform.h"

static bool lock_file(int file) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(file, F_OFD_SETLK, &whole) == 0;
}

int32_t cbr_file_make(const char *path, int32_t *lock) {
  int file =
      open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return CBR_FILE_FAILED;
  *lock = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (*lock >= 0 && lock_file(*lock)) return file;
  if (*lock >= 0) close(*lock);
  close(file);
  unlink(path);
  return CBR_FILE_FAILED;
}

int32_t cbr_file_open(const char *path) {
  int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return CBR_FILE_FAILED;
  struct stat found;
  /* A name that is gone by now was somebody else's to look after. */
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) {
    if (!lock_file(file)) {
      close(file);
      return CBR_FILE_IN_USE;
    }
    if (fstat(file, &found) == 0 && found.st_nlink > 0) return file;
  }
  close(file);
  return CBR_FILE_FAILED;
}

int32_t cbr_lock_open(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  return file < 0 ? CBR_FILE_FAILED : file;
}

int32_t cbr_lock_take(int32_t file) {
  if (!lock_file(file))
    return errno == EAGAIN || errno == EACCES ? CBR_FILE_IN_USE
                                              : CBR_FILE_FAILED;
  struct stat found;
  if (fstat(file, &found) == 0 && found.st_nlink > 0) return file;
  cbr_lock_give(file);
  return CBR_FILE_GONE;
}

void cbr_lock_give(int32_t file) {
  struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  fcntl(file, F_OFD_SETLK, &whole);
}

void cbr_file_close(int32_t file) { close(file); }

uint64_t cbr_file_bytes(int32_t file) {
  struct stat found;
  return fstat(file, &found) == 0 ? (uint64_t)found.st_size : 0;
}

bool cbr_file_read(int32_t file, void *memory, uint64_t offset,
                   uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t count = pread(file, (char *)memory + done, bytes - done,
                          (off_t)(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += (uint64_t)count;
  }
  return true;
}

/* Behind each mapping, whatever the processor's pages. Without it mappings of
 * one file may touch: who writes past one would be in the next, and valgrind
 * 3.19 gives up at the end of one that was made before the file was renamed,
 * and one that was made after that. */
enum { GUARD_BYTES = 65536 };

void *cbr_file_extend(int32_t file, uint64_t offset, uint64_t bytes) {
  if (posix_fallocate(file, (off_t)offset, (off_t)bytes) != 0) return NULL;
  void *memory = mmap(NULL, bytes + GUARD_BYTES, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
           (off_t)offset) != MAP_FAILED)
    return memory;
  cbr_file_unmap(memory, bytes);
  return NULL;
}

void cbr_file_unmap(void *memory, uint64_t bytes) {
  munmap(memory, bytes + GUARD_BYTES);
}

bool cbr_file_reserve(const char *path, uint64_t bytes) {
  int file =
      open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return false;
  bool has_room = posix_fallocate(file, 0, (off_t)bytes) == 0;
  close(file);
  if (!has_room) unlink(path);
  return has_room;
}

bool cbr_file_rename(const char *from, const char *to) {
  return rename(from, to) == 0;
}

bool cbr_file_remove(const char *path) { return unlink(path) == 0; }

bool cbr_file_is_own(int32_t file, const char *other) {
  struct stat found, beside;
  if (fstat(file, &found) != 0) return false;
  return found.st_uid == geteuid() ||
         (stat(other, &beside) == 0 && found.st_uid == beside.st_uid);
}

bool cbr_path_is_missing(const char *path) {
  struct stat found;
  return lstat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool cbr_directory_make(const char *path) {
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

void cbr_directory_remove(const char *path) { rmdir(path); }

void *cbr_directory_open(const char *path) { return opendir(path); }

const char *cbr_directory_next(void *directory) {
  struct dirent *entry = readdir(directory);
  return entry ? entry->d_name : NULL;
}

void cbr_directory_close(void *directory) { closedir(directory); }

bool cbr_path_identity(const char *path, uint64_t *device,
                       uint64_t *inode) {
  struct stat found;
  if (stat(path, &found) != 0) return false;
  *device = (uint64_t)found.st_dev;
  *inode = (uint64_t)found.st_ino;
  return true;
}

uint64_t cbr_path_bytes(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 ? (uint64_t)found.st_size : 0;
}

uint64_t cbr_directory_bytes(const char *path) {
  DIR *directory = opendir(path);
  if (!directory) return 0;
  uint64_t bytes = 0;
  for (struct dirent *each; (each = readdir(directory));) {
    struct stat found;
    int status = fstatat(dirfd(directory), each->d_name, &found,
                         AT_SYMLINK_NOFOLLOW);
    if (status == 0 && S_ISREG(found.st_mode))
      bytes += (uint64_t)found.st_size;
  }
  closedir(directory);
  return bytes;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A file system for SQLite that fails when it is told to: once, at the k-th
 * call of a kind, or from then on. It stands before the ordinary one, and is
 * what SQLite uses by default, as the library does.
 */
#ifndef FAILING_H
#define FAILING_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

typedef enum operation {
  OPEN, WRITE, SHORT_WRITE, READ, SYNC, TRUNCATE, SIZE, LOCK, SHM_MAP,
  SHM_LOCK
} operation;

/* What fails: the k-th call; when it is lasting, the later ones too. */
typedef struct failure {
  operation what;
  int code;
  int k; /* from 1; 0: nothing fails, and calls are counted */
  bool is_lasting;
} failure;

static failure failing;
static _Atomic int calls_of_kind, calls_failed;
static _Atomic bool is_failing;
static sqlite3_vfs *ordinary;

typedef struct failing_file {
  sqlite3_file base;
  sqlite3_file *under;
} failing_file;

static inline sqlite3_file *under_(sqlite3_file *file) {
  return ((failing_file *)file)->under;
}

/* Whether this call of a kind is to fail. */
static inline bool fails_(operation what) {
  if (!atomic_load(&is_failing) || failing.what != what) return false;
  int number = atomic_fetch_add(&calls_of_kind, 1) + 1;
  bool does = failing.k > 0 && (number == failing.k ||
                                (failing.is_lasting && number > failing.k));
  if (does) atomic_fetch_add(&calls_failed, 1);
  return does;
}

/* From now on the k-th call fails. */
static inline void begin_failing(failure it) {
  atomic_store(&is_failing, false);
  failing = it;
  atomic_store(&calls_of_kind, 0);
  atomic_store(&calls_failed, 0);
  atomic_store(&is_failing, true);
}

/* Nothing fails any more. Returns how many calls have failed. */
static inline int end_failing(void) {
  atomic_store(&is_failing, false);
  return atomic_load(&calls_failed);
}

static inline int close_(sqlite3_file *file) {
  return under_(file)->pMethods->xClose(under_(file));
}

static inline int read_(sqlite3_file *file, void *bytes, int count,
                        sqlite3_int64 offset) {
  if (fails_(READ)) return failing.code;
  return under_(file)->pMethods->xRead(under_(file), bytes, count, offset);
}

static inline int write_(sqlite3_file *file, const void *bytes, int count,
                         sqlite3_int64 offset) {
  if (fails_(WRITE)) return failing.code;
  bool is_short = fails_(SHORT_WRITE);
  int code = under_(file)->pMethods->xWrite(
      under_(file), bytes, is_short ? count / 2 : count, offset);
  return is_short ? failing.code : code;
}

static inline int truncate_(sqlite3_file *file, sqlite3_int64 size) {
  if (fails_(TRUNCATE)) return failing.code;
  return under_(file)->pMethods->xTruncate(under_(file), size);
}

/* No power is lost in a test: what succeeds need not be done. */
static inline int sync_(sqlite3_file *file, int flags) {
  (void)file;
  (void)flags;
  return fails_(SYNC) ? failing.code : SQLITE_OK;
}

static inline int size_(sqlite3_file *file, sqlite3_int64 *size) {
  if (fails_(SIZE)) return failing.code;
  return under_(file)->pMethods->xFileSize(under_(file), size);
}

static inline int lock_(sqlite3_file *file, int level) {
  if (fails_(LOCK)) return failing.code;
  return under_(file)->pMethods->xLock(under_(file), level);
}

static inline int unlock_(sqlite3_file *file, int level) {
  return under_(file)->pMethods->xUnlock(under_(file), level);
}

static inline int is_reserved_(sqlite3_file *file, int *is_so) {
  return under_(file)->pMethods->xCheckReservedLock(under_(file), is_so);
}

static inline int control_(sqlite3_file *file, int what, void *argument) {
  return under_(file)->pMethods->xFileControl(under_(file), what, argument);
}

static inline int sector_(sqlite3_file *file) {
  return under_(file)->pMethods->xSectorSize(under_(file));
}

static inline int traits_(sqlite3_file *file) {
  return under_(file)->pMethods->xDeviceCharacteristics(under_(file));
}

static inline int shm_map_(sqlite3_file *file, int page, int size, int extend,
                           void volatile **memory) {
  if (fails_(SHM_MAP)) return failing.code;
  return under_(file)->pMethods->xShmMap(under_(file), page, size, extend,
                                         memory);
}

/* Giving a lock back does not fail. */
static inline int shm_lock_(sqlite3_file *file, int offset, int count,
                            int flags) {
  if ((flags & SQLITE_SHM_LOCK) && fails_(SHM_LOCK)) return failing.code;
  return under_(file)->pMethods->xShmLock(under_(file), offset, count, flags);
}

static inline void shm_barrier_(sqlite3_file *file) {
  under_(file)->pMethods->xShmBarrier(under_(file));
}

static inline int shm_unmap_(sqlite3_file *file, int delete) {
  return under_(file)->pMethods->xShmUnmap(under_(file), delete);
}

static const sqlite3_io_methods failing_methods_ = {
  .iVersion = 2, .xClose = close_, .xRead = read_, .xWrite = write_,
  .xTruncate = truncate_, .xSync = sync_, .xFileSize = size_, .xLock = lock_,
  .xUnlock = unlock_, .xCheckReservedLock = is_reserved_,
  .xFileControl = control_, .xSectorSize = sector_,
  .xDeviceCharacteristics = traits_, .xShmMap = shm_map_,
  .xShmLock = shm_lock_, .xShmBarrier = shm_barrier_,
  .xShmUnmap = shm_unmap_
};

static inline int open_(sqlite3_vfs *vfs, const char *name,
                        sqlite3_file *file, int flags, int *out_flags) {
  (void)vfs;
  failing_file *it = (failing_file *)file;
  it->base.pMethods = NULL;
  it->under = (sqlite3_file *)(it + 1);
  if (fails_(OPEN)) return failing.code;
  int code = ordinary->xOpen(ordinary, name, it->under, flags, out_flags);
  if (code == SQLITE_OK) it->base.pMethods = &failing_methods_;
  return code;
}

/* Before the library opens its first database. */
static inline void put_failing_files_before_sqlite(void) {
  static sqlite3_vfs failing_vfs;
  ordinary = sqlite3_vfs_find(NULL);
  failing_vfs = *ordinary;
  failing_vfs.szOsFile += (int)sizeof(failing_file);
  failing_vfs.zName = "failing";
  failing_vfs.pNext = NULL;
  failing_vfs.xOpen = open_;
  sqlite3_vfs_register(&failing_vfs, 1);
}

#endif

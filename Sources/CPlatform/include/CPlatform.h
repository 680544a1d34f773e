/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine needs of the operating system and cannot say in Swift:
 * a thread-local pointer, fences, membarrier, the time-stamp counter, locks,
 * threads, fork and exit handlers, checked memory, hashes, test hook points.
 */
#ifndef CPLATFORM_H
#define CPLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CBR_PRIVATE __attribute__((visibility("hidden")))
#define CBR_INLINE static inline __attribute__((always_inline, unused))

/* ------------------------------------------------- thread-local record -- */

/* The calling thread's record; NULL before its first use and after its end.
 * Eight bytes of initial-exec storage, so that dlopen finds room for it. */
extern CBR_PRIVATE __thread void *cbr_platform_thread
    __attribute__((tls_model("initial-exec")));

CBR_INLINE void *cbr_thread_get(void) { return cbr_platform_thread; }
CBR_INLINE void cbr_thread_set(void *record) { cbr_platform_thread = record; }

/* Runs the handler given to cbr_platform_start with this record when the
 * calling thread ends. Returns false when the system has no room for it. */
CBR_PRIVATE bool cbr_thread_on_exit(void *record);

/* The kernel's number of the calling thread, and its name in 16 bytes. */
CBR_PRIVATE uint32_t cbr_thread_kernel_number(void);
CBR_PRIVATE void cbr_thread_name(char name[16]);

/* ----------------------------------------------------------------- text -- */

/* The length of zero-terminated text, looked at up to `limit` bytes. */
CBR_INLINE size_t cbr_text_length(const char *text, size_t limit) {
  const char *end = __builtin_memchr(text, 0, limit);
  return end ? (size_t)(end - text) : limit;
}

CBR_INLINE bool cbr_bytes_are_equal(const void *one, const void *other,
                                    size_t length) {
  return __builtin_memcmp(one, other, length) == 0;
}

/* --------------------------------------------------------------- fences -- */

/* Whether readers get by with a compiler fence. Written once, before the
 * first thread record exists. */
extern CBR_PRIVATE int cbr_platform_asymmetric;

/* Holds back the compiler alone. */
CBR_INLINE void cbr_compiler_fence(void) { __asm__ volatile("" ::: "memory"); }

/* The light fence of the protocol: orders a pin store before the check of the
 * word. With membarrier the compiler alone has to be held back; without it
 * the processor too. */
CBR_INLINE void cbr_light_fence(void) {
  if (__builtin_expect(cbr_platform_asymmetric != 0, 1))
    __asm__ volatile("" ::: "memory");
  else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

CBR_INLINE bool cbr_is_asymmetric(void) {
  return cbr_platform_asymmetric != 0;
}

CBR_INLINE void cbr_full_fence(void) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The heavy fence: afterwards every thread of the process has passed a full
 * fence since the call began. */
CBR_PRIVATE void cbr_heavy_fence(void);

/* ---------------------------------------------------------------- clock -- */

/* Whether cbr_ticks is the processor's counter; else it is nanoseconds. */
extern CBR_PRIVATE int cbr_platform_counter_is_trusted;

CBR_INLINE bool cbr_counter_is_trusted(void) {
  return cbr_platform_counter_is_trusted != 0;
}
CBR_PRIVATE uint64_t cbr_monotonic_nanoseconds(void);
CBR_PRIVATE uint64_t cbr_realtime_nanoseconds(void);
/* Lets some time pass. */
CBR_PRIVATE void cbr_pause(uint64_t nanoseconds);

CBR_INLINE uint64_t cbr_ticks(void) {
#if defined(__x86_64__)
  if (__builtin_expect(cbr_platform_counter_is_trusted != 0, 1))
    return __builtin_ia32_rdtsc();
#endif
  return cbr_monotonic_nanoseconds();
}

/* The same, after what the thread did before: its stores are visible (the full
 * fence), and its instructions are complete (the other one) before the counter
 * is read, which is ordered by neither alone. */
CBR_INLINE uint64_t cbr_ticks_after_effects(void) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#endif
  return cbr_ticks();
}

/* Returns pointer, in a way that the processor can only know after `ticks`:
 * what is loaded through it is loaded after the stamp was taken (A2). */
CBR_INLINE const void *cbr_after_ticks(const void *pointer, uint64_t ticks) {
#if defined(__x86_64__)
  __asm__ volatile("andl $0, %k1\n\taddq %1, %0"
                   : "+r"(pointer), "+r"(ticks)
                   :
                   : "cc");
#else
  (void)ticks;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  return pointer;
}

/* ---------------------------------------------------- handle directory -- */

/* Addresses of the chunks of the handle table, indexed by chunk number. It is
 * zero memory that the system hands out page by page when it is touched. */
enum { CBR_DIRECTORY_COUNT = 1 << 18 };
extern CBR_PRIVATE void *cbr_platform_directory[CBR_DIRECTORY_COUNT];

CBR_INLINE void *cbr_directory_get(uint32_t chunk) {
  return __atomic_load_n(&cbr_platform_directory[chunk], __ATOMIC_ACQUIRE);
}
CBR_INLINE void cbr_directory_set(uint32_t chunk, void *address) {
  __atomic_store_n(&cbr_platform_directory[chunk], address, __ATOMIC_RELEASE);
}

/* --------------------------------------------------------------- memory -- */

/* Zeroed memory, or NULL. Under test hooks the k-th call can be made to
 * fail. Free with cbr_release. */
CBR_PRIVATE void *cbr_allocate(size_t bytes, size_t alignment);
CBR_PRIVATE void cbr_release(void *memory);
CBR_PRIVATE uint64_t cbr_random(void);

/* ---------------------------------------------------------------- files -- */

enum { CBR_FILE_FAILED = -1, CBR_FILE_IN_USE = -2, CBR_FILE_GONE = -3 };

/* Makes a file that must not exist, readable by its owner alone. Or
 * CBR_FILE_FAILED. The lock is a descriptor of its own, which has the file
 * locked until it is closed or the process ends. */
CBR_PRIVATE int32_t cbr_file_make(const char *path, int32_t *lock);
/* Opens and locks such a file. Or CBR_FILE_IN_USE, while another process or
 * description has it; CBR_FILE_FAILED. */
CBR_PRIVATE int32_t cbr_file_open(const char *path);
/* Opens a file that processes lock in turn, made when it is missing. Or
 * CBR_FILE_FAILED. */
CBR_PRIVATE int32_t cbr_lock_open(const char *path);
/* Locks it, and returns it. Or CBR_FILE_IN_USE; CBR_FILE_GONE, when its name
 * has been removed and it is to be opened anew; CBR_FILE_FAILED. */
CBR_PRIVATE int32_t cbr_lock_take(int32_t file);
CBR_PRIVATE void cbr_lock_give(int32_t file);
CBR_PRIVATE void cbr_file_close(int32_t file);
CBR_PRIVATE uint64_t cbr_file_bytes(int32_t file);
/* Reads all of the bytes; false if there are fewer, or they cannot be read. */
CBR_PRIVATE bool cbr_file_read(int32_t file, void *memory, uint64_t offset,
                               uint64_t bytes);
/* Reserves a part of the file, which is of zeros if it is new, and maps it
 * shared. The offset is a multiple of 64 KiB. NULL: there is no room. */
CBR_PRIVATE void *cbr_file_extend(int32_t file, uint64_t offset,
                                  uint64_t bytes);
CBR_PRIVATE void cbr_file_unmap(void *memory, uint64_t bytes);
/* Makes a file of so many bytes, all of which are on the disk; false, and
 * there is none: there is no room. */
CBR_PRIVATE bool cbr_file_reserve(const char *path, uint64_t bytes);
CBR_PRIVATE bool cbr_file_rename(const char *from, const char *to);
CBR_PRIVATE bool cbr_file_remove(const char *path);
/* Whether an open file belongs to this process's user, or to the user of the
 * other file. */
CBR_PRIVATE bool cbr_file_is_own(int32_t file, const char *other);
/* Whether a path names nothing; false also where that cannot be known. */
CBR_PRIVATE bool cbr_path_is_missing(const char *path);

/* Makes a directory for its owner alone; true if it is there already. */
CBR_PRIVATE bool cbr_directory_make(const char *path);
/* Removes a directory if it is empty. */
CBR_PRIVATE void cbr_directory_remove(const char *path);
/* The names in a directory, one by one; NULL: no directory, no more names. A
 * name is valid until the next one. */
CBR_PRIVATE void *cbr_directory_open(const char *path);
CBR_PRIVATE const char *cbr_directory_next(void *directory);
CBR_PRIVATE void cbr_directory_close(void *directory);
/* Which file a path names, without opening it; false: none. */
CBR_PRIVATE bool cbr_path_identity(const char *path, uint64_t *device,
                                   uint64_t *inode);
/* The size of a file, and of all files in a directory, without opening them;
 * 0: there is none. */
CBR_PRIVATE uint64_t cbr_path_bytes(const char *path);
CBR_PRIVATE uint64_t cbr_directory_bytes(const char *path);

/* -------------------------------------------------------------- secrets -- */

/* Fills memory of up to 256 bytes with what nobody can guess; false: the
 * system has nothing of the kind. */
CBR_PRIVATE bool cbr_secret_make(void *memory, size_t bytes);
/* Overwrites memory, also where nobody reads it any more. */
CBR_PRIVATE void cbr_secret_wipe(void *memory, size_t bytes);
/* Makes a file that must not exist, for its owner alone, and syncs it; made by
 * root it belongs to the owner of another file. 0, or CBR_FILE_IN_USE: it
 * exists, or what errno was. */
CBR_PRIVATE int32_t cbr_secret_create(const char *path, const char *owner_of,
                                      const void *memory, size_t bytes);
/* Opens such a file to be overwritten, without a lock. Or CBR_FILE_GONE: there
 * is none; CBR_FILE_FAILED. */
CBR_PRIVATE int32_t cbr_secret_open(const char *path);
/* Overwrites the beginning of the file. */
CBR_PRIVATE bool cbr_secret_write(int32_t file, const void *memory,
                                  size_t bytes);

/* --------------------------------------------------------------- checks -- */

/* Whether the processor computes CRC-32C itself. */
extern CBR_PRIVATE int cbr_platform_has_check_instruction;
CBR_PRIVATE uint32_t cbr_check_by_bits(uint32_t sum, uint64_t word);

/* Adds eight bytes to a CRC-32C. */
CBR_INLINE uint32_t cbr_check(uint32_t sum, uint64_t word) {
#if defined(__x86_64__)
  if (__builtin_expect(cbr_platform_has_check_instruction != 0, 1)) {
    uint64_t wide = sum;
    __asm__("crc32q %1, %0" : "+r"(wide) : "rm"(word));
    return (uint32_t)wide;
  }
#endif
  return cbr_check_by_bits(sum, word);
}

/* --------------------------------------------------------------- hashes -- */

enum { CBR_HASH_BYTES = 32 };

/* Looks for SHA3-256, once in a process; false: there is none. It may allocate
 * and open files, so it is not for handlers of a fork or a signal. */
CBR_PRIVATE bool cbr_hash_prepare(void);
/* A computation, for one thread at a time. NULL: there is no SHA3-256, or no
 * memory. */
CBR_PRIVATE void *cbr_hash_create(void);
CBR_PRIVATE void cbr_hash_destroy(void *hash);
/* Each is false when libcrypto fails. */
CBR_PRIVATE bool cbr_hash_begin(void *hash);
CBR_PRIVATE bool cbr_hash_add(void *hash, const void *bytes, size_t count);
CBR_PRIVATE bool cbr_hash_end(void *hash, uint8_t digest[CBR_HASH_BYTES]);

/* ---------------------------------------------------- locks, conditions -- */

/* A lock and a condition on the monotonic clock, made together because each
 * condition of the engine has exactly one lock. NULL: no memory. */
CBR_PRIVATE void *cbr_monitor_create(void);
CBR_PRIVATE void cbr_monitor_destroy(void *monitor);
CBR_PRIVATE void cbr_monitor_lock(void *monitor);
CBR_PRIVATE void cbr_monitor_unlock(void *monitor);
CBR_PRIVATE void cbr_monitor_wake(void *monitor);
/* Waits, with the lock held, until woken or the monotonic deadline
 * (UINT64_MAX: for ever). Returns false at the deadline. */
CBR_PRIVATE bool cbr_monitor_wait(void *monitor, uint64_t deadline);

/* The monitors of the whole process; a forked child gets fresh ones. */
enum { CBR_MONITOR_TABLE, CBR_MONITOR_WAITING, CBR_MONITOR_HISTORIES,
       CBR_MONITOR_SHARED, CBR_MONITOR_DATABASES, CBR_MONITOR_THUNKS,
       CBR_MONITOR_COUNT };
CBR_PRIVATE void *cbr_monitor_of_process(int which);
CBR_PRIVATE void cbr_monitors_of_process_renew(void);

/* Around every use of SQLite; a fork waits for those inside. */
CBR_PRIVATE void cbr_database_enter(void);
CBR_PRIVATE void cbr_database_leave(void);

/* Starts a detached thread that receives no signals and writes histories. */
CBR_PRIVATE bool cbr_thread_start(void (*body)(void *), void *argument);
/* Starts one that runs a program's functions: the program does not end before
 * it by pthread_exit of all others. */
CBR_PRIVATE bool cbr_thread_start_delivering(void (*body)(void *),
                                             void *argument);
/* Whether only threads that write histories are left of the process, whose
 * first one has ended by pthread_exit: it ends when they do. */
CBR_PRIVATE bool cbr_is_left_alone(void);

/* A descriptor that a program polls: readable from set to clear; each set is
 * an edge. NULL: no memory, or no descriptor. A forked child has none. */
CBR_PRIVATE void *cbr_wakeup_create(void);
CBR_PRIVATE void cbr_wakeup_destroy(void *wakeup);
CBR_PRIVATE int32_t cbr_wakeup_descriptor(const void *wakeup);
/* Another descriptor of the same, which outlives it and is the caller's to
 * close; -1: none. */
CBR_PRIVATE int32_t cbr_wakeup_duplicate(const void *wakeup);
CBR_PRIVATE void cbr_wakeup_set(const void *wakeup);
CBR_PRIVATE void cbr_wakeup_clear(const void *wakeup);
/* Makes it readable at a monotonic deadline, too, and no longer at the one
 * before, whether that has come or not; UINT64_MAX: at none. */
CBR_PRIVATE void cbr_wakeup_at(const void *wakeup, uint64_t deadline);

/* Zero memory in which the engine keeps its process-wide state, so that no
 * global of it needs code to be initialised. */
enum { CBR_STATE_BYTES = 512 };
CBR_PRIVATE void *cbr_process_state(void);

/* --------------------------------------------------------------- thunks -- */

/* A described signature is a list of codes: the result, then each argument. A
 * structure is its code, how many fields it has, and these. */
enum { CBR_CODE_VOID, CBR_CODE_BOOL, CBR_CODE_INT8, CBR_CODE_UINT8,
       CBR_CODE_INT16, CBR_CODE_UINT16, CBR_CODE_INT32, CBR_CODE_UINT32,
       CBR_CODE_INT64, CBR_CODE_UINT64, CBR_CODE_FLOAT, CBR_CODE_DOUBLE,
       CBR_CODE_POINTER, CBR_CODE_STRUCT };
enum { CBR_THUNK_ARGUMENTS = 32 };
enum { CBR_THUNKS_PER_BLOCK = 8192 };
/* As a context's place: the function is a cbr_listed_function. */
enum { CBR_CONTEXT_LISTED = -2 };
/* Gets where the arguments are, and where the result goes, of its own size. */
typedef void (*cbr_listed_function)(void *context, void **arguments,
                                    void *result);

/* Whether this processor is one that there is code for. */
CBR_PRIVATE bool cbr_thunks_exist(void);

/* What is called when a thunk is, and when the function has returned. begin
 * answers whether there is a function to call. */
struct cbr_thunk_call {
  uint64_t call[8]; /* of the token; the engine's */
  void *function;
  void *context;
  uint64_t pin;
};
CBR_PRIVATE void cbr_thunks_prepare(
    bool (*begin)(uint64_t thunk, struct cbr_thunk_call *call),
    void (*end)(uint64_t thunk, struct cbr_thunk_call *call));

/* A signature and a default result, copied. context_place is an index among
 * the function's arguments, -1, or CBR_CONTEXT_LISTED; otherwise NULL: zeros.
 * NULL: no memory. */
struct cbr_shape;
CBR_PRIVATE struct cbr_shape *cbr_shape_create(
    const uint8_t *codes, size_t code_count, uint32_t count,
    int32_t context_place, const void *otherwise);
CBR_PRIVATE void cbr_shape_destroy(struct cbr_shape *shape);
CBR_PRIVATE bool cbr_shape_is_same(const struct cbr_shape *one,
                                   const struct cbr_shape *other);

/* Each of these, but set, needs the monitor of thunks. */

/* Maps CBR_THUNKS_PER_BLOCK addresses for thunks of a shape, for good. NULL:
 * no memory, or it may not be executed. */
CBR_PRIVATE void *cbr_thunk_block_map(struct cbr_shape *shape,
                                      bool *is_refused);
/* Unmaps the last one again, from which no address was given out. */
CBR_PRIVATE void cbr_thunk_block_unmap(struct cbr_shape *shape, void *block);
/* Makes the first `count` addresses of all the shape's blocks work. */
CBR_PRIVATE bool cbr_thunk_fill(struct cbr_shape *shape, uint32_t count);
/* How many thunks are forgotten at a time: a part of a block. */
CBR_PRIVATE uint32_t cbr_thunk_group(void);
CBR_PRIVATE void *cbr_thunk_address(void *block, uint32_t index);
/* Says which thunk has an address; 0: none. */
CBR_PRIVATE void cbr_thunk_set(void *block, uint32_t index, uint64_t handle);
/* Gives the memory of so many handles back: they are 0 from now on. */
CBR_PRIVATE void cbr_thunk_forget(void *block, uint32_t first, uint32_t count);

/* --------------------------------------------------------- process life -- */

/* Prepares fences, clock and handlers; any number of calls, the first works.
 * thread_exit gets the record of a thread that ends; fork_parent runs in a
 * process that has forked, fork_child in its child, on the thread that forked;
 * process_exit runs once at exit. */
CBR_PRIVATE void cbr_platform_start(void (*thread_exit)(void *),
                                    void (*fork_parent)(void),
                                    void (*fork_child)(void),
                                    void (*process_exit)(void));
/* How often this process has registered with pthread_atfork. */
CBR_PRIVATE uint64_t cbr_fork_handlers(void);

/* A setting from the environment; NULL when it is not set. */
CBR_PRIVATE const char *cbr_setting(const char *name);

/* Writes text to stderr, whole or not at all. */
/* Ends the process by SIGABRT. */
CBR_PRIVATE _Noreturn void cbr_abort(void);
CBR_PRIVATE void cbr_print_error(const char *text, size_t bytes);

/* What run.* columns of the history need. Each fills at most `size` bytes
 * with a zero-terminated string. */
CBR_PRIVATE void cbr_host_name(char *text, size_t size);
CBR_PRIVATE void cbr_boot_identity(char *text, size_t size);
CBR_PRIVATE void cbr_executable_path(char *text, size_t size);
CBR_PRIVATE int32_t cbr_process_number(void);
/* Resolves a path to a new absolute one; free with cbr_release. NULL: its
 * directory does not exist, or no memory. */
CBR_PRIVATE char *cbr_absolute_path(const char *path);
/* What keeps the file of an absolute path from being made or written. The
 * file is not opened: closing it would drop SQLite's locks. */
enum { CBR_PATH_FREE, CBR_PATH_NO_DIRECTORY, CBR_PATH_DIRECTORY_READ_ONLY,
       CBR_PATH_FILE_SYSTEM_READ_ONLY, CBR_PATH_IS_DIRECTORY,
       CBR_PATH_IS_NO_FILE, CBR_PATH_IS_ONE_BYTE, CBR_PATH_READ_ONLY,
       CBR_PATH_TOO_LONG, CBR_PATH_IS_REMOTE, CBR_PATH_IS_NO_DIRECTORY,
       CBR_PATH_IS_FULL, CBR_PATH_MAKES_NO_FILE };
CBR_PRIVATE int cbr_path_obstacle(const char *path);
/* What keeps a file of so many bytes, whose name is the random number that
 * is given, from being made in a directory: one is made there, and removed. */
CBR_PRIVATE int cbr_directory_obstacle(const char *path, uint64_t bytes,
                                       uint64_t number);

/* ------------------------------------------------------------ delegates -- */

#define CBR_DISPOSITION_ALLOW 3

/* The interface of a session's delegate: a cbr_interface. */
CBR_PRIVATE const void *cbr_platform_session_interface(void);

/* ----------------------------------------------------------- test hooks -- */

/* Tests drive exact interleavings here: called at each named point with the
 * point's number and the handle concerned. Only a library that was built for
 * tests defines the variable, and only there is this used. */
extern void (*cbr_platform_hook)(int32_t point, uint64_t handle);
CBR_INLINE void cbr_hook(int32_t point, uint64_t handle) {
  void (*hook)(int32_t, uint64_t) =
      __atomic_load_n(&cbr_platform_hook, __ATOMIC_ACQUIRE);
  if (hook) hook(point, handle);
}

#endif

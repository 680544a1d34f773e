/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "CPlatform.h"
#include "internal.h"

void *cbr_platform_directory[CBR_DIRECTORY_COUNT];

static _Alignas(64) unsigned char state[CBR_STATE_BYTES];
void *cbr_process_state(void) { return state; }

static uint64_t fork_handlers;
uint64_t cbr_fork_handlers(void) { return fork_handlers; }

/* Threads that start the library at once all store the same. */
static struct {
  void (*_Atomic thread_exit)(void *);
  void (*_Atomic fork_parent)(void);
  void (*_Atomic fork_child)(void);
  void (*_Atomic process_exit)(void);
} handlers;

static void in_parent(void) {
  cbr_after_fork_in_parent();
  handlers.fork_parent();
}

static void in_child(void) {
  cbr_after_fork_in_child();
  handlers.fork_child();
}

static void start_once(void) {
  cbr_fences_prepare();
  cbr_clock_prepare();
  cbr_checks_prepare();
  cbr_threads_prepare(handlers.thread_exit);
  if (pthread_atfork(cbr_before_fork, in_parent, in_child) == 0)
    fork_handlers++;
  atexit(handlers.process_exit);
}

void cbr_platform_start(void (*thread_exit)(void *), void (*fork_parent)(void),
                        void (*fork_child)(void), void (*process_exit)(void)) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  handlers.thread_exit = thread_exit;
  handlers.fork_parent = fork_parent;
  handlers.fork_child = fork_child;
  handlers.process_exit = process_exit;
  pthread_once(&once, start_once);
}

const char *cbr_setting(const char *name) { return getenv(name); }

void cbr_print_error(const char *text, size_t bytes) {
  if (write(STDERR_FILENO, text, bytes) < 0) return;
}

void cbr_abort(void) { abort(); }

void cbr_host_name(char *text, size_t size) {
  struct utsname system;
  text[0] = 0;
  if (uname(&system) == 0) strncat(text, system.nodename, size - 1);
}

void cbr_read_line(const char *path, char *text, size_t size) {
  text[0] = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t bytes = read(file, text, size - 1);
  close(file);
  text[bytes > 0 ? bytes : 0] = 0;
  text[strcspn(text, "\n")] = 0;
}

void cbr_boot_identity(char *text, size_t size) {
  cbr_read_line("/proc/sys/kernel/random/boot_id", text, size);
}

void cbr_executable_path(char *text, size_t size) {
  ssize_t bytes = readlink("/proc/self/exe", text, size - 1);
  text[bytes > 0 ? bytes : 0] = 0;
}

int32_t cbr_process_number(void) { return (int32_t)getpid(); }

char *cbr_absolute_path(const char *path) {
  size_t length = strlen(path);
  char *directory = cbr_allocate(length + 2, 1);
  if (!directory) return NULL;
  memcpy(directory, path, length);
  char *slash = strrchr(directory, '/');
  const char *name = slash ? path + (slash - directory) + 1 : path;
  if (slash == directory) directory[1] = 0;
  else if (slash) *slash = 0;
  else memcpy(directory, ".", 2);
  char resolved[PATH_MAX];
  char *result = NULL;
  if (realpath(directory, resolved)) {
    size_t bytes = strlen(resolved) + 1 + strlen(name) + 1;
    result = cbr_allocate(bytes, 1);
    if (result) {
      strcpy(result, resolved);
      if (strcmp(resolved, "/") != 0) strcat(result, "/");
      strcat(result, name);
    }
  }
  cbr_release(directory);
  return result;
}

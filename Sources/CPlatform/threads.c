/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CPlatform.h"
#include "internal.h"

__thread void *cbr_platform_thread;

static pthread_key_t exit_key;
static bool exit_key_exists;

bool cbr_threads_prepare(void (*thread_exit)(void *)) {
  exit_key_exists = pthread_key_create(&exit_key, thread_exit) == 0;
  return exit_key_exists;
}

bool cbr_thread_on_exit(void *record) {
  return exit_key_exists && pthread_setspecific(exit_key, record) == 0;
}

uint32_t cbr_thread_kernel_number(void) {
  return (uint32_t)syscall(SYS_gettid);
}

void cbr_thread_name(char name[16]) {
  if (prctl(PR_GET_NAME, name, 0, 0, 0) != 0) name[0] = 0;
}

struct start {
  void (*body)(void *);
  void *argument;
  const char *name;
};

/* Threads that write histories. */
static _Atomic int own_threads;

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  cbr_release(argument);
  prctl(PR_SET_NAME, start.name, 0, 0, 0);
  start.body(start.argument);
  return NULL;
}

static void *run_own(void *argument) {
  run(argument);
  own_threads--;
  return NULL;
}

/* The first thread of a process stays as a zombie when it ends before others;
 * proc(5): a directory of /proc/self/task has a link for each thread. */
static bool has_first_thread_ended(void) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
  cbr_read_line(path, text, sizeof text);
  const char *name_end = strrchr(text, ')');
  return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}

bool cbr_is_left_alone(void) {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) == 0 &&
         (int)tasks.st_nlink - 2 == own_threads + 1 &&
         has_first_thread_ended();
}

static bool start_thread(void *(*run)(void *), struct start what) {
  struct start *start = cbr_allocate(sizeof *start, _Alignof(struct start));
  if (!start) return false;
  *start = what;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, run, start) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (!started) cbr_release(start);
  return started;
}

bool cbr_thread_start(void (*body)(void *), void *argument) {
  own_threads++;
  bool started =
      start_thread(run_own, (struct start){body, argument, "cbr-history"});
  if (!started) own_threads--;
  return started;
}

bool cbr_thread_start_delivering(void (*body)(void *), void *argument) {
  return start_thread(run, (struct start){body, argument, "cbr-queue"});
}

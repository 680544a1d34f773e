/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
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
};

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  cbr_release(argument);
  prctl(PR_SET_NAME, "cbr-history", 0, 0, 0);
  start.body(start.argument);
  return NULL;
}

bool cbr_thread_start(void (*body)(void *), void *argument) {
  struct start *start = cbr_allocate(sizeof *start, _Alignof(struct start));
  if (!start) return false;
  *start = (struct start){body, argument};
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that is killed, and what it has left when it is dead. It is this
 * program again, with the name of what it does, the path of its history and
 * some numbers: a copy of a process with threads could not start any of its
 * own under ThreadSanitizer.
 */
#ifndef CRASH_H
#define CRASH_H

#include "history.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern char **environ;

static history kept;

/* How a process dies: a signal, or this by _exit. */
enum { BY_EXIT = 0, EXITED = 70, TROUBLED = 99 };

enum { MOST_NUMBERS = 6 };

/* Lets this program do something with the history. */
static inline pid_t spawn_self(const char *what, const int *values,
                               int count) {
  char numbers[MOST_NUMBERS][16];
  char *arguments[MOST_NUMBERS + 4] = {"self", (char *)what, kept.path};
  for (int each = 0; each < count; each++) {
    snprintf(numbers[each], sizeof numbers[each], "%d", values[each]);
    arguments[3 + each] = numbers[each];
  }
  pid_t child = -1;
  EQUAL(0, posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments,
                       environ));
  return child;
}

static inline void await_death(pid_t child, int how) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  bool is_so = how == BY_EXIT
                   ? WIFEXITED(status) && WEXITSTATUS(status) == EXITED
                   : WIFSIGNALED(status) && WTERMSIG(status) == how;
  if (!CHECK(is_so)) fprintf(stderr, "  status %x\n", (unsigned)status);
}

/* Ends this process, unless something was not as expected in it. */
static inline void die(int how) {
  fflush(stderr);
  if (tests_failed || failures_of_test) _exit(TROUBLED);
  if (how == BY_EXIT) _exit(EXITED);
  kill(getpid(), how);
  for (;;) pause();
}

static int dying_how, dying_point, dying_count;

static inline void die_at_(int32_t point, uint64_t handle) {
  static _Atomic int count;
  (void)handle;
  if (point != dying_point) return;
  if (atomic_fetch_add(&count, 1) + 1 == dying_count) die(dying_how);
}

/* In the spawned process: dies when the library comes to a point for the n-th
 * time; at no point when that is 0. */
static inline void prepare_to_die(int how, int point, int n) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  dying_how = how;
  dying_point = point;
  dying_count = n;
  /* Sanitizers have handlers of their own. */
  if (how != BY_EXIT) signal(how, SIG_DFL);
  if (point) cbr_test_set_hook(die_at_);
}

/* Room for all: nothing is only counted. */
static uint64_t ring_bytes = 1 << 18;

static inline cbr_registry open_kept(uint32_t level) {
  cbr_registry registry = CBR_NONE;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "killed";
  options.history_path = kept.path;
  options.level = level;
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = ring_bytes;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  return registry;
}

/* Opens the history again, which recovers it, and closes it. */
static inline void recover(void) {
  EXPECT(CBR_OK, cbr_registry_close(open_kept(CBR_LEVEL_OFF), CBR_FOREVER));
}

#endif

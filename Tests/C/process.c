/* SPDX-License-Identifier: Apache-2.0
 *
 * fork and exit (H1 to H4, J22, J25): a child is refused what it inherited,
 * touches nothing of its parent's history, ends promptly and can begin anew;
 * a process may end with threads inside the library, and use it to its end.
 *
 * What needs a process of its own runs in this program again, with the name
 * of the task as its first argument and a history as its second.
 */
#include "history.h"
#include "subject.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>

extern char **environ;

/* A fork is slow under ThreadSanitizer. */
#ifdef THREAD_SANITIZER
enum { FORKS = 8 };
#else
enum { FORKS = TIMES(200, 40) };
#endif

/* What a child inherits and leaves behind is no leak of its own; nor is what
 * threads use that still run at exit. */
static bool leaves_things_behind;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return leaves_things_behind; }

static cbr_registry registry;
static cbr_owner owner;
static cbr_token token;
static cbr_lease_handle lease;
static life token_life;
static history kept;

/* A registry with a file, which has all kinds of handles. */
static void make_world(uint32_t level) {
  make_history(&kept);
  token_life = (life){0};
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "parent";
  options.history_path = kept.path;
  options.level = level;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  owner = add_owner(registry, "owner");
  EXPECT(CBR_OK, subject_register(registry, &token_life, owner, &token));
  EXPECT(CBR_OK, cbr_lease(token, &lease));
}

/* The parent's history is whole, and has so many calls and refusals. */
static void check_world(int64_t calls, int64_t refusals) {
  EXPECT(CBR_OK, cbr_lease_end(lease));
  close_registry(registry);
  EQUAL(1, token_life.destroyed);
  check_history(&kept);
  EQUAL(calls, number_in(&kept, "SELECT called + aggregated + counted_only "
                                "FROM conservation WHERE token = 'total'"));
  EQUAL(refusals, number_in(&kept, "SELECT refused FROM conservation "
                                   "WHERE token = 'total'"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run"));
  remove_history(&kept);
}

/* ------------------------------------------------------------- children -- */

static void be_refused(void) {
  cbr_call call;
  cbr_token other;
  cbr_lease_handle more;
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  char text[64];
  EXPECT(CBR_E_FORKED, cbr_enter(token, &call));
  EXPECT(CBR_E_FORKED, cbr_enter_typed(token, 7, &call));
  EXPECT(CBR_E_FORKED, cbr_lease(token, &more));
  EXPECT(CBR_E_FORKED, cbr_lease_get(lease, &call));
  EXPECT(CBR_E_FORKED, cbr_lease_end(lease));
  EXPECT(CBR_E_FORKED, cbr_invalidate(token, CBR_REASON_ENDED));
  EXPECT(CBR_E_FORKED, cbr_invalidate(owner, CBR_REASON_ENDED));
  EXPECT(CBR_E_FORKED, cbr_invalidate(registry, CBR_REASON_ENDED));
  EXPECT(CBR_E_FORKED,
         cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  EXPECT(CBR_E_FORKED, cbr_object_died(registry, &token));
  EXPECT(CBR_E_FORKED, cbr_owner_create(registry, "child", &other));
  EXPECT(CBR_E_FORKED, cbr_registry_statistics(registry, &statistics));
  EXPECT(CBR_E_FORKED, cbr_registry_close(registry, CBR_FOREVER));
  EXPECT(CBR_E_FORKED, cbr_explain(token, text, sizeof text, NULL));
  EXPECT(CBR_E_FORKED, cbr_audit_note(registry, token, "from the child"));
  EXPECT(CBR_E_FORKED,
         cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
  life life = {0};
  EXPECT(CBR_E_FORKED, subject_register(registry, &life, CBR_NONE, &other));
  CHECK(!cbr_is_live(token) && !cbr_is_live(registry));
  EQUAL(0, token_life.destroyed);
}

static void use_own(const char *path) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = "child";
  options.history_path = path;
  options.level = path ? CBR_LEVEL_CALLS : CBR_LEVEL_OFF;
  cbr_registry own;
  EXPECT(CBR_OK, cbr_registry_open(&options, &own));
  life life = {0};
  cbr_token fresh;
  EXPECT(CBR_OK, subject_register(own, &life, CBR_NONE, &fresh));
  for (int each = 0; each < 10; each++)
    EXPECT(CBR_OK, subject_visit(fresh, &life));
  EXPECT(CBR_E_FORKED, subject_visit(token, &token_life));
  EQUAL(1, statistics_of(own).fork_handlers);
  close_registry(own);
  EQUAL(1, life.destroyed);
}

/* Runs a function in a child that is killed when it hangs. It ends by exit,
 * with all that runs then, or by _exit. True when its expectations held. */
static bool holds_in(void (*body)(const char *), const char *path,
                     bool exits) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(PATIENCE_SECONDS);
    leaves_things_behind = true;
    failures_of_test = 0;
    if (body) body(path);
    fflush(NULL);
    if (exits) exit(failures_of_test != 0);
    _exit(failures_of_test != 0);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void refused(const char *path) {
  (void)path;
  be_refused();
}

static void H1_childIsRefusedWhatItInherited(void) {
  make_world(CBR_LEVEL_CALLS);
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  CHECK(holds_in(refused, NULL, false));
  CHECK(holds_in(refused, NULL, true));
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  check_world(2, 0);
}

static void H2_childEndsAndTheHistoryStays(void) {
  make_world(CBR_LEVEL_CALLS);
  for (int each = 0; each < FORKS / 4; each++) {
    EXPECT(CBR_OK, subject_visit(token, &token_life));
    EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                   NULL));
    CHECK(holds_in(NULL, NULL, each % 2));
  }
  check_world(FORKS / 4, 0);
}

static void H3_oneForkHandlerForAThousandRegistries(void) {
  for (int each = 0; each < 1000; each++) {
    cbr_registry one = open_registry("one of many", each % 100 == 0
                                                        ? CBR_LEVEL_CALLS
                                                        : CBR_LEVEL_OFF);
    EQUAL(1, statistics_of(one).fork_handlers);
    close_registry(one);
  }
}

static void H4_childWritesAHistoryOfItsOwn(void) {
#ifdef THREAD_SANITIZER
  printf("skipped: a child of a process with threads starts a thread\n");
#else
  history own;
  make_world(CBR_LEVEL_CALLS);
  make_history(&own);
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  CHECK(holds_in(use_own, own.path, true));
  check_history(&own);
  EQUAL(10, number_in(&own, "SELECT count(*) FROM call"));
  remove_history(&own);
  check_world(1, 0);
#endif
}

/* The child of a fork in a callback is in no call. */
static pid_t child_of_callback;

static void fork_in_call(void *argument) {
  cbr_call *call = argument;
  child_of_callback = fork();
  if (child_of_callback != 0) return;
  alarm(PATIENCE_SECONDS);
  failures_of_test = 0;
  EQUAL(0, cbr_mark());
  EXPECT(CBR_E_FORKED, cbr_leave(call));
  be_refused();
  use_own(NULL);
  EXPECT(CBR_E_FORKED, cbr_leave(call));
  _exit(failures_of_test != 0);
}

static void H1_forkInACallback(void) {
  make_world(CBR_LEVEL_LIFECYCLE);
  cbr_call call;
  token_life.on_call = fork_in_call;
  token_life.argument = &call;
  EXPECT(CBR_OK, subject_enter(token, &token_life, &call));
  subject_run(&call);
  EXPECT(CBR_OK, subject_leave(&call, &token_life));
  int status = -1;
  CHECK(waitpid(child_of_callback, &status, 0) == child_of_callback);
  EQUAL(0, status);
  check_world(1, 0);
}

/* ----------------------------------------------- while other threads work */

static _Atomic bool is_over;
static _Atomic int forks;
static _Atomic int64_t calls_made;

/* Works all the time, but not so much that the history takes long to check. */
static void work(void *argument) {
  (void)argument;
  for (int done = 0; !atomic_load(&is_over); done++) {
    while (done > 40 * (atomic_load(&forks) + 1) && !atomic_load(&is_over))
      sched_yield();
    life life = {0};
    cbr_token other;
    EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &other));
    EXPECT(CBR_OK, subject_visit(token, &token_life));
    EXPECT(CBR_OK, subject_visit(other, &life));
    EXPECT(CBR_OK, cbr_invalidate(other, CBR_REASON_ENDED));
    EQUAL(1, life.destroyed);
    atomic_fetch_add(&calls_made, 2);
  }
}

static void J25_forksWhileThreadsWork(void) {
  enum { WORKERS = 3 };
  worker workers[WORKERS];
  history own;
  make_world(CBR_LEVEL_CALLS);
  make_history(&own);
  atomic_store(&is_over, false);
  atomic_store(&forks, 0);
  atomic_store(&calls_made, 0);
  for (int each = 0; each < WORKERS; each++)
    start(&workers[each], "worker", work, NULL);
  for (int each = 0; each < FORKS; each++) {
    switch (each % 4) {
      case 0: CHECK(holds_in(NULL, NULL, true)); break;
      case 1: CHECK(holds_in(refused, NULL, false)); break;
      case 2: CHECK(holds_in(use_own, NULL, true)); break;
      case 3:
#ifndef THREAD_SANITIZER
        CHECK(holds_in(use_own, own.path, true));
#endif
        break;
    }
    atomic_fetch_add(&forks, 1);
  }
  atomic_store(&is_over, true);
  for (int each = 0; each < WORKERS; each++) join(&workers[each]);
#ifndef THREAD_SANITIZER
  check_history(&own);
  EQUAL(FORKS / 4, number_in(&own, "SELECT count(*) FROM run"));
  EQUAL(10 * (FORKS / 4), number_in(&own, "SELECT count(*) FROM call"));
#endif
  remove_history(&own);
  check_world(atomic_load(&calls_made), 0);
}

/* -------------------------------------------------------------- exiting -- */

/* What a task has printed to stderr. */
static char printed[4096];

static void read_printed(int from) {
  size_t length = 0;
  for (ssize_t count = 1; count > 0; length += count > 0 ? count : 0)
    count = read(from, printed + length, sizeof printed - 1 - length);
  printed[length] = 0;
  close(from);
}

/* Runs a task of this program in a process of its own. */
static int run_task(const char *name, const char *path) {
  char *arguments[] = {"process", (char *)name, (char *)path, NULL};
  posix_spawn_file_actions_t actions;
  int ends[2] = {-1, -1}, status = -1;
  pid_t child;
  fflush(NULL);
  EQUAL(0, pipe2(ends, O_CLOEXEC));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  EQUAL(0, posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments,
                       environ));
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  read_printed(ends[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && status != 0) fputs(printed, stderr);
  return status;
}

static bool has_printed(const char *text) {
  return CHECK(strstr(printed, text) != NULL);
}

static void open_at(const char *path) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = path;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  EXPECT(CBR_OK, subject_register(registry, &token_life, CBR_NONE, &token));
}

static _Atomic int busy;

static void call_for_ever(void *argument) {
  (void)argument;
  for (int each = 0;; each++) {
    if (subject_visit(token, &token_life) != CBR_OK) abort();
    if (each == 100) atomic_fetch_add(&busy, 1);
  }
}

static void stay_inside(void *argument) {
  (void)argument;
  cbr_call call;
  if (cbr_enter(token, &call) != CBR_OK) abort();
  atomic_fetch_add(&busy, 1);
  for (;;) pause();
}

static void wait_for_ever(void *argument) {
  cbr_token other = *(cbr_token *)argument;
  atomic_fetch_add(&busy, 1);
  (void)!cbr_invalidate_wait(other, CBR_REASON_ENDED, CBR_FOREVER);
}

/* main returns while threads call, are inside, and wait. */
static int exit_with_threads(const char *path) {
  static worker workers[4];
  static life other_life;
  static cbr_token other;
  static cbr_lease_handle held;
  open_at(path);
  EXPECT(CBR_OK, subject_register(registry, &other_life, CBR_NONE, &other));
  EXPECT(CBR_OK, cbr_lease(other, &held));
  start(&workers[0], "caller", call_for_ever, NULL);
  start(&workers[1], "caller", call_for_ever, NULL);
  start(&workers[2], "insider", stay_inside, NULL);
  start(&workers[3], "waiter", wait_for_ever, &other);
  while (atomic_load(&busy) < 4) sched_yield();
  return failures_of_test != 0;
}

static void J22_exitWithThreadsInside(void) {
  make_history(&kept);
  EQUAL(0, run_task("exit_with_threads", kept.path));
  /* What was being written may be missing; what is there is right. */
  expect_no_rows(&kept, "SELECT * FROM violations");
  CHECK(number_in(&kept, "SELECT count(*) FROM call") > 200);
  remove_history(&kept);
}

/* Uses everything, after the library's own exit handler has run. */
static void use_at_exit(void) {
  life life = {0};
  cbr_token fresh;
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &fresh));
  EXPECT(CBR_OK, subject_visit(fresh, &life));
  EXPECT(CBR_OK, cbr_invalidate_wait(fresh, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(1, life.destroyed);
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
}

static void close_at_exit(void) {
  use_at_exit();
  close_registry(registry);
  if (failures_of_test) _exit(1);
}

static int use_in_exit_handlers(const char *path) {
  atexit(close_at_exit); /* runs last: it was there before the library */
  open_at(path);
  atexit(use_at_exit); /* runs first */
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  return failures_of_test != 0;
}

static void J22_exitHandlersUseTheLibrary(void) {
  make_history(&kept);
  EQUAL(0, run_task("use_in_exit_handlers", kept.path));
  check_history(&kept);
  EQUAL(5, number_in(&kept, "SELECT count(*) FROM call"));
  remove_history(&kept);
}

/* Processes that open a new history at the same time all get it. */
static void J25_aNewHistoryIsOpenedByManyAtOnce(void) {
#ifdef THREAD_SANITIZER
  printf("skipped: a child of a process with threads starts a thread\n");
  return;
#endif
  for (int round = 0; round < TIMES(20, 4); round++) {
    make_history(&kept);
    pid_t children[4];
    for (int each = 0; each < 4; each++) {
      children[each] = fork();
      if (children[each] != 0) continue;
      token_life = (life){0};
      open_at(kept.path);
      EXPECT(CBR_OK, subject_visit(token, &token_life));
      close_registry(registry);
      _exit(failures_of_test != 0);
    }
    for (int each = 0; each < 4; each++) {
      int status = 1;
      CHECK(waitpid(children[each], &status, 0) == children[each]);
      EQUAL(0, status);
    }
    EQUAL(4, number_in(&kept, "SELECT count(*) FROM run "
                              "WHERE ended = 'closed'"));
    EQUAL(4, number_in(&kept, "SELECT count(*) FROM call"));
    check_history(&kept);
    remove_history(&kept);
  }
}

/* Calls that are only counted, in a process that never closes: the counts are
 * written when it exits. What comes after that is kept until the history is
 * opened again. */
static void note_late(void) {
  EXPECT(CBR_OK, cbr_audit_note(registry, CBR_NONE, "late"));
  if (failures_of_test) _exit(1);
}

static int exit_counted(const char *path) {
  atexit(note_late); /* runs last: it was there before the library */
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = path;
  options.level = CBR_LEVEL_LIFECYCLE;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  token_life = (life){0};
  EXPECT(CBR_OK, subject_register(registry, &token_life, CBR_NONE, &token));
  for (int each = 0; each < 1000; each++)
    EXPECT(CBR_OK, subject_visit(token, &token_life));
  return failures_of_test != 0;
}

static void J22_exitKeepsCountsAndLateEvents(void) {
  make_history(&kept);
  EQUAL(0, run_task("exit_counted", kept.path));
  EQUAL(1000, number_in(&kept, "SELECT attempts FROM conservation "
                               "WHERE label = 'subject'"));
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = kept.path;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  close_registry(registry);
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM note WHERE text = 'late'"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run WHERE ended = 'exit'"));
  check_history(&kept);
  remove_history(&kept);
}

/* A process whose first thread ends by pthread_exit ends with its last one,
 * and the library's own do not count. */
static int leave_to_others(const char *path) {
  open_at(path);
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  if (failures_of_test) return 1;
  pthread_exit(NULL);
}

static void J22_firstThreadEndsByPthreadExit(void) {
#ifdef THREAD_SANITIZER
  printf("skipped: ThreadSanitizer has a thread of its own\n");
  return;
#endif
  make_history(&kept);
  EQUAL(0, run_task("leave_to_others", kept.path));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run WHERE ended = 'exit'"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM call"));
  check_history(&kept);
  remove_history(&kept);
}

/* H11: membarrier is refused, as some sandboxes do, by either error. */
static int run_without_membarrier(int error) {
  cbr_test_set_membarrier_error(error);
  open_at(NULL);
  EQUAL(0, statistics_of(registry).asymmetric);
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  EXPECT(CBR_E_STALE, subject_visit(token, &token_life));
  EQUAL(1, token_life.destroyed);
  close_registry(registry);
  return failures_of_test != 0;
}

static void H11_membarrierIsRefused(void) {
  EQUAL(0, run_task("no_membarrier", "EPERM"));
  EQUAL(0, run_task("no_membarrier", "ENOSYS"));
}

/* H11: it is taken away while calls rely on it. */
static int lose_membarrier(void) {
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  open_at(NULL);
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  cbr_test_set_membarrier_error(EPERM);
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
  EQUAL(0, statistics_of(registry).asymmetric); /* else it is not reached */
  close_registry(registry);
  return failures_of_test != 0;
}

static void H11_membarrierIsTakenAway(void) {
  registry = open_registry("of the parent", CBR_LEVEL_OFF);
  bool is_used = statistics_of(registry).asymmetric;
  close_registry(registry);
  int status = run_task("lose_membarrier", "-");
  if (!is_used) {
    EQUAL(0, status);
    return;
  }
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  has_printed("callbackregistry: membarrier was taken away");
  has_printed("CBR_FORCE_FALLBACK=1");
}

/* ------------------------------------------------------- what is shared -- */

enum { SHARED_CALLS = 3 };

/* Uses the shared registry, and closes it. */
static void use_shared(void) {
  life life = {0};
  cbr_token fresh;
  cbr_registry shared = cbr_registry_shared();
  CHECK(shared != CBR_NONE && shared == cbr_registry_shared());
  EXPECT(CBR_OK, subject_register(shared, &life, CBR_NONE, &fresh));
  for (int each = 0; each < SHARED_CALLS; each++)
    EXPECT(CBR_OK, subject_visit(fresh, &life));
  EXPECT(CBR_OK, cbr_invalidate(fresh, CBR_REASON_ENDED));
  EQUAL(1, life.destroyed);
  close_registry(shared);
  CHECK(cbr_registry_shared() != shared);
  close_registry(cbr_registry_shared());
}

static cbr_registry shared_of_parent;

static void use_shared_in_child(const char *path) {
  if (path) setenv("CBR_HISTORY", path, 1);
  CHECK(!cbr_is_live(shared_of_parent));
  EXPECT(CBR_E_FORKED, cbr_registry_close(shared_of_parent, CBR_FOREVER));
  CHECK(cbr_registry_shared() != shared_of_parent);
  use_shared();
}

static int share(void) {
  use_shared();
  return failures_of_test != 0;
}

static int share_in_child(const char *path) {
  shared_of_parent = cbr_registry_shared();
  EXPECT(CBR_OK, subject_register(shared_of_parent, &token_life, CBR_NONE,
                                  &token));
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  CHECK(holds_in(use_shared_in_child, path, true));
  CHECK(shared_of_parent == cbr_registry_shared());
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  close_registry(shared_of_parent);
  return failures_of_test != 0;
}

static int share_nothing(const char *expected) {
  EQUAL(CBR_NONE, cbr_registry_shared());
  CHECK(strstr(cbr_last_error(), expected) != NULL);
  EQUAL(CBR_NONE, cbr_registry_shared());
  return failures_of_test != 0;
}

static void set_shared(const char *path, const char *level) {
  unsetenv("CBR_HISTORY");
  unsetenv("CBR_LEVEL");
  if (path) setenv("CBR_HISTORY", path, 1);
  if (level) setenv("CBR_LEVEL", level, 1);
}

/* The environment says where and how much: rows of calls, calls that were
 * counted, and lives of tokens. */
static void J22_sharedByTheEnvironment(void) {
  static const struct {
    const char *level;
    int calls, counted, tokens;
  } rows[] = {{NULL, SHARED_CALLS, 0, 1},
              {"", SHARED_CALLS, 0, 1},
              {"calls", SHARED_CALLS, 0, 1},
              {"lifecycle", 0, SHARED_CALLS, 1},
              {"off", 0, 0, 0}};
  for (int each = 0; each < 5; each++) {
    WITHIN("CBR_LEVEL %s", rows[each].level ? rows[each].level : "unset");
    make_history(&kept);
    set_shared(kept.path, rows[each].level);
    EQUAL(0, run_task("share", "-"));
    check_history(&kept);
    EQUAL(2, number_in(&kept, "SELECT count(*) FROM run "
                              "WHERE ended = 'closed'"));
    EQUAL(rows[each].calls, number_in(&kept, "SELECT count(*) FROM call"));
    EQUAL(rows[each].counted,
          number_in(&kept, "SELECT coalesce(sum(counted_only), 0) "
                           "FROM conservation WHERE token = 'total'"));
    EQUAL(rows[each].tokens,
          number_in(&kept, "SELECT count(*) FROM token_life "
                           "WHERE kind = 'token'"));
    remove_history(&kept);
  }
  set_shared(NULL, NULL);
}

static void J22_sharedThatCannotBeOpened(void) {
  make_history(&kept);
  set_shared(kept.directory, NULL); /* a directory is no database */
  EQUAL(0, run_task("share_nothing", kept.directory));
  set_shared("/nowhere/at/all", "calls");
  EQUAL(0, run_task("share_nothing", "/nowhere/at/all"));
  set_shared(kept.path, "loud");
  EQUAL(0, run_task("share_nothing", "\"loud\""));
  remove_history(&kept);
  set_shared(NULL, NULL);
}

/* A child has a shared registry of its own, beside its parent's: in a file of
 * its own, or as runs of its own in the parent's. */
static void H4_childSharesARegistryOfItsOwn(void) {
#ifdef THREAD_SANITIZER
  printf("skipped: a child of a process with threads starts a thread\n");
#else
  history own;
  make_history(&kept);
  make_history(&own);
  set_shared(kept.path, "calls");
  EQUAL(0, run_task("share_in_child", own.path));
  set_shared(NULL, NULL);
  check_history(&kept);
  check_history(&own);
  EQUAL(2, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(1, number_in(&kept, "SELECT count(*) FROM run"));
  EQUAL(SHARED_CALLS, number_in(&own, "SELECT count(*) FROM call"));
  remove_history(&own);
  remove_history(&kept);
  make_history(&kept);
  set_shared(kept.path, "calls");
  EQUAL(0, run_task("share_in_child", kept.path));
  set_shared(NULL, NULL);
  check_history(&kept);
  EQUAL(2 + SHARED_CALLS, number_in(&kept, "SELECT count(*) FROM call"));
  EQUAL(3, number_in(&kept, "SELECT count(*) FROM run "
                            "WHERE ended = 'closed'"));
  remove_history(&kept);
#endif
}

/* ------------------------------------------------------- an earlier run -- */

/* Registers and ends a token, and says which it was. */
static int remember(const char *path) {
  open_at(path);
  EXPECT(CBR_OK, subject_visit(token, &token_life));
  EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_CANCELLED));
  close_registry(registry);
  if (failures_of_test == 0)
    fprintf(stderr, "%llx", (unsigned long long)token);
  return failures_of_test != 0;
}

static int recall(const char *path) {
  char text[4096];
  cbr_token old = strtoull(getenv("CBR_TEST_TOKEN"), NULL, 16);
  open_at(path);
  CHECK(token != old && !cbr_is_live(old));
  EXPECT(CBR_E_STALE, subject_visit(old, &token_life));
  EXPECT(CBR_E_STALE, cbr_invalidate(old, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_explain(old, text, sizeof text, NULL));
  CHECK(strstr(text, "\"subject\"") != NULL);
  CHECK(strstr(text, "cancelled") != NULL);
  close_registry(registry);
  return failures_of_test != 0;
}

/* C22: refused, yet explained by the file. */
static void C22_tokenOfAnEarlierRun(void) {
  make_history(&kept);
  EQUAL(0, run_task("remember", kept.path));
  setenv("CBR_TEST_TOKEN", printed, 1);
  EQUAL(0, run_task("recall", kept.path));
  unsetenv("CBR_TEST_TOKEN");
  check_history(&kept);
  EQUAL(2, number_in(&kept, "SELECT count(*) FROM run"));
  remove_history(&kept);
}

/* ----------------------------------------------------------- what leaks -- */

static int leak(void) {
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.strictness = CBR_STRICT_LEAKS;
  EXPECT(CBR_OK, cbr_registry_open(&options, &registry));
  struct counted context = {0};
  cbr_token ended = add(registry, "was ended", &context, true, CBR_NONE);
  add(registry, "left alone", &context, true, CBR_NONE);
  EXPECT(CBR_OK, cbr_invalidate(ended, CBR_REASON_ENDED));
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "forgotten";
  what.function = (cbr_function)count_call;
  what.context = &context;
  what.line = 4711;
  what.file = "somewhere.c";
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  close_registry(registry);
  return failures_of_test != 0;
}

static void D6_leaksArePrinted(void) {
  EQUAL(0, run_task("leak", "-"));
  has_printed("still live at close: ");
  has_printed("\"forgotten\" at somewhere.c:4711");
  has_printed("\"left alone\" at ");
  CHECK(strstr(printed, "was ended") == NULL);
  EQUAL('\n', printed[strlen(printed) - 1]);
  CHECK(strchr(printed, '\n') == printed + strlen(printed) - 1);
}

/* Threads that begin to use the library at the same moment. */
enum { FIRST = 8 };
static pthread_barrier_t first_barrier;

static void use_first(void *argument) {
  cbr_registry *own = argument;
  life life = {0};
  cbr_token fresh;
  pthread_barrier_wait(&first_barrier);
  *own = open_registry("first", CBR_LEVEL_OFF);
  EXPECT(CBR_OK, subject_register(*own, &life, CBR_NONE, &fresh));
  EXPECT(CBR_OK, subject_visit(fresh, &life));
  EXPECT(CBR_OK, cbr_invalidate(fresh, CBR_REASON_ENDED));
  EQUAL(1, statistics_of(*own).fork_handlers);
  close_registry(*own);
}

static int use_first_at_once(void) {
  worker workers[FIRST];
  cbr_registry registries[FIRST];
  pthread_barrier_init(&first_barrier, NULL, FIRST);
  for (int each = 0; each < FIRST; each++)
    start(&workers[each], "first", use_first, &registries[each]);
  for (int each = 0; each < FIRST; each++) join(&workers[each]);
  for (int each = 1; each < FIRST; each++)
    CHECK(registries[each] != registries[0]);
  return failures_of_test != 0;
}

static void H3_firstUseByManyAtOnce(void) {
  for (int each = 0; each < 5; each++)
    EQUAL(0, run_task("use_first_at_once", "-"));
}

static int run_named(const char *name, const char *argument) {
  leaves_things_behind = true;
  if (strcmp(name, "exit_with_threads") == 0)
    return exit_with_threads(argument);
  if (strcmp(name, "use_in_exit_handlers") == 0)
    return use_in_exit_handlers(argument);
  if (strcmp(name, "exit_counted") == 0) return exit_counted(argument);
  if (strcmp(name, "leave_to_others") == 0) return leave_to_others(argument);
  if (strcmp(name, "use_first_at_once") == 0) return use_first_at_once();
  if (strcmp(name, "lose_membarrier") == 0) return lose_membarrier();
  if (strcmp(name, "share") == 0) return share();
  if (strcmp(name, "share_in_child") == 0) return share_in_child(argument);
  if (strcmp(name, "share_nothing") == 0) return share_nothing(argument);
  if (strcmp(name, "remember") == 0) return remember(argument);
  if (strcmp(name, "recall") == 0) return recall(argument);
  if (strcmp(name, "leak") == 0) return leak();
  return run_without_membarrier(strcmp(argument, "EPERM") ? ENOSYS : EPERM);
}

int main(int count, char **arguments) {
  if (count == 3) return run_named(arguments[1], arguments[2]);
  TEST(H1_childIsRefusedWhatItInherited);
  TEST(H2_childEndsAndTheHistoryStays);
  TEST(H3_oneForkHandlerForAThousandRegistries);
  TEST(H3_firstUseByManyAtOnce);
  TEST(H4_childWritesAHistoryOfItsOwn);
  TEST(H1_forkInACallback);
  TEST(J25_forksWhileThreadsWork);
  TEST(J22_exitWithThreadsInside);
  TEST(J25_aNewHistoryIsOpenedByManyAtOnce);
  TEST(J22_exitHandlersUseTheLibrary);
  TEST(J22_exitKeepsCountsAndLateEvents);
  TEST(J22_firstThreadEndsByPthreadExit);
  TEST(H11_membarrierIsRefused);
  TEST(H11_membarrierIsTakenAway);
  TEST(J22_sharedByTheEnvironment);
  TEST(J22_sharedThatCannotBeOpened);
  TEST(H4_childSharesARegistryOfItsOwn);
  TEST(C22_tokenOfAnEarlierRun);
  TEST(D6_leaksArePrinted);
  return finish();
}

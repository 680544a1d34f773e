/* SPDX-License-Identifier: Apache-2.0
 *
 * Several processes that record in one history: one of them at a time writes
 * it (J33), and what one leaves that dies is taken over by the others (J3).
 *
 * The other process is this program again, with the name of what it does and
 * the history's path. It says and hears one letter at a time.
 */
#include "history.h"
#include "subject.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

enum { CALLS = 50 };

typedef struct process {
  pid_t number;
  int to, from;
} process;

static void nothing(void *context) { (void)context; }

static cbr_token recorded_as(cbr_registry registry, const char *label) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, label, nothing, NULL, NULL, CBR_NONE,
                              &token));
  return token;
}

static process start_process(const char *what, const history *it) {
  int to[2], from[2];
  CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  char *arguments[] = {"processes", (char *)what, (char *)it->path, NULL};
  process other = {-1, to[1], from[0]};
  EQUAL(0, posix_spawn(&other.number, "/proc/self/exe", &actions, NULL,
                       arguments, environ));
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  return other;
}

static void say(int to) { CHECK(write(to, "x", 1) == 1); }

static void hear(int from) {
  char letter;
  CHECK(read(from, &letter, 1) == 1);
}

/* Waits for the end of a process, and expects how it ends. */
static void await_end(process *other, int with_signal) {
  int status = 0;
  CHECK(waitpid(other->number, &status, 0) == other->number);
  if (with_signal)
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == with_signal);
  else
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(other->to);
  close(other->from);
}

static void await_number(const history *it, const char *query,
                         int64_t number) {
  struct timespec now, until = patience_(CLOCK_MONOTONIC);
  while (number_in(it, query) != number) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec) stuck_(query, "is never so");
    sched_yield();
  }
}

/* ------------------------------------------------- What others do ------ */

static void record_and_die(const history *it) {
  cbr_registry registry = open_to_history(it, "other", CBR_LEVEL_CALLS);
  call_repeatedly(recorded_as(registry, "dying"), CALLS);
  kill(getpid(), SIGKILL);
}

static void die_with_lease(int32_t point, uint64_t handle) {
  (void)handle;
  if (point == BATCH_BEGAN) kill(getpid(), SIGKILL);
}

static void die_while_writing(const history *it) {
  cbr_registry registry = open_to_history(it, "other", CBR_LEVEL_CALLS);
  cbr_test_set_hook(die_with_lease);
  call_repeatedly(recorded_as(registry, "dying"), CALLS);
  (void)cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL);
}

/* Cannot write until it is let. */
static void write_in_turn(const history *it) {
  cbr_registry registry = open_to_history(it, "other", CBR_LEVEL_CALLS);
  say(1);
  hear(0);
  call_repeatedly(recorded_as(registry, "waiting"), CALLS);
  EXPECT(CBR_E_TIMEOUT, cbr_audit_flush(registry, CBR_FLUSH_DATABASE,
                                        300000000, NULL));
  say(1);
  hear(0);
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  close_registry(registry);
}

/* ------------------------------------------------------------- Tests ----- */

static void J3_whoGoesOnTakesOverFromWhoDied(void) {
  history it;
  cbr_registry registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  cbr_token token = recorded_as(registry, "living");
  call_repeatedly(token, CALLS);
  process other = start_process("die", &it);
  await_end(&other, SIGKILL);
  await_number(&it, "SELECT count(*) FROM run WHERE ended = 'crash'", 1);
  EQUAL(CALLS, number_in(&it, "SELECT count(*) FROM call "
                              "JOIN callback USING (callback) "
                              "WHERE label = 'dying'"));
  call_repeatedly(token, CALLS);
  close_registry(registry);
  EQUAL(2 * CALLS, number_in(&it, "SELECT count(*) FROM call "
                                  "JOIN callback USING (callback) "
                                  "WHERE label = 'living'"));
  check_history(&it);
  remove_history(&it);
}

/* While the log is copied SQLite itself would let others write. */
static void J33_nobodyWritesWhileTheLogIsCopied(void) {
  history it;
  cbr_registry registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  process other = start_process("write in turn", &it);
  hear(other.from);
  gate copied = GATE(LOG_COPIED, CBR_NONE, NULL);
  close_gate(&copied);
  call_repeatedly(recorded_as(registry, "copying"), CALLS);
  await_gate(&copied);
  say(other.to);
  hear(other.from);
  open_gate(&copied);
  say(other.to);
  await_end(&other, 0);
  close_registry(registry);
  EQUAL(2 * CALLS, number_in(&it, "SELECT count(*) FROM call"));
  check_history(&it);
  remove_history(&it);
}

static void J33_theLeaseOfADeadWriterIsFree(void) {
  history it;
  cbr_registry registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  process other = start_process("die while writing", &it);
  await_end(&other, SIGKILL);
  call_repeatedly(recorded_as(registry, "living"), CALLS);
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  await_number(&it, "SELECT count(*) FROM call", 2 * CALLS);
  close_registry(registry);
  check_history(&it);
  remove_history(&it);
}

static void J33_theLeaseIsThereWhileTheHistoryIsOpen(void) {
  history it;
  char path[96];
  cbr_registry registry = open_with_history(&it, "here", CBR_LEVEL_CALLS);
  snprintf(path, sizeof path, "%s.lease", it.path);
  CHECK(access(path, F_OK) == 0);
  /* Who removes it by hand stops nobody. */
  CHECK(unlink(path) == 0);
  call_repeatedly(recorded_as(registry, "living"), CALLS);
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  CHECK(access(path, F_OK) == 0);
  close_registry(registry);
  CHECK(access(path, F_OK) != 0);
  check_history(&it);
  remove_history(&it);
}

static int be_other(const char *what, const char *path) {
  history it;
  snprintf(it.path, sizeof it.path, "%s", path);
  if (strcmp(what, "die") == 0) record_and_die(&it);
  if (strcmp(what, "die while writing") == 0) die_while_writing(&it);
  if (strcmp(what, "write in turn") == 0) write_in_turn(&it);
  return failures_of_test || tests_failed ? 1 : 0;
}

int main(int count, char **arguments) {
  if (count > 2) return be_other(arguments[1], arguments[2]);
  TEST(J3_whoGoesOnTakesOverFromWhoDied);
  TEST(J33_nobodyWritesWhileTheLogIsCopied);
  TEST(J33_theLeaseOfADeadWriterIsFree);
  TEST(J33_theLeaseIsThereWhileTheHistoryIsOpen);
  return finish();
}

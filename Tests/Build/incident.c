/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the history that Documentation/AuditCookbook.md asks:
 *
 *   incident HISTORY
 *
 * Seven processes write it, one after the other, and the third one is killed.
 * Ends with status 75 when the machine was too slow for what must happen
 * within a millisecond; then it is to be recorded anew. */
#define _GNU_SOURCE
#include <callback_registry.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TOO_SLOW = 75, MILLISECOND = 1000000 };

static cbr_registry registry;
static cbr_token frame, progress, download;
static atomic_int inside, is_over;
static sem_t has_ended;
static atomic_int is_slow;
static unsigned long long ended_at;

static int check(cbr_status status) {
  if (status >= 0) return status;
  fprintf(stderr, "%s: %s\n", cbr_status_name(status), cbr_last_error());
  exit(EXIT_FAILURE);
}

static void expect(cbr_status wanted, cbr_status status) {
  if (status == wanted) return;
  fprintf(stderr, "%s instead of %s\n", cbr_status_name(status),
          cbr_status_name(wanted));
  exit(EXIT_FAILURE);
}

static unsigned long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void pause_for(int milliseconds) {
  struct timespec time = {milliseconds / 1000,
                          milliseconds % 1000 * MILLISECOND};
  nanosleep(&time, NULL);
}

/* Durations that are compared are to differ as they were meant to. */
static void last(int milliseconds) {
  unsigned long long began = now();
  pause_for(milliseconds);
  if (now() - began > (milliseconds + 8ull) * MILLISECOND) is_slow = 1;
}

static void wait_until(atomic_int *value, int wanted) {
  while (atomic_load(value) < wanted) pause_for(1);
}

static pthread_t start(const char *name, void *(*function)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, NULL)) abort();
  pthread_setname_np(thread, name);
  return thread;
}

static void take(void *context) { (void)context; }
static void take_long(void *context) { last(*(int *)context); }

static void call(cbr_token token) {
  CBR_CALL(token, void (*)(void *), (cbr_now.context));
}

static void hold(cbr_token token, int milliseconds) {
  cbr_call held;
  check(cbr_enter(token, &held));
  atomic_fetch_add(&inside, 1);
  last(milliseconds);
  check(cbr_leave(&held));
}

/* Limits: 10 000 calls and 10 000 other events are kept. */
static void night(cbr_registry_options *options) {
  cbr_token poll;
  options->label = "night";
  options->max_calls = options->max_events = 10000;
  check(cbr_registry_open(options, &registry));
  check(CBR_REGISTER(registry, "poll", take, NULL, NULL, CBR_NONE, &poll));
  for (int round = 0; round < 120; round++) {
    for (int each = 0; each < 100; each++) call(poll);
    check(cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
  }
  for (int round = 0; round < 120; round++) {
    for (int each = 0; each < 100; each++)
      check(cbr_audit_note(registry, poll, "polled"));
    check(cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
  }
  check(cbr_invalidate(poll, CBR_REASON_ENDED));
}

static void *decode(void *unused) {
  (void)unused;
  pause_for(5);
  hold(frame, 60);
  return NULL;
}

static void *receive(void *unused) {
  (void)unused;
  pause_for(5);
  hold(progress, 70);
  cbr_call late;
  wait_until(&is_over, 1);
  for (int attempt = 0; attempt < 3; attempt++)
    expect(CBR_E_STALE, cbr_enter(frame, &late));
  return NULL;
}

static void *press_stop(void *unused) {
  (void)unused;
  pause_for(5);
  /* The first event of a thread takes its time: memory is made for it. */
  check(cbr_audit_note(registry, CBR_NONE, "the window is shown"));
  wait_until(&inside, 2);
  pause_for(10);
  ended_at = now();
  check(cbr_audit_note(registry, frame, "stop was pressed"));
  expect(CBR_OK, cbr_invalidate(frame, CBR_REASON_CANCELLED));
  sem_post(&has_ended);
  return NULL;
}

/* An owner's death, leaks, and an end while others are inside. */
static void day(cbr_registry_options *options) {
  int milliseconds[] = {50, 40, 30};
  cbr_owner session, window;
  cbr_token subtitle, ready, volume;
  options->label = "player";
  check(cbr_registry_open(options, &registry));
  check(cbr_owner_create(registry, "session", &session));
  check(cbr_owner_create(registry, "window", &window));
  check(CBR_REGISTER(registry, "frame", take, NULL, NULL, session, &frame));
  check(CBR_REGISTER(registry, "subtitle", take_long, milliseconds, NULL,
                     session, &subtitle));
  check(CBR_REGISTER(registry, "progress", take, NULL, NULL, window,
                     &progress));
  check(CBR_REGISTER(registry, "volume", take, NULL, NULL, window, &volume));
  cbr_registration once = CBR_REGISTRATION_INIT;
  once.label = "ready";
  once.context = malloc(1);
  once.destroy = free;
  once.function = CBR_FUNCTION_CAST_(cbr_function, take);
  once.flags = CBR_ONE_SHOT;
  check(cbr_register(registry, &once, &ready));
  check(cbr_audit_note(registry, CBR_NONE, "film.mkv is opened"));

  cbr_call refused;
  call(ready);
  expect(CBR_E_CONSUMED, cbr_enter(ready, &refused));
  for (int each = 0; each < 5; each++) call(frame);
  for (int each = 0; each < 3; each++) {
    milliseconds[0] = milliseconds[each];
    call(subtitle);
  }
  check(cbr_audit_level(volume, CBR_LEVEL_LIFECYCLE));
  for (int each = 0; each < 4; each++) call(volume);
  size_t mark = cbr_mark();
  cbr_call left_behind;
  check(cbr_enter(volume, &left_behind));
  check(cbr_unwind(mark));
  cbr_lease_handle lease;
  check(cbr_lease(progress, &lease));
  check(cbr_lease_end(lease));

  unsigned long long began = now();
  sem_init(&has_ended, 0, 0);
  pthread_t decoder = start("decoder", decode);
  pthread_t network = start("network", receive);
  pthread_t ui = start("ui", press_stop);
  while (sem_wait(&has_ended)) continue;
  expect(CBR_E_STALE, cbr_enter(frame, &refused));
  if (now() - ended_at > MILLISECOND * 4 / 5) is_slow = 1;
  if (ended_at - began > 40 * MILLISECOND) is_slow = 1;
  pthread_join(ui, NULL);
  pthread_join(decoder, NULL);
  atomic_store(&is_over, 1);
  pthread_join(network, NULL);
  if (is_slow) exit(TOO_SLOW);

  check(cbr_invalidate_wait(session, CBR_REASON_ENDED, CBR_FOREVER));
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
}

static void *receive_for_ever(void *unused) {
  (void)unused;
  pause_for(5);
  hold(download, 60000);
  return NULL;
}

static cbr_reply question;

static void ask(void *context, cbr_task task, const void *response,
                size_t size, cbr_reply reply) {
  (void)context, (void)task, (void)response, (void)size;
  question = reply;
}

static void receive_data(void *context, cbr_task task, const void *bytes,
                         size_t size) {
  (void)context, (void)task, (void)bytes, (void)size;
}

static void complete(void *context, cbr_task task, int error) {
  (void)context, (void)task, (void)error;
}

static cbr_token add_delegate(const char *label) {
  const cbr_function methods[CBR_SESSION_METHODS] = {
      CBR_FUNCTION_CAST_(cbr_function, ask),
      CBR_FUNCTION_CAST_(cbr_function, receive_data),
      CBR_FUNCTION_CAST_(cbr_function, complete)};
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token;
  what.label = label;
  what.interface = cbr_session_interface();
  what.methods = methods;
  check(cbr_register(registry, &what, &token));
  return token;
}

static cbr_session begin_session(const char *label, cbr_token delegate) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session;
  options.label = label;
  options.delegate = delegate;
  check(cbr_session_create(registry, &options, &session));
  return session;
}

static cbr_task begin_task(cbr_session session, const char *label) {
  cbr_task_options options = CBR_TASK_OPTIONS_INIT;
  cbr_task task;
  options.label = label;
  check(cbr_task_begin(session, &options, &task));
  return task;
}

/* Killed, with calls in flight on two threads. */
static void crash(cbr_registry_options *options) {
  cbr_owner session;
  cbr_call outer, inner;
  options->label = "player";
  check(cbr_registry_open(options, &registry));
  check(cbr_owner_create(registry, "session", &session));
  check(CBR_REGISTER(registry, "download", take, NULL, NULL, session,
                     &download));
  check(CBR_REGISTER(registry, "frame", take, NULL, NULL, session, &frame));
  check(CBR_REGISTER(registry, "thumbnail", take, NULL, NULL, session,
                     &progress));
  cbr_session film = begin_session("film", add_delegate("screen"));
  check(cbr_task_respond(begin_task(film, "part 1"), NULL, 0));
  check(cbr_session_finish(film));
  start("network", receive_for_ever);
  wait_until(&inside, 1);
  check(cbr_enter(frame, &outer));
  check(cbr_enter(progress, &inner));
  check(cbr_audit_note(registry, progress, "the picture is too large"));
  kill(getpid(), SIGKILL);
}

/* More calls a second than are written. */
static void rush(cbr_registry_options *options) {
  cbr_token meter;
  options->label = "rush";
  options->calls_per_second = 1000;
  check(cbr_registry_open(options, &registry));
  check(CBR_REGISTER(registry, "meter", take, NULL, NULL, CBR_NONE, &meter));
  for (int each = 0; each < 20000; each++) call(meter);
  check(cbr_invalidate(meter, CBR_REASON_REPLACED));
}

/* Calls for which there is no room are dropped. */
static void flood(cbr_registry_options *options) {
  cbr_token sample;
  options->label = "flood";
  options->calls_per_second = UINT64_MAX;
  options->ring_bytes = 4096;
  options->calls_overflow = CBR_OVERFLOW_DROP;
  check(cbr_registry_open(options, &registry));
  check(CBR_REGISTER(registry, "sample", take, NULL, NULL, CBR_NONE,
                     &sample));
  for (int each = 0; each < 200000; each++) call(sample);
  check(cbr_invalidate(sample, CBR_REASON_ENDED));
}

static const char *path;

/* Somebody else locks the history, longer than the writer is patient. */
static void morning(cbr_registry_options *options) {
  char command[512], sign[512];
  options->label = "morning";
  check(cbr_registry_open(options, &registry));
  snprintf(command, sizeof(command), "sqlite3 '%s'", path);
  snprintf(sign, sizeof(sign), "%s.locked", path);
  FILE *shell = popen(command, "w");
  if (!shell) abort();
  fprintf(shell, ".timeout 5000\nBEGIN IMMEDIATE;\n"
                 ".shell touch '%s'; sleep 6\nROLLBACK;\n", sign);
  fflush(shell);
  while (unlink(sign) != 0) pause_for(10);
  check(cbr_audit_note(registry, CBR_NONE, "good morning"));
  if (pclose(shell)) abort();
  check(cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
}

static cbr_disposition hear(void *context, void *argument) {
  (void)context, (void)argument;
  return CBR_CONTINUE;
}

static cbr_token connect_to(cbr_signal signal, const char *label) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  cbr_token token;
  what.label = label;
  what.function = CBR_FUNCTION_CAST_(cbr_function, hear);
  check(cbr_connect(signal, &what, NULL, &token));
  return token;
}

/* A controller's death clears its slots; a handler is blocked for a while. */
static void evening_windows(void) {
  cbr_owner page;
  cbr_token controller;
  cbr_slot list, search;
  check(cbr_owner_create(registry, "page", &page));
  check(CBR_REGISTER(registry, "controller", take, NULL, NULL, page,
                     &controller));
  check(cbr_slot_create(registry, "list.delegate", CBR_NONE, &list));
  check(cbr_slot_create(registry, "search.delegate", CBR_NONE, &search));
  check(cbr_slot_set(list, controller));
  check(cbr_slot_set(search, controller));
  check(cbr_invalidate(page, CBR_REASON_ENDED));

  cbr_signal changed;
  check(cbr_signal_create(registry, "settings changed", CBR_NONE, &changed));
  cbr_token theme = connect_to(changed, "theme");
  connect_to(changed, "language");
  check(cbr_block(theme));
  check(cbr_emit(changed, NULL, NULL));
  check(cbr_unblock(theme));
  check(cbr_emit(changed, NULL, NULL));
  check(cbr_invalidate(changed, CBR_REASON_ENDED));
}

static void redraw(void *context, void *payload) {
  (void)context, (void)payload;
}

/* A queue keeps the newest two; one is delivered, then the receiver goes. */
static void evening_queue(void) {
  cbr_queue queue;
  cbr_token window;
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  options.label = "main loop";
  options.kind = CBR_QUEUE_PUMPED;
  options.overflow = CBR_QUEUE_DROP_OLDEST;
  options.max_items = 2;
  check(cbr_queue_create(registry, &options, &queue));
  check(CBR_REGISTER(registry, "redraw", redraw, NULL, NULL, CBR_NONE,
                     &window));
  cbr_message message = CBR_MESSAGE_INIT;
  size_t ran;
  for (int each = 0; each < 5; each++)
    check(cbr_post(queue, window, &message));
  check(cbr_queue_run(queue, 1, &ran));
  check(cbr_invalidate(window, CBR_REASON_ENDED));
  check(cbr_queue_run(queue, 0, &ran));
  check(cbr_invalidate(queue, CBR_REASON_ENDED));
}

/* One session comes to its end, one is cancelled while it waits for a reply,
 * and one has lost its delegate. */
static void evening(cbr_registry_options *options) {
  options->label = "evening";
  check(cbr_registry_open(options, &registry));
  evening_windows();
  evening_queue();
  cbr_token reader = add_delegate("reader"), viewer = add_delegate("viewer");
  cbr_session pages = begin_session("pages", reader);
  cbr_task index = begin_task(pages, "index.html");
  check(cbr_task_respond(index, NULL, 0));
  check(cbr_reply_send(question, CBR_ALLOW, CBR_NONE));
  check(cbr_task_data(index, "<html>", 6));
  check(cbr_task_complete(index, 0));
  check(cbr_session_finish(pages));

  cbr_session styles = begin_session("styles", reader);
  cbr_task style = begin_task(styles, "style.css");
  check(cbr_task_respond(style, NULL, 0));
  check(cbr_task_data(style, "body {", 6));
  check(cbr_task_data(style, "}", 1));
  check(cbr_session_cancel(styles));

  cbr_session pictures = begin_session("pictures", viewer);
  begin_task(pictures, "photo.jpg");
  check(cbr_invalidate(viewer, CBR_REASON_ENDED));
  check(cbr_invalidate(reader, CBR_REASON_ENDED));
}

/* Does it in a process of its own; returns how that ended. */
static int run(void (*scene)(cbr_registry_options *)) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
    options.history_path = path;
    scene(&options);
    check(cbr_registry_close(registry, CBR_FOREVER));
    exit(EXIT_SUCCESS);
  }
  if (waitpid(child, &status, 0) != child) abort();
  if (WIFEXITED(status) && WEXITSTATUS(status)) exit(WEXITSTATUS(status));
  return status;
}

/* What is left of the rings of some process whose disk was full. */
static void leave_rubbish(void) {
  char name[512];
  snprintf(name, sizeof(name), "%s.rings/%s.ring", path,
           "00000000-0000-4000-8000-000000000000");
  FILE *file = fopen(name, "w");
  if (!file || fputs("rubbish", file) < 0 || fclose(file)) abort();
}

int main(int count, char **arguments) {
  if (count != 2) return EXIT_FAILURE;
  path = arguments[1];
  if (run(night) || run(day)) return EXIT_FAILURE;
  if (!WIFSIGNALED(run(crash))) return EXIT_FAILURE;
  leave_rubbish();
  if (run(rush) || run(flood) || run(morning) || run(evening))
    return EXIT_FAILURE;
  return EXIT_SUCCESS;
}

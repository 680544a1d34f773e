/* SPDX-License-Identifier: Apache-2.0
 *
 * Timeouts of tasks, replies and completions on a queue's clock (G24, G27).
 *
 * This program's clock_gettime takes the place of the system's in the library,
 * too: so a test moves the clock instead of waiting. Those that wait for the
 * kernel's own timers come first, before it has been moved.
 */
#include "history.h"
#include "messages.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/epoll.h>

static _Atomic int64_t clock_is_ahead; /* seconds */

int clock_gettime(clockid_t clock, struct timespec *out) {
  int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_MONOTONIC) out->tv_sec += atomic_load(&clock_is_ahead);
  return result;
}

static void pass_seconds(int64_t seconds) {
  atomic_fetch_add(&clock_is_ahead, seconds);
}

static const uint64_t second = 1000000000, millisecond = 1000000;

static cbr_registry registry;

/* What a delegate has been told, as letters: r response, d data, c complete,
 * x timed out, k cancelled, h hand-over, i invalid. */
typedef struct delegate delegate;
struct delegate {
  char told[32];
  _Atomic int count, complete, timed_out, invalid, inside;
  cbr_token token;
  cbr_task task;
  cbr_reply reply;
  cbr_reason reason;
  void (*act)(delegate *self, char what);
};

static void tell(delegate *self, char what) {
  EQUAL(0, atomic_fetch_add(&self->inside, 1)); /* one at a time */
  int count = atomic_fetch_add(&self->count, 1);
  if (count < 31) self->told[count] = what;
  if (self->act) self->act(self, what);
  atomic_fetch_sub(&self->inside, 1);
}

static void did_receive_response(void *context, cbr_task task,
                                 const void *response, size_t size,
                                 cbr_reply reply) {
  (void)task;
  (void)response;
  (void)size;
  ((delegate *)context)->reply = reply;
  tell(context, 'r');
}

static void did_receive_data(void *context, cbr_task task, const void *bytes,
                             size_t size) {
  (void)task;
  (void)bytes;
  (void)size;
  tell(context, 'd');
}

static void did_complete(void *context, cbr_task task, int error) {
  delegate *self = context;
  (void)task;
  atomic_fetch_add(&self->complete, 1);
  if (error == CBR_TASK_TIMED_OUT) atomic_fetch_add(&self->timed_out, 1);
  tell(self, error == CBR_TASK_TIMED_OUT   ? 'x'
             : error == CBR_TASK_CANCELLED ? 'k'
                                           : 'c');
}

static void did_become_invalid(void *context, cbr_session session,
                               cbr_reason reason) {
  delegate *self = context;
  (void)session;
  self->reason = reason;
  atomic_fetch_add(&self->invalid, 1);
  tell(self, 'i');
}

static void did_hand_over(void *context, cbr_task task, cbr_token successor) {
  (void)task;
  (void)successor;
  tell(context, 'h');
}

#define AS_FUNCTION(function) ((cbr_function)(uintptr_t)(function))

static void add_delegate(delegate *self) {
  static const cbr_function methods[CBR_SESSION_METHODS] = {
      AS_FUNCTION(did_receive_response), AS_FUNCTION(did_receive_data),
      AS_FUNCTION(did_complete), AS_FUNCTION(did_become_invalid),
      AS_FUNCTION(did_hand_over)};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "delegate";
  what.interface = cbr_session_interface();
  what.methods = methods;
  what.context = self;
  EXPECT(CBR_OK, cbr_register(registry, &what, &self->token));
}

static cbr_session add_session(delegate *self, cbr_queue queue) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session = CBR_NONE;
  options.label = "downloads";
  options.delegate = self->token;
  options.queue = queue;
  EXPECT(CBR_OK, cbr_session_create(registry, &options, &session));
  return session;
}

static cbr_status begin(cbr_session session, uint64_t timeout_ns,
                        uint64_t reply_timeout_ns, cbr_disposition unanswered,
                        cbr_task *out) {
  cbr_task_options options = CBR_TASK_OPTIONS_INIT;
  options.label = "photo.jpg";
  options.timeout_ns = timeout_ns;
  options.reply_timeout_ns = reply_timeout_ns;
  options.unanswered = unanswered;
  return cbr_task_begin(session, &options, out);
}

static cbr_task add_task(cbr_session session, uint64_t timeout_ns,
                         uint64_t reply_timeout_ns,
                         cbr_disposition unanswered) {
  cbr_task task = CBR_NONE;
  EXPECT(CBR_OK, begin(session, timeout_ns, reply_timeout_ns, unanswered,
                       &task));
  return task;
}

static void expect_told(const delegate *self, const char *what) {
  if (strcmp(self->told, what) == 0) return;
  fprintf(stderr, "told %s instead of %s\n", self->told, what);
  fail_();
}

/* A queue under test, pumped or not: what is due there is done until a
 * condition holds. Its thread sleeps by the kernel's clock, so a message wakes
 * it. */
static const uint32_t kinds[] = {CBR_QUEUE_PUMPED, CBR_QUEUE_THREAD};
#define EACH_KIND                                                          \
  for (int kind = 0; kind < 2 && (WITHIN("kind %u", kinds[kind]), true);   \
       kind++)

static void nothing(void *context, void *payload) {
  (void)context;
  (void)payload;
}

static void wake(cbr_queue queue) {
  cbr_token token = CBR_NONE;
  if (cbr_queue_descriptor(queue) >= 0) {
    EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
    return;
  }
  EXPECT(CBR_OK, CBR_REGISTER(registry, "nothing", nothing, NULL, NULL,
                              CBR_NONE, &token));
  EXPECT(CBR_OK, cbr_post(queue, token, NULL));
  end(token);
}
#define RUN_UNTIL(queue, condition) \
  do {                              \
    wake(queue);                    \
    AWAIT(condition);               \
  } while (0)

static cbr_queue add_clock(int kind) {
  return add_queue(registry, kinds[kind], 0, 0);
}

static void finish_session(cbr_session session, cbr_queue queue,
                           delegate *self) {
  EXPECT(CBR_OK, cbr_session_finish(session));
  RUN_UNTIL(queue, !cbr_is_live(session));
  EQUAL(1, self->invalid);
  end(queue);
  end_at_last(session);
  end(self->token);
}

/* ------------------------------------------ By the timers of the kernel -- */

static bool is_readable_within(cbr_queue queue, int milliseconds) {
  struct pollfd poller = {cbr_queue_descriptor(queue), POLLIN, 0};
  return poll(&poller, 1, milliseconds) == 1;
}

/* The descriptor of a pumped queue is readable when a time is over, also of a
 * task that is the last to begin and the first to be late. */
static void G24_descriptorAtTheTimeout(void) {
  delegate it = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  cbr_task later = add_task(session, 3600 * second, 0, 0);
  CHECK(!is_readable_within(queue, 0));
  for (int turn = 1; turn <= 3; turn++) {
    cbr_task task = add_task(session, 3 * millisecond, 0, 0);
    CHECK(is_readable_within(queue, 5000));
    CHECK(cbr_is_live(task));
    EQUAL(0, pump(queue)); /* it is no message */
    CHECK(!cbr_is_live(task));
    EQUAL(turn, it.timed_out);
    CHECK(!is_readable_within(queue, 0));
  }
  CHECK(cbr_is_live(later));
  EXPECT(CBR_OK, cbr_task_complete(later, 0));
  finish_session(session, queue, &it);
  expect_told(&it, "xxxci");
}

static void G24_edgeAtTheTimeout(void) {
  delegate it = {0};
  struct epoll_event event = {EPOLLIN | EPOLLET, {0}};
  cbr_queue queue = add_clock(0);
  int poller = epoll_create1(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  EQUAL(0, epoll_ctl(poller, EPOLL_CTL_ADD, cbr_queue_descriptor(queue),
                     &event));
  EQUAL(0, epoll_wait(poller, &event, 1, 0));
  for (int turn = 1; turn <= 3; turn++) {
    (void)add_task(session, 3 * millisecond, 0, 0);
    while (it.timed_out < turn) {
      EQUAL(1, epoll_wait(poller, &event, 1, 5000));
      EQUAL(0, pump(queue));
    }
  }
  close(poller);
  finish_session(session, queue, &it);
}

static void G24_threadWakesAtTheTimeout(void) {
  delegate it = {0};
  cbr_queue queue = add_clock(1);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  cbr_task later = add_task(session, 3600 * second, 0, 0);
  for (int turn = 1; turn <= 3; turn++) {
    (void)add_task(session, 3 * millisecond, 0, 0);
    AWAIT(it.timed_out == turn);
  }
  EXPECT(CBR_OK, cbr_task_cancel(later));
  finish_session(session, queue, &it);
  expect_told(&it, "xxxki");
}

/* H1: a fork takes no timer away, and leaves none behind. */
static int inherited_descriptor;
static cbr_queue inherited;
static cbr_task inherited_task;
static cbr_reply inherited_completion;

static void use_inherited(void) {
  EQUAL(-1, fcntl(inherited_descriptor, F_GETFD));
  EXPECT(CBR_E_FORKED, cbr_queue_run(inherited, 0, NULL));
  EXPECT(CBR_E_FORKED, cbr_task_cancel(inherited_task));
  EXPECT(CBR_E_FORKED, cbr_completion_set_timeout(inherited_completion,
                                                  inherited, second));
  for (int each = 3; each < 256; each++) {
    char path[64], target[64] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", each);
    if (readlink(path, target, sizeof target - 1) > 0)
      CHECK(!strstr(target, "timerfd") && !strstr(target, "eventpoll"));
  }
}

static void ignore(void *context, int error, void *value) {
  (void)context;
  (void)error;
  (void)value;
}

static void H1_forkedBeforeATimeout(void) {
  delegate it = {0};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.function = AS_FUNCTION(ignore);
  EXPECT(CBR_OK, cbr_completion_create(registry, &what, 0,
                                       &inherited_completion));
  inherited = add_clock(0);
  inherited_descriptor = cbr_queue_descriptor(inherited);
  add_delegate(&it);
  cbr_session session = add_session(&it, inherited);
  inherited_task = add_task(session, 3 * millisecond, 0, 0);
  EXPECT(CBR_OK, cbr_completion_set_timeout(inherited_completion, inherited,
                                            3600 * second));
  CHECK(holds_in_child(use_inherited));
  EXPECT(CBR_OK, cbr_completion_send(inherited_completion, 0, NULL));
  CHECK(is_readable_within(inherited, 5000));
  EQUAL(0, pump(inherited));
  finish_session(session, inherited, &it);
  expect_told(&it, "xi");
}

/* A reply that is ended is not waited for: the task goes on as stated, and its
 * time does not come any more. */
static void G26_endedReplyGoesOnAsStated(void) {
  delegate it = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  cbr_task task = add_task(session, 0, 60 * second, CBR_ALLOW);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_OK, cbr_task_data(task, "abc", 3));
  EQUAL(0, pump(queue));
  expect_told(&it, "r");
  EXPECT(CBR_OK, cbr_invalidate(it.reply, CBR_REASON_ENDED));
  EQUAL(0, pump(queue));
  expect_told(&it, "rd");
  pass_seconds(100);
  EQUAL(0, pump(queue));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EQUAL(0, pump(queue));
  finish_session(session, queue, &it);
  expect_told(&it, "rdci");
}

/* The history tells what was late, and how long a reply was waited for. */
static void G27_historyTellsOfTimeouts(void) {
  history own;
  delegate it = {0};
  cbr_registry former = registry;
  registry = open_with_history(&own, "here", CBR_LEVEL_CALLS);
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  (void)add_task(session, millisecond, 0, 0);
  cbr_task silent = add_task(session, 0, millisecond, CBR_ALLOW);
  EXPECT(CBR_OK, cbr_task_respond(silent, NULL, 0));
  EXPECT(CBR_OK, cbr_task_complete(silent, 0));
  while (it.complete < 2) {
    CHECK(is_readable_within(queue, 5000));
    EQUAL(0, pump(queue));
  }
  finish_session(session, queue, &it);
  close_registry(registry);
  registry = former;
  EQUAL(1, number_in(&own, "SELECT count(*) FROM unanswered "
                           "WHERE label = 'photo.jpg' AND session_label = "
                           "'downloads' AND ended_reason = 'timed out' "
                           "AND age_ns >= 1000000"));
  EQUAL(1, number_in(&own, "SELECT timed_out FROM sessions"));
  EQUAL(2, number_in(&own, "SELECT tasks FROM sessions"));
  EQUAL(0, number_in(&own, "SELECT cancelled FROM sessions"));
  EQUAL(1, number_in(&own, "SELECT count(*) FROM history WHERE event = "
                           "'task completed' AND detail LIKE 'timed out,%'"));
  check_history(&own);
  remove_history(&own);
}

/* Finishing, cancelling and completing beside times that are over, from
 * several threads: each task is completed once, and the session ends once. */
enum { WORKERS = 4, TASKS = 8 };
static pthread_barrier_t together;

static struct crowd {
  cbr_session session;
  cbr_queue queue;
  _Atomic cbr_task tasks[TASKS];
  _Atomic int begun;
} crowd;

static void act_in_crowd(unsigned choice) {
  cbr_task task = atomic_load(&crowd.tasks[choice % TASKS]);
  uint64_t soon = choice / 64 % 200 * 1000 + 1, late = 3600 * second;
  switch (choice / TASKS % 8) {
    case 0:
    case 1:
    case 2:
      if (begin(crowd.session, choice & 1024 ? soon : late,
                choice & 2048 ? soon : late,
                choice & 4096 ? CBR_ALLOW : CBR_CANCEL, &task) != CBR_OK)
        return;
      atomic_fetch_add(&crowd.begun, 1);
      task = atomic_exchange(&crowd.tasks[choice % TASKS], task);
      if (task != CBR_NONE) (void)cbr_task_cancel(task);
      break;
    case 3:
    case 4: (void)cbr_task_respond(task, "r", 1); break;
    case 5: (void)cbr_task_complete(task, 0); break;
    case 6: (void)cbr_task_cancel(task); break;
    default: (void)cbr_task_data(task, "data", 4); break;
  }
}

static void *work_in_crowd(void *argument) {
  unsigned random = (unsigned)(uintptr_t)argument;
  pthread_barrier_wait(&together);
  for (int each = 0; each < TIMES(10000, 2000); each++) {
    random = random * 1103515245u + 12345u;
    act_in_crowd(random >> 8);
  }
  if ((uintptr_t)argument % 2)
    (void)cbr_session_finish(crowd.session);
  else
    (void)cbr_session_cancel(crowd.session);
  return NULL;
}

static void answer_sometimes(delegate *self, char what) {
  if (what == 'r' && self->count % 2)
    (void)cbr_reply_send(self->reply, CBR_ALLOW, CBR_NONE);
}

static void G24_crowdBesideTimeouts(void) {
  delegate it = {.act = answer_sometimes};
  pthread_t threads[WORKERS];
  memset(&crowd, 0, sizeof crowd);
  add_delegate(&it);
  crowd.queue = add_clock(1);
  crowd.session = add_session(&it, crowd.queue);
  pthread_barrier_init(&together, NULL, WORKERS);
  for (uintptr_t each = 0; each < WORKERS; each++)
    pthread_create(&threads[each], NULL, work_in_crowd, (void *)(each + 1));
  for (int each = 0; each < WORKERS; each++)
    pthread_join(threads[each], NULL);
  pthread_barrier_destroy(&together);
  AWAIT(!cbr_is_live(crowd.session));
  end_at_last(crowd.session);
  EQUAL(crowd.begun, it.complete);
  EQUAL(1, it.invalid);
  EQUAL(0, statistics_of(registry).live_tasks);
  EQUAL(0, statistics_of(registry).live_replies);
  end(crowd.queue);
  end(it.token);
}

/* -------------------------------------------------- With the clock moved -- */

static void G24_taskTimesOut(void) {
  EACH_KIND {
    delegate it = {0};
    cbr_queue queue = add_clock(kind);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, 60 * second, 0, 0);
    cbr_task other = add_task(session, 0, 0, 0);
    EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
    RUN_UNTIL(queue, it.count == 1);
    pass_seconds(59);
    EXPECT(CBR_OK, cbr_task_data(task, "2", 1));
    RUN_UNTIL(queue, it.count == 2);
    CHECK(cbr_is_live(task));
    pass_seconds(2);
    RUN_UNTIL(queue, !cbr_is_live(task));
    EXPECT(CBR_ALREADY, cbr_task_complete(task, 0));
    EXPECT(CBR_ALREADY, cbr_task_cancel(task));
    cbr_status status = cbr_task_data(task, "3", 1);
    CHECK(status == CBR_E_STALE || status == CBR_E_CLOSED);
    CHECK(cbr_is_live(other));
    EXPECT(CBR_OK, cbr_task_complete(other, 0));
    finish_session(session, queue, &it);
    expect_told(&it, "ddxci");
  }
}

/* The data that was held back, and the completion behind it, are dropped or
 * told, as was stated. */
static void G27_replyTimesOut(void) {
  static const struct {
    cbr_disposition unanswered;
    const char *told;
  } ways[] = {{0, "rxi"}, {CBR_CANCEL, "rxi"}, {CBR_ALLOW, "rdci"}};
  EACH_KIND for (int way = 0; way < 3; way++) {
    WITHIN("kind %d, way %d", kind, way);
    delegate it = {0};
    cbr_queue queue = add_clock(kind);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, 0, 60 * second, ways[way].unanswered);
    pass_seconds(61); /* it begins when the delegate is told */
    EXPECT(CBR_OK, cbr_task_respond(task, "200", 3));
    EXPECT(CBR_OK, cbr_task_data(task, "held", 4));
    EXPECT(CBR_OK, cbr_task_complete(task, 0));
    if (kind == 0) pass_seconds(61);
    RUN_UNTIL(queue, it.count == 1);
    pass_seconds(59);
    wake(queue);
    EQUAL(1, statistics_of(registry).live_replies);
    pass_seconds(2);
    RUN_UNTIL(queue, !cbr_is_live(task));
    EXPECT(CBR_E_STALE, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
    CHECK(strstr(cbr_last_error(), "timed out") != NULL);
    EQUAL(0, statistics_of(registry).live_replies);
    finish_session(session, queue, &it);
    expect_told(&it, ways[way].told);
  }
}

/* So are those of a reply that was ended, where it has no time. */
static void G27_replyEnds(void) {
  static const struct {
    cbr_disposition unanswered;
    const char *told;
  } ways[] = {{0, "rki"}, {CBR_CANCEL, "rki"}, {CBR_ALLOW, "rdci"}};
  for (int way = 0; way < 3; way++) {
    WITHIN("way %d", way);
    delegate it = {0};
    cbr_queue queue = add_clock(0);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, 0, 0, ways[way].unanswered);
    EXPECT(CBR_OK, cbr_task_respond(task, "200", 3));
    EXPECT(CBR_OK, cbr_task_data(task, "held", 4));
    RUN_UNTIL(queue, it.count == 1);
    EXPECT(CBR_OK, cbr_invalidate(it.reply, CBR_REASON_ENDED));
    EXPECT(ways[way].unanswered == CBR_ALLOW ? CBR_OK : CBR_ALREADY,
           cbr_task_complete(task, 0));
    RUN_UNTIL(queue, !cbr_is_live(task));
    EXPECT(CBR_E_STALE, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
    finish_session(session, queue, &it);
    expect_told(&it, ways[way].told);
  }
}

/* A reply that was sent, a task that is complete, are not late any more. */
static void G24_inTime(void) {
  EACH_KIND {
    delegate it = {0};
    cbr_queue queue = add_clock(kind);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, 0, 60 * second, 0);
    EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
    RUN_UNTIL(queue, it.count == 1);
    EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
    pass_seconds(61);
    wake(queue);
    EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
    RUN_UNTIL(queue, it.count == 2);
    EXPECT(CBR_E_CONSUMED, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
    EXPECT(CBR_OK, cbr_task_complete(task, 0));
    RUN_UNTIL(queue, !cbr_is_live(task));
    if (kind == 0) {
      task = add_task(session, 60 * second, 0, 0);
      EXPECT(CBR_OK, cbr_task_complete(task, 0));
      pass_seconds(61); /* over before it is told */
      RUN_UNTIL(queue, !cbr_is_live(task));
    }
    finish_session(session, queue, &it);
    expect_told(&it, kind == 0 ? "rdcci" : "rdci");
  }
}

/* The time is over while a callback runs: what it does counts, and the task
 * ends once. */
static char when_late;
static cbr_token successor_token;

static void let_time_pass(delegate *self, char what) {
  if (what == when_late) pass_seconds(61);
  if (what != 'r') return;
  cbr_disposition how =
      successor_token == CBR_NONE ? CBR_ALLOW : CBR_HAND_OVER;
  EXPECT(CBR_OK, cbr_reply_send(self->reply, how, successor_token));
}

static void G24_lateInsideEachCallback(void) {
  static const struct {
    char late;
    const char *told, *successor;
  } cases[] = {{'r', "rxi", ""},  {'d', "rdxi", ""},  {'c', "rdci", ""},
               {'i', "rdci", ""}, {'r', "rhi", "x"},  {'h', "rhi", "x"},
               {'d', "rhi", "dx"}, {'c', "rhi", "dc"}};
  for (unsigned each = 0; each < sizeof cases / sizeof *cases; each++) {
    WITHIN("case %u", each);
    delegate it = {.act = let_time_pass}, other = {.act = let_time_pass};
    bool is_handed_over = cases[each].successor[0] != 0;
    cbr_queue queue = add_clock(0);
    add_delegate(&it);
    add_delegate(&other);
    when_late = cases[each].late;
    successor_token = is_handed_over ? other.token : CBR_NONE;
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, 60 * second, 60 * second, 0);
    EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
    /* What is told in one run is told before what is late by then. */
    EQUAL(0, pump(queue));
    EQUAL(0, pump(queue));
    (void)cbr_task_data(task, "1", 1);
    EQUAL(0, pump(queue));
    EQUAL(0, pump(queue));
    (void)cbr_task_complete(task, 0);
    EQUAL(0, pump(queue));
    finish_session(session, queue, &it);
    end(other.token);
    EQUAL(1, it.complete + other.complete);
    expect_told(&it, cases[each].told);
    expect_told(&other, cases[each].successor);
  }
}

/* ----------------------------------------------------------------- Races -- */

static void run_queue(void *queue) {
  EXPECT(CBR_OK, cbr_queue_run(*(cbr_queue *)queue, 0, NULL));
}

/* Runs a queue on another thread, up to where it has taken an alarm of a
 * handle, and not yet done what that is for. */
static worker runner;
static gate at_alarm;

static void run_to_alarm(cbr_queue *queue, cbr_handle handle) {
  at_alarm = (gate)GATE(ALARM_TAKEN, handle, &runner);
  close_gate(&at_alarm);
  start(&runner, "runner", run_queue, queue);
  await_gate(&at_alarm);
}

static void run_on(void) {
  open_gate(&at_alarm);
  join(&runner);
}

/* The time is over and about to count, when another thread comes first. */
static void G24_othersComeBeforeTheTimeout(void) {
  static const char *const told[] = {"ci", "ki", "ki", "ki", "rdci", "rki"};
  for (int way = 0; way < 6; way++) {
    WITHIN("way %d", way);
    bool is_reply = way >= 4;
    delegate it = {0};
    cbr_queue queue = add_clock(0);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, is_reply ? 0 : 60 * second,
                             is_reply ? 60 * second : 0, 0);
    if (is_reply) {
      EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
      EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
      EQUAL(0, pump(queue));
    }
    pass_seconds(61);
    run_to_alarm(&queue, task);
    switch (way) {
      case 0: EXPECT(CBR_OK, cbr_task_complete(task, 0)); break;
      case 1: EXPECT(CBR_OK, cbr_task_cancel(task)); break;
      case 2: EXPECT(CBR_OK, cbr_session_cancel(session)); break;
      case 3: EXPECT(CBR_PENDING, cbr_invalidate(task, 1000)); break;
      case 4:
        EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
        break;
      case 5:
        EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_CANCEL, CBR_NONE));
        break;
    }
    run_on();
    if (way == 4) EXPECT(CBR_OK, cbr_task_complete(task, 0));
    EXPECT(way == 2 ? CBR_ALREADY : CBR_OK, cbr_session_finish(session));
    EQUAL(0, pump(queue));
    expect_told(&it, told[way]);
    EQUAL(1, it.complete);
    end(queue);
    end_at_last(session);
    end(it.token);
  }
}

/* A reply is about to be sent when its time is over: what it was to bring
 * along is given back. */
static void send_hand_over(void *argument) {
  delegate *self = argument;
  EXPECT(CBR_E_STALE,
         cbr_reply_send(self->reply, CBR_HAND_OVER, successor_token));
}

static void G27_timeoutComesBeforeTheReply(void) {
  delegate it = {0}, other = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  add_delegate(&other);
  cbr_session session = add_session(&it, queue);
  cbr_task task = add_task(session, 0, 60 * second, CBR_ALLOW);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EQUAL(0, pump(queue));
  worker sender;
  gate at = GATE(LEASE_ADDED, CBR_NONE, &sender);
  close_gate(&at);
  successor_token = other.token;
  start(&sender, "sender", send_hand_over, &it);
  await_gate(&at);
  pass_seconds(61);
  EQUAL(0, pump(queue));
  open_gate(&at);
  join(&sender);
  end(other.token); /* nobody has a lease on it */
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  finish_session(session, queue, &it);
  expect_told(&it, "rci");
}

/* The task is gone, and its slot another's, when what was due for it is done. */
static void G1_taskIsGoneAtItsTimeout(void) {
  delegate it = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  cbr_task task = add_task(session, 60 * second, 0, 0);
  cbr_task next = add_task(session, 60 * second, 0, 0);
  pass_seconds(61);
  run_to_alarm(&queue, task);
  /* The queue has ended meanwhile, and with it all that was on it. */
  EXPECT(CBR_PENDING, cbr_invalidate(queue, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_session_cancel(session));
  CHECK(!cbr_is_live(task));
  CHECK(!cbr_is_live(next));
  CHECK(!cbr_is_live(session));
  run_on();
  end_at_last(queue);
  expect_told(&it, "");
  end(it.token);
}

/* ----------------------------------------------------------- Completions -- */

typedef struct promise promise;
struct promise {
  _Atomic int calls, error;
  cbr_reply completion;
  struct counted counted;
  void (*act)(promise *self);
};

static void completed(void *context, int error, void *value) {
  promise *self = context;
  CHECK(value == NULL);
  self->error = error;
  atomic_fetch_add(&self->calls, 1);
  if (self->act) self->act(self);
}

static void promise_destroyed(void *context) {
  count_destroy(&((promise *)context)->counted);
}

static void add_promise(promise *self) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "fetched";
  what.function = AS_FUNCTION(completed);
  what.context = self;
  what.destroy = promise_destroyed;
  EXPECT(CBR_OK,
         cbr_completion_create(registry, &what, -5, &self->completion));
}

static void set_timeout(const promise *self, cbr_queue queue,
                        uint64_t timeout_ns) {
  EXPECT(CBR_OK,
         cbr_completion_set_timeout(self->completion, queue, timeout_ns));
}

static void expect_called(promise *self, int error) {
  EQUAL(1, self->calls);
  EQUAL(error, self->error);
  end_at_last(self->completion);
  EQUAL(1, destroyed(&self->counted));
}

static void G27_completionTimesOut(void) {
  EACH_KIND {
    promise it = {0}, renewed = {0}, sent = {0}, free = {0};
    cbr_queue queue = add_clock(kind);
    add_promise(&it);
    add_promise(&renewed);
    add_promise(&sent);
    add_promise(&free);
    set_timeout(&it, queue, 60 * second);
    set_timeout(&renewed, queue, 60 * second);
    set_timeout(&sent, queue, 60 * second);
    set_timeout(&free, queue, 60 * second);
    pass_seconds(30);
    wake(queue);
    set_timeout(&renewed, queue, 60 * second);
    set_timeout(&free, CBR_NONE, 0);
    EXPECT(CBR_OK, cbr_completion_send(sent.completion, 7, NULL));
    pass_seconds(31);
    RUN_UNTIL(queue, it.calls == 1);
    expect_called(&it, -5);
    EXPECT(CBR_E_STALE, cbr_completion_send(it.completion, 1, NULL));
    CHECK(strstr(cbr_last_error(), "timed out") != NULL);
    EXPECT(CBR_E_STALE,
           cbr_completion_set_timeout(it.completion, queue, second));
    expect_called(&sent, 7);
    EXPECT(CBR_E_CONSUMED,
           cbr_completion_set_timeout(sent.completion, queue, second));
    EQUAL(0, renewed.calls);
    pass_seconds(30);
    RUN_UNTIL(queue, renewed.calls == 1);
    expect_called(&renewed, -5);
    EQUAL(0, free.calls);
    end(queue);
    EQUAL(0, free.calls);
    EXPECT(CBR_OK, cbr_completion_send(free.completion, 8, NULL));
    expect_called(&free, 8);
  }
}

/* Its queue ends first: there is nobody who would tell that its time is over. */
static void G27_queueEndsBeforeTheTimeout(void) {
  EACH_KIND {
    promise late = {0}, moved = {0};
    delegate it = {0};
    cbr_queue queue = add_clock(kind), other = add_clock(1 - kind);
    add_promise(&late);
    add_promise(&moved);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    cbr_task task = add_task(session, 60 * second, 0, 0);
    set_timeout(&late, queue, CBR_FOREVER);
    set_timeout(&moved, queue, 60 * second);
    set_timeout(&moved, other, 60 * second);
    end(queue);
    expect_called(&late, -5);
    EXPECT(CBR_E_STALE, cbr_completion_send(late.completion, 1, NULL));
    CHECK(strstr(cbr_last_error(), "queue ended") != NULL);
    CHECK(!cbr_is_live(session));
    end_at_last(session);
    EXPECT(CBR_ALREADY, cbr_task_cancel(task));
    CHECK(strstr(cbr_last_error(), "cancelled") != NULL);
    expect_told(&it, "");
    end(it.token);
    EQUAL(0, moved.calls);
    pass_seconds(61);
    RUN_UNTIL(other, moved.calls == 1);
    expect_called(&moved, -5);
    end(other);
  }
}

/* The queue ends just before the delegate would be told of a response: nobody
 * is told, as there would be no end to waiting for the reply. */
static cbr_queue ended_inside;
static void end_the_queue(delegate *self, char what) {
  (void)self;
  if (what == 'd')
    EXPECT(CBR_DEFERRED, cbr_invalidate(ended_inside, CBR_REASON_ENDED));
}

static void G27_queueEndsBeforeTheResponse(void) {
  delegate it = {.act = end_the_queue};
  ended_inside = add_clock(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, ended_inside);
  cbr_task first = add_task(session, 0, 0, 0);
  cbr_task second_one = add_task(session, 0, 60 * second, 0);
  EXPECT(CBR_OK, cbr_task_data(first, "1", 1));
  EXPECT(CBR_OK, cbr_task_respond(second_one, NULL, 0));
  EQUAL(0, pump(ended_inside));
  CHECK(!cbr_is_live(first));
  CHECK(!cbr_is_live(second_one));
  CHECK(!cbr_is_live(session));
  end_at_last(ended_inside);
  expect_told(&it, "d");
  end(it.token);
}

/* The registry closes first. */
static void G27_closingBeforeTheTimeout(void) {
  EACH_KIND {
    cbr_registry former = registry;
    registry = open_registry("short", test_level());
    promise late = {0};
    delegate it = {0};
    cbr_queue queue = add_clock(kind);
    add_promise(&late);
    add_delegate(&it);
    cbr_session session = add_session(&it, queue);
    (void)add_task(session, 60 * second, 60 * second, 0);
    set_timeout(&late, queue, 60 * second);
    close_registry(registry);
    registry = former;
    EQUAL(1, late.calls);
    EQUAL(-5, late.error);
    EQUAL(1, destroyed(&late.counted));
  }
}

static void G27_sentBeforeTheTimeout(void) {
  promise it = {0};
  cbr_queue queue = add_clock(0);
  add_promise(&it);
  set_timeout(&it, queue, 60 * second);
  pass_seconds(61);
  run_to_alarm(&queue, it.completion);
  EXPECT(CBR_OK, cbr_completion_send(it.completion, 7, NULL));
  EQUAL(1, it.calls);
  run_on();
  expect_called(&it, 7);
  end(queue);
}

/* The time is over and about to count, when it is given more, or is let go. */
static void G27_renewedBeforeTheTimeout(void) {
  for (int way = 0; way < 2; way++) {
    WITHIN("way %d", way);
    promise it = {0};
    cbr_queue queue = add_clock(0);
    add_promise(&it);
    set_timeout(&it, queue, 60 * second);
    pass_seconds(61);
    run_to_alarm(&queue, it.completion);
    set_timeout(&it, way == 0 ? queue : CBR_NONE, way == 0 ? 60 * second : 0);
    run_on();
    EQUAL(0, it.calls);
    pass_seconds(61);
    EQUAL(0, pump(queue));
    EQUAL(way == 0, it.calls);
    if (way == 1) EXPECT(CBR_OK, cbr_completion_send(it.completion, -5, NULL));
    expect_called(&it, -5);
    end(queue);
  }
}

static cbr_queue clock_of_promises;
static void act_set_again(promise *self) {
  EXPECT(CBR_E_STALE, cbr_completion_send(self->completion, 9, NULL));
  EXPECT(CBR_E_STALE, cbr_completion_set_timeout(self->completion,
                                                 clock_of_promises, second));
  EXPECT(CBR_DEFERRED, cbr_queue_run(clock_of_promises, 0, NULL));
}

static void G12_insideALateCompletion(void) {
  promise it = {.act = act_set_again};
  clock_of_promises = add_clock(0);
  add_promise(&it);
  set_timeout(&it, clock_of_promises, 60 * second);
  pass_seconds(61);
  EQUAL(0, pump(clock_of_promises));
  expect_called(&it, -5);
  end(clock_of_promises);
}

/* G11: what is late is jumped out of: the rest is done by the next run. */
static jmp_buf out;

static void jump_out_of_completion(promise *self) {
  (void)self;
  longjmp(out, 1);
}

static void jump_out_of_delegate(delegate *self, char what) {
  if (what != 'x' || self->complete != 1) return;
  atomic_store(&self->inside, 0);
  longjmp(out, 1);
}

static void G11_jumpOutOfWhatIsLate(void) {
  static promise late, other;
  static delegate it;
  late = (promise){.act = jump_out_of_completion};
  other = (promise){0};
  it = (delegate){.act = jump_out_of_delegate};
  static cbr_queue queue;
  queue = add_clock(0);
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  add_promise(&late);
  add_promise(&other);
  set_timeout(&late, queue, 60 * second);
  (void)add_task(session, 61 * second, 0, 0);
  (void)add_task(session, 62 * second, 0, 0);
  set_timeout(&other, queue, 63 * second);
  pass_seconds(64);
  for (int jump = 0; jump < 2; jump++) {
    size_t mark = cbr_mark();
    if (setjmp(out) == 0) {
      (void)cbr_queue_run(queue, 0, NULL);
      CHECK(false);
    }
    EXPECT(CBR_OK, cbr_unwind(mark));
    CHECK(is_readable_within(queue, 0));
    EQUAL(jump, it.timed_out);
  }
  expect_called(&late, -5);
  EQUAL(0, other.calls);
  EQUAL(0, pump(queue));
  expect_called(&other, -5);
  finish_session(session, queue, &it);
  expect_told(&it, "xxi");
}

/* What is over by then is done before a queue finishes; what is not is not
 * waited for. */
static void E13_finishingWithTimeouts(void) {
  delegate it = {0};
  promise late = {0}, other = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  add_promise(&late);
  add_promise(&other);
  cbr_session session = add_session(&it, queue);
  (void)add_task(session, 60 * second, 0, 0);
  (void)add_task(session, 600 * second, 0, 0);
  set_timeout(&late, queue, 60 * second);
  set_timeout(&other, queue, 600 * second);
  pass_seconds(61);
  EXPECT(CBR_PENDING, cbr_queue_finish(queue));
  EQUAL(0, pump(queue));
  CHECK(!cbr_is_live(queue));
  CHECK(!cbr_is_live(session));
  expect_called(&late, -5);
  expect_called(&other, -5);
  end_at_last(queue);
  end_at_last(session);
  expect_told(&it, "x");
  end(it.token);
}

/* ------------------------------------------------------ Many, and refused -- */

/* A hundred thousand tasks, in no order: those are late whose time is over. */
static void G24_manyTimeouts(void) {
  enum { MANY = TIMES(100000, 5000) };
  static cbr_task tasks[MANY];
  static unsigned seconds_of[MANY];
  delegate it = {0};
  cbr_queue queue = add_clock(0);
  unsigned random = 1;
  int late = 0, left = 0;
  add_delegate(&it);
  cbr_session session = add_session(&it, queue);
  for (int each = 0; each < MANY; each++) {
    random = random * 1103515245u + 12345u;
    seconds_of[each] = 1000 + (random >> 8) % 2000;
    tasks[each] = add_task(session, seconds_of[each] * second, 0, 0);
  }
  for (int each = 0; each < MANY; each += 3) {
    EXPECT(CBR_OK, cbr_task_complete(tasks[each], 0));
    seconds_of[each] = 0;
  }
  EQUAL(0, pump(queue));
  EQUAL((MANY + 2) / 3, it.complete);
  EQUAL(0, it.timed_out);
  /* A few seconds off either way are the test's own time. */
  pass_seconds(2000);
  EQUAL(0, pump(queue));
  for (int each = 0; each < MANY; each++) {
    if (seconds_of[each] == 0) continue;
    bool is_live = cbr_is_live(tasks[each]);
    if (seconds_of[each] <= 2000) CHECK(!is_live);
    if (seconds_of[each] > 2100) CHECK(is_live);
    late += !is_live;
    left += is_live;
  }
  EQUAL(late, it.timed_out);
  pass_seconds(1000);
  EQUAL(0, pump(queue));
  EQUAL(late + left, it.timed_out);
  EQUAL(MANY, it.complete);
  finish_session(session, queue, &it);
}

static void G6_timeoutsWithoutMemory(void) {
  delegate it = {0};
  promise late = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  add_promise(&late);
  cbr_session session = add_session(&it, queue);
  set_timeout(&late, queue, 60 * second);
  int failures = 0;
  for (int64_t after = 0;; after++) {
    cbr_task task = CBR_NONE;
    cbr_test_fail_allocation(after);
    cbr_status status = begin(session, 60 * second, 60 * second, 0, &task);
    if (status == CBR_OK)
      status = cbr_completion_set_timeout(late.completion, queue,
                                          120 * second);
    bool is_whole = cbr_test_fail_allocation(-1) >= 0;
    if (task != CBR_NONE) EXPECT(CBR_OK, cbr_task_cancel(task));
    if (is_whole) break;
    EXPECT(CBR_E_NOMEM, status);
    failures++;
  }
  CHECK(failures > 4);
  EQUAL(0, pump(queue));
  EQUAL(0, it.timed_out);
  pass_seconds(61);
  EQUAL(0, pump(queue));
  EQUAL(0, late.calls);
  pass_seconds(60);
  EQUAL(0, pump(queue));
  expect_called(&late, -5);
  finish_session(session, queue, &it);
}

/* What is due needs no memory. */
static void G6_dueWithoutMemory(void) {
  delegate it = {0};
  promise late = {0};
  cbr_queue queue = add_clock(0);
  add_delegate(&it);
  add_promise(&late);
  cbr_session session = add_session(&it, queue);
  cbr_task task = add_task(session, 60 * second, 0, 0);
  cbr_task silent = add_task(session, 0, 60 * second, 0);
  EXPECT(CBR_OK, cbr_task_respond(silent, NULL, 0));
  EQUAL(0, pump(queue));
  set_timeout(&late, queue, 60 * second);
  pass_seconds(61);
  cbr_test_fail_allocation(0);
  EQUAL(0, pump(queue));
  CHECK(cbr_test_fail_allocation(-1) >= 0);
  CHECK(!cbr_is_live(task));
  CHECK(!cbr_is_live(silent));
  expect_called(&late, -5);
  finish_session(session, queue, &it);
  expect_told(&it, "rxxi");
}

static void G1_timeoutsRefuseWhatIsNotTheirs(void) {
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  cbr_queue foreign = add_queue(other, 0, 0, 0), queue = add_clock(0);
  delegate it = {0};
  promise late = {0};
  cbr_task task = 1;
  add_delegate(&it);
  add_promise(&late);
  cbr_session session = add_session(&it, CBR_NONE);
  EXPECT(CBR_E_INVALID, begin(session, second, 0, 0, &task));
  CHECK(strstr(cbr_last_error(), "needs a session with a queue") != NULL);
  EQUAL(CBR_NONE, task);
  EXPECT(CBR_E_INVALID, begin(session, 0, second, 0, &task));
  EXPECT(CBR_OK, cbr_session_finish(session));
  EXPECT(CBR_E_CLOSED, begin(session, second, 0, 0, &task));
  session = add_session(&it, queue);
  EXPECT(CBR_E_INVALID, begin(session, 0, second, CBR_STOP, &task));
  EXPECT(CBR_E_INVALID, begin(session, 0, second, CBR_HAND_OVER, &task));
  cbr_task_options options = CBR_TASK_OPTIONS_INIT;
  options.reserved = 1;
  EXPECT(CBR_E_INVALID, cbr_task_begin(session, &options, &task));
  cbr_reply completion = late.completion;
  EXPECT(CBR_E_INVALID,
         cbr_completion_set_timeout(completion, CBR_NONE, second));
  EXPECT(CBR_E_INVALID, cbr_completion_set_timeout(completion, queue, 0));
  EXPECT(CBR_E_INVALID,
         cbr_completion_set_timeout(completion, UINT64_MAX, second));
  EXPECT(CBR_E_KIND,
         cbr_completion_set_timeout(completion, it.token, second));
  EXPECT(CBR_E_FOREIGN,
         cbr_completion_set_timeout(completion, foreign, second));
  EXPECT(CBR_E_KIND, cbr_completion_set_timeout(it.token, queue, second));
  task = add_task(session, 0, 0, 0);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EQUAL(0, pump(queue));
  EXPECT(CBR_E_KIND, cbr_completion_set_timeout(it.reply, queue, second));
  end(queue);
  EXPECT(CBR_E_STALE, cbr_completion_set_timeout(completion, queue, second));
  EXPECT(CBR_E_CLOSED, begin(session, second, 0, 0, &task));
  EXPECT(CBR_OK, cbr_session_cancel(session));
  EXPECT(CBR_OK, cbr_completion_send(completion, 3, NULL));
  expect_called(&late, 3);
  close_registry(other);
  end(it.token);
}

int main(void) {
  registry = open_registry("timeouts", test_level());
  TEST(G24_descriptorAtTheTimeout);
  TEST(G24_edgeAtTheTimeout);
  TEST(G24_threadWakesAtTheTimeout);
  TEST(H1_forkedBeforeATimeout);
  TEST(G27_historyTellsOfTimeouts);
  TEST(G24_crowdBesideTimeouts);
  TEST(G24_taskTimesOut);
  TEST(G27_replyTimesOut);
  TEST(G27_replyEnds);
  TEST(G24_inTime);
  TEST(G24_lateInsideEachCallback);
  TEST(G24_othersComeBeforeTheTimeout);
  TEST(G27_timeoutComesBeforeTheReply);
  TEST(G1_taskIsGoneAtItsTimeout);
  TEST(G27_completionTimesOut);
  TEST(G27_queueEndsBeforeTheTimeout);
  TEST(G27_queueEndsBeforeTheResponse);
  TEST(G27_closingBeforeTheTimeout);
  TEST(G27_sentBeforeTheTimeout);
  TEST(G27_renewedBeforeTheTimeout);
  TEST(G12_insideALateCompletion);
  TEST(G11_jumpOutOfWhatIsLate);
  TEST(E13_finishingWithTimeouts);
  TEST(G24_manyTimeouts);
  TEST(G26_endedReplyGoesOnAsStated);
  TEST(G6_timeoutsWithoutMemory);
  TEST(G6_dueWithoutMemory);
  TEST(G1_timeoutsRefuseWhatIsNotTheirs);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_queues);
  EQUAL(0, statistics_of(registry).live_sessions);
  EQUAL(0, statistics_of(registry).live_tasks);
  EQUAL(0, statistics_of(registry).live_replies);
  EQUAL(0, statistics_of(registry).live_leases);
  close_registry(registry);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions, their tasks and replies: what a delegate is told, in which order,
 * and that it ends once (G23-G28).
 */
#include "history.h"

#include <poll.h>
#include <setjmp.h>

static cbr_registry registry;

/* What a delegate has been told, as letters: r response, d data, c complete,
 * x complete with an error, h hand-over, i invalid. */
typedef struct delegate delegate;
struct delegate {
  char told[128];
  int count;
  cbr_token token;
  cbr_session session;
  cbr_task task;
  cbr_reply reply;
  int error;
  cbr_reason reason;
  size_t bytes;
  int invalid, complete, destroyed;
  _Atomic int inside;
  void (*act)(delegate *self, char what);
};

static void tell(delegate *self, char what) {
  CHECK(!self->destroyed);
  EQUAL(0, atomic_fetch_add(&self->inside, 1)); /* one at a time */
  if (self->count < 127) self->told[self->count++] = what;
  if (self->act) self->act(self, what);
  atomic_fetch_sub(&self->inside, 1);
}

static void did_receive_response(void *context, cbr_task task,
                                 const void *response, size_t size,
                                 cbr_reply reply) {
  delegate *self = context;
  (void)response;
  self->task = task;
  self->reply = reply;
  self->bytes += size;
  tell(self, 'r');
}

static void did_receive_data(void *context, cbr_task task, const void *bytes,
                             size_t size) {
  delegate *self = context;
  (void)bytes;
  self->task = task;
  self->bytes += size;
  tell(self, 'd');
}

static void did_complete(void *context, cbr_task task, int error) {
  delegate *self = context;
  self->task = task;
  self->error = error;
  self->complete++;
  tell(self, error == 0 ? 'c' : 'x');
}

static void did_become_invalid(void *context, cbr_session session,
                               cbr_reason reason) {
  delegate *self = context;
  self->session = session;
  self->reason = reason;
  self->invalid++;
  tell(self, 'i');
}

static void did_hand_over(void *context, cbr_task task, cbr_token successor) {
  delegate *self = context;
  (void)task;
  (void)successor;
  tell(self, 'h');
}

static void delegate_destroyed(void *context) {
  delegate *self = context;
  EQUAL(0, self->inside);
  self->destroyed++;
}

#define AS_FUNCTION(function) ((cbr_function)(uintptr_t)(function))

static const cbr_function whole[CBR_SESSION_METHODS] = {
    AS_FUNCTION(did_receive_response), AS_FUNCTION(did_receive_data),
    AS_FUNCTION(did_complete), AS_FUNCTION(did_become_invalid),
    AS_FUNCTION(did_hand_over)};
static const cbr_function least[CBR_SESSION_METHODS] = {
    NULL, NULL, AS_FUNCTION(did_complete), NULL, NULL};

static void add_delegate(delegate *self, const cbr_function *methods) {
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "delegate";
  what.interface = cbr_session_interface();
  what.methods = methods;
  what.context = self;
  what.destroy = delegate_destroyed;
  EXPECT(CBR_OK, cbr_register(registry, &what, &self->token));
}

static cbr_session add_session(delegate *self, cbr_owner owner) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  options.label = "downloads";
  options.delegate = self->token;
  options.owner = owner;
  EXPECT(CBR_OK, cbr_session_create(registry, &options, &self->session));
  return self->session;
}

static cbr_task add_task(cbr_session session) {
  cbr_task task = CBR_NONE;
  EXPECT(CBR_OK, cbr_task_begin(session, NULL, &task));
  return task;
}

static void expect_told(const delegate *self, const char *what) {
  if (strcmp(self->told, what) == 0) return;
  fprintf(stderr, "told %s instead of %s\n", self->told, what);
  fail_();
}

/* Ends a delegate that nothing uses any more. */
static void end_delegate(delegate *self) {
  EXPECT(CBR_OK, cbr_invalidate_wait(self->token, CBR_REASON_ENDED, 0));
  EQUAL(1, self->destroyed);
}

static void allow(delegate *self, char what) {
  if (what == 'r')
    EXPECT(CBR_OK, cbr_reply_send(self->reply, CBR_ALLOW, CBR_NONE));
}

static void G24_lifeOfASession(void) {
  delegate it = {.act = allow};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_respond(task, "200", 3));
  EXPECT(CBR_OK, cbr_task_data(task, "abc", 3));
  EXPECT(CBR_OK, cbr_task_data(task, "defg", 4));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  expect_told(&it, "rddc");
  EQUAL(10, it.bytes);
  CHECK(!cbr_is_live(task));
  EXPECT(CBR_ALREADY, cbr_task_complete(task, 0));
  EXPECT(CBR_E_STALE, cbr_task_data(task, "x", 1));
  EXPECT(CBR_OK, cbr_session_finish(session));
  expect_told(&it, "rddci");
  EQUAL(CBR_REASON_ENDED, it.reason);
  CHECK(!cbr_is_live(session));
  EXPECT(CBR_ALREADY, cbr_session_finish(session));
  EXPECT(CBR_ALREADY, cbr_session_cancel(session));
  EXPECT(CBR_E_CLOSED, cbr_task_begin(session, NULL, &task)); /* G25 */
  EQUAL(0, it.destroyed);
  end_delegate(&it);
}

/* F4: with no task at all. */
static void F4_endWithoutTasks(void) {
  for (int way = 0; way < 4; way++) {
    WITHIN("way %d", way);
    delegate it = {0};
    add_delegate(&it, whole);
    cbr_owner owner = add_owner(registry, "screen");
    cbr_session session = add_session(&it, owner);
    switch (way) {
      case 0: EXPECT(CBR_OK, cbr_session_finish(session)); break;
      case 1: EXPECT(CBR_OK, cbr_session_cancel(session)); break;
      case 2:
        EXPECT(CBR_OK, cbr_invalidate(session, CBR_REASON_USER + 5));
        EQUAL(CBR_REASON_USER + 5, it.reason);
        break;
      case 3:
        EXPECT(CBR_OK, cbr_invalidate_wait(owner, CBR_REASON_ENDED, 0));
        EQUAL(CBR_REASON_OWNER_DIED, it.reason);
        break;
    }
    expect_told(&it, "i");
    EQUAL(1, it.invalid);
    end_delegate(&it);
    CHECK(cbr_invalidate(owner, CBR_REASON_ENDED) >= 0);
  }
}

static void G24_finishWaitsForTasks(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task first = add_task(session), second = add_task(session);
  EXPECT(CBR_OK, cbr_session_finish(session));
  EXPECT(CBR_ALREADY, cbr_session_finish(session));
  EXPECT(CBR_E_CLOSED, cbr_task_begin(session, NULL, &it.task));
  EXPECT(CBR_OK, cbr_task_data(first, "1", 1));
  EXPECT(CBR_OK, cbr_task_complete(first, 0));
  expect_told(&it, "dc");
  EXPECT(CBR_OK, cbr_task_complete(second, 77));
  EQUAL(77, it.error);
  expect_told(&it, "dcxi");
  end_delegate(&it);
}

static void G24_cancelAfterFinish(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task first = add_task(session), second = add_task(session);
  EXPECT(CBR_OK, cbr_session_finish(session));
  EXPECT(CBR_OK, cbr_session_cancel(session));
  expect_told(&it, "xxi");
  EQUAL(CBR_TASK_CANCELLED, it.error);
  EQUAL(CBR_REASON_CANCELLED, it.reason);
  EXPECT(CBR_ALREADY, cbr_task_cancel(first));
  EXPECT(CBR_ALREADY, cbr_task_complete(second, 0));
  end_delegate(&it);
}

/* G26: what comes before the reply is held back, within a bound. */
static void G26_heldBackUntilTheReply(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task_options options = CBR_TASK_OPTIONS_INIT;
  options.max_waiting_bytes = 10;
  cbr_task task;
  EXPECT(CBR_OK, cbr_task_begin(session, &options, &task));
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_ALREADY, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_OK, cbr_task_data(task, "01234", 5));
  EXPECT(CBR_OK, cbr_task_data(task, "56789", 5));
  EXPECT(CBR_E_FULL, cbr_task_data(task, "0", 1));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EXPECT(CBR_E_CLOSED, cbr_task_data(task, "0", 1));
  expect_told(&it, "r");
  EXPECT(CBR_E_INVALID, cbr_reply_send(it.reply, CBR_STOP, CBR_NONE));
  EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
  expect_told(&it, "rddc");
  EXPECT(CBR_E_CONSUMED, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
  CHECK(strstr(cbr_last_error(), "consumed") != NULL);
  EXPECT(CBR_OK, cbr_session_finish(session));
  end_delegate(&it);
}

static void G26_replyCancels(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_OK, cbr_task_data(task, "held", 4));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_CANCEL, CBR_NONE));
  expect_told(&it, "rx");
  EQUAL(CBR_TASK_CANCELLED, it.error);
  EXPECT(CBR_OK, cbr_session_finish(session));
  end_delegate(&it);
}

static void G26_replyHandsOver(void) {
  delegate it = {0}, other = {0};
  add_delegate(&it, whole);
  add_delegate(&other, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  struct counted plain = {0};
  cbr_token no_delegate = add(registry, "plain", &plain, false, CBR_NONE);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_OK, cbr_task_data(task, "held", 4));
  EXPECT(CBR_E_INVALID, cbr_reply_send(it.reply, CBR_HAND_OVER, CBR_NONE));
  EXPECT(CBR_E_INTERFACE,
         cbr_reply_send(it.reply, CBR_HAND_OVER, no_delegate));
  EXPECT(CBR_E_INVALID, cbr_reply_send(it.reply, CBR_ALLOW, other.token));
  EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_HAND_OVER, other.token));
  expect_told(&it, "rh");
  expect_told(&other, "d");
  EXPECT(CBR_OK, cbr_task_data(task, "more", 4));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  expect_told(&it, "rh");
  expect_told(&other, "ddc");
  end_delegate(&other);
  EXPECT(CBR_OK, cbr_session_finish(session));
  expect_told(&it, "rhi");
  end_delegate(&it);
  EXPECT(CBR_OK, cbr_invalidate_wait(no_delegate, CBR_REASON_ENDED, 0));
}

/* F5: a delegate without the method: its default is used at once. */
static void F5_leastDelegate(void) {
  delegate it = {0};
  uint64_t refused = statistics_of(registry).refused;
  add_delegate(&it, least);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_OK, cbr_task_data(task, "data", 4));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  expect_told(&it, "c");
  EQUAL(0, statistics_of(registry).live_replies);
  EXPECT(CBR_OK, cbr_session_finish(session));
  /* What it need not have is no refusal. */
  EQUAL(refused, statistics_of(registry).refused);
  end_delegate(&it);
}

static void cancel_self(delegate *self, char what) {
  if (what != 'd') return;
  EXPECT(CBR_OK, cbr_task_cancel(self->task));
  EXPECT(CBR_ALREADY, cbr_task_cancel(self->task));
  EXPECT(CBR_E_CLOSED, cbr_task_data(self->task, "late", 4));
}

/* G28: cancelled from inside its own data. */
static void G28_cancelInsideData(void) {
  delegate it = {.act = cancel_self};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
  EXPECT(CBR_E_STALE, cbr_task_data(task, "2", 1));
  expect_told(&it, "dx");
  EQUAL(CBR_TASK_CANCELLED, it.error);
  EXPECT(CBR_OK, cbr_session_finish(session));
  end_delegate(&it);
}

static void look_at_gathered(delegate *self, char what) {
  const void *bytes;
  size_t size;
  if (what != 'c') return;
  EXPECT(CBR_OK, cbr_task_gathered(self->task, &bytes, &size));
  EQUAL(1000 * 3, size);
  for (size_t each = 0; each < size; each++)
    EQUAL("abc"[each % 3], ((const char *)bytes)[each]);
  CHECK(cbr_task_context(self->task) != NULL);
}

/* G28: a task gathers, and carries a context that is destroyed with it. */
static void G28_gatheringAndContext(void) {
  delegate it = {.act = look_at_gathered};
  struct counted counted = {0};
  add_delegate(&it, least);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task_options options = CBR_TASK_OPTIONS_INIT;
  options.flags = CBR_TASK_GATHER;
  options.context = &counted;
  options.destroy = count_destroy;
  cbr_task task;
  EXPECT(CBR_OK, cbr_task_begin(session, &options, &task));
  CHECK(cbr_task_context(task) == &counted);
  for (int each = 0; each < 1000; each++)
    EXPECT(CBR_OK, cbr_task_data(task, "abc", 3));
  EXPECT(CBR_E_NOMEM, cbr_task_data(task, "abc", SIZE_MAX / 2));
  EQUAL(0, destroyed(&counted));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EQUAL(1, it.complete);
  EQUAL(1, destroyed(&counted));
  CHECK(cbr_task_context(task) == NULL);
  const void *bytes = "";
  size_t size = 1;
  EXPECT(CBR_E_STALE, cbr_task_gathered(task, &bytes, &size));
  CHECK(bytes == NULL && size == 0);
  EXPECT(CBR_OK, cbr_session_finish(session));
  end_delegate(&it);
}

/* G24: ended from inside each event, in each way. */
static int way_inside;
static char when_inside;

static void end_inside(delegate *self, char what) {
  allow(self, what);
  if (what != when_inside || strchr(self->told, what) !=
                                 &self->told[self->count - 1])
    return; /* the first time only */
  cbr_status status;
  switch (way_inside) {
    case 0: status = cbr_session_finish(self->session); break;
    case 1: status = cbr_session_cancel(self->session); break;
    case 2: status = cbr_invalidate(self->session, CBR_REASON_ENDED); break;
    case 3:
      status = cbr_invalidate_wait(self->session, CBR_REASON_ENDED,
                                   CBR_FOREVER);
      break;
    case 4: status = cbr_invalidate(self->task, CBR_REASON_ENDED); break;
    case 5:
      status = cbr_invalidate_wait(self->task, CBR_REASON_ENDED, CBR_FOREVER);
      break;
    default: status = cbr_task_cancel(self->task); break;
  }
  if (what != 'i' && way_inside < 2) EXPECT(CBR_OK, status);
  if (what != 'i' && way_inside > 1 && way_inside < 6)
    EXPECT(CBR_DEFERRED, status);
}

static void G24_endedFromInside(void) {
  for (way_inside = 0; way_inside < 7; way_inside++) {
    for (const char *when = "rdci"; *when; when++) {
      WITHIN("way %d, inside %c", way_inside, *when);
      when_inside = *when;
      delegate it = {.act = end_inside};
      add_delegate(&it, whole);
      cbr_session session = add_session(&it, CBR_NONE);
      cbr_task task = add_task(session), other = add_task(session);
      (void)cbr_task_respond(task, NULL, 0);
      (void)cbr_task_data(task, "1", 1);
      (void)cbr_task_complete(task, 0);
      (void)cbr_task_complete(other, 0);
      (void)cbr_session_finish(session);
      EQUAL(1, it.invalid);
      EQUAL(2, it.complete);
      EQUAL('i', it.told[it.count - 1]);
      EQUAL(0, it.destroyed);
      end_delegate(&it);
    }
  }
}

/* G23: the delegate ends from outside. */
static void G23_delegateEndsFirst(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
  CHECK(cbr_invalidate(it.token, CBR_REASON_ENDED) >= 0);
  expect_told(&it, "d");
  CHECK(!cbr_is_live(session));
  CHECK(!cbr_is_live(task));
  EQUAL(1, it.destroyed);
  EQUAL(0, statistics_of(registry).live_leases);
}

static void G23_successorEndsFirst(void) {
  delegate it = {0}, other = {0};
  add_delegate(&it, whole);
  add_delegate(&other, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EXPECT(CBR_OK, cbr_reply_send(it.reply, CBR_HAND_OVER, other.token));
  EXPECT(CBR_PENDING, cbr_invalidate(other.token, CBR_REASON_ENDED));
  EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
  CHECK(!cbr_is_live(task));
  EQUAL(1, other.destroyed);
  expect_told(&other, "");
  EXPECT(CBR_OK, cbr_session_finish(session));
  expect_told(&it, "rhi");
  end_delegate(&it);
}

/* G27: one that is never sent is seen when its task ends. */
static void G27_neverAnswered(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
  EQUAL(1, statistics_of(registry).live_replies);
  EXPECT(CBR_OK, cbr_session_cancel(session));
  EQUAL(0, statistics_of(registry).live_replies);
  EXPECT(CBR_E_STALE, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
  expect_told(&it, "rxi");
  end_delegate(&it);
}

/* G11: the delegate is jumped out of: the session goes on behind that. */
static jmp_buf out;
static char when_jumped;

static void end_reply(delegate *self, char what) {
  if (what == 'r')
    EXPECT(CBR_OK, cbr_invalidate(self->reply, CBR_REASON_ENDED));
}

/* A reply whose handle is ended can no longer be sent: the task does not wait
 * for it, and its session can finish. */
static void G27_endedReply(void) {
  for (int inside = 0; inside < 2; inside++) {
    WITHIN("inside %d", inside);
    delegate it = {.act = inside ? end_reply : NULL};
    add_delegate(&it, whole);
    cbr_session session = add_session(&it, CBR_NONE);
    cbr_task task = add_task(session);
    EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
    if (!inside) {
      EXPECT(CBR_OK, cbr_task_data(task, "abc", 3));
      EXPECT(CBR_OK, cbr_task_complete(task, 0));
      EXPECT(CBR_OK, cbr_session_finish(session));
      expect_told(&it, "r");
      EXPECT(CBR_OK, cbr_invalidate_wait(it.reply, CBR_REASON_ENDED, 0));
      expect_told(&it, "rxi");
    }
    EQUAL(CBR_TASK_CANCELLED, it.error);
    EXPECT(inside ? CBR_OK : CBR_ALREADY, cbr_session_finish(session));
    expect_told(&it, "rxi");
    EXPECT(CBR_E_STALE, cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE));
    end_delegate(&it);
  }
}

static void jump_out(delegate *self, char what) {
  allow(self, what);
  if (what != when_jumped) return;
  when_jumped = 0;
  atomic_store(&self->inside, 0);
  longjmp(out, 1);
}

static void G11_jumpOutOfADelegate(void) {
  for (const char *volatile when = "rdci"; *when; when++) {
    WITHIN("out of %c", *when);
    static delegate it;
    static cbr_session session;
    static cbr_task task;
    it = (delegate){.act = jump_out};
    when_jumped = *when;
    add_delegate(&it, whole);
    session = add_session(&it, CBR_NONE);
    task = add_task(session);
    for (volatile int step = 0; step < 4; step++) {
      size_t mark = cbr_mark();
      if (setjmp(out) == 0) {
        switch (step) {
          case 0: EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0)); break;
          case 1: EXPECT(CBR_OK, cbr_task_data(task, "1", 1)); break;
          case 2: EXPECT(CBR_OK, cbr_task_complete(task, 0)); break;
          case 3: EXPECT(CBR_OK, cbr_session_finish(session)); break;
        }
      } else {
        EXPECT(CBR_OK, cbr_unwind(mark));
      }
    }
    expect_told(&it, "rdci");
    end_delegate(&it);
  }
}

/* A delegate that forks: the child goes on behind what was told, and finds
 * everything to be its parent's. */
static void fork_inside(delegate *self, char what) {
  if (what != 'd') return;
  pid_t child = fork();
  if (child != 0) {
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    EQUAL(0, status);
    return;
  }
  alarm(20);
  EXPECT(CBR_E_FORKED, cbr_task_complete(self->task, 0));
  EXPECT(CBR_E_FORKED, cbr_session_finish(self->session));
}

static void H1_delegateForks(void) {
  delegate it = {.act = fork_inside};
  pid_t parent = getpid();
  add_delegate(&it, whole);
  cbr_session session = add_session(&it, CBR_NONE);
  cbr_task task = add_task(session);
  (void)cbr_task_data(task, "1", 1);
  if (getpid() != parent) _exit(failures_of_test != 0);
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EXPECT(CBR_OK, cbr_session_finish(session));
  expect_told(&it, "dci");
  end_delegate(&it);
}

/* F1: every mixture of finish and cancel, from 1 and 4 threads. */
enum { ENDERS = 4 };
static pthread_barrier_t together;

typedef struct mixture {
  cbr_session session;
  bool cancels;
  int times;
} mixture;

static void *mix(void *argument) {
  mixture *it = argument;
  pthread_barrier_wait(&together);
  for (int each = 0; each < it->times; each++) {
    cbr_status status = it->cancels ? cbr_session_cancel(it->session)
                                    : cbr_session_finish(it->session);
    CHECK(status == CBR_OK || status == CBR_ALREADY);
  }
  return NULL;
}

static void F1_everyMixture(void) {
  for (int threads = 1; threads <= ENDERS; threads++)
    for (int cancelling = 0; cancelling < 1 << threads; cancelling++)
      for (int tasks = 0; tasks < 3; tasks++) {
        WITHIN("%d threads, %x cancel, %d tasks", threads, cancelling, tasks);
        delegate it = {0};
        add_delegate(&it, whole);
        cbr_session session = add_session(&it, CBR_NONE);
        cbr_task begun[3];
        for (int each = 0; each < tasks; each++)
          begun[each] = add_task(session);
        pthread_barrier_init(&together, NULL, (unsigned)threads + 1);
        mixture mixtures[ENDERS];
        pthread_t enders[ENDERS];
        for (int each = 0; each < threads; each++) {
          mixtures[each] = (mixture){session, cancelling >> each & 1, 3};
          pthread_create(&enders[each], NULL, mix, &mixtures[each]);
        }
        pthread_barrier_wait(&together);
        for (int each = 0; each < tasks; each++)
          (void)cbr_task_complete(begun[each], 0);
        for (int each = 0; each < threads; each++)
          pthread_join(enders[each], NULL);
        pthread_barrier_destroy(&together);
        EQUAL(1, it.invalid);
        EQUAL(tasks, it.complete);
        EQUAL('i', it.told[it.count - 1]);
        end_delegate(&it);
      }
}

/* Many threads at one session, also at each other's tasks. */
enum { WORKERS = 4, TASKS = 64 };

typedef struct crowd {
  cbr_session session;
  _Atomic cbr_task tasks[TASKS];
  _Atomic int begun;
} crowd;

typedef struct member {
  crowd *crowd;
  unsigned random;
} member;

static void act_at_random(crowd *it, unsigned choice) {
  cbr_task task = atomic_load(&it->tasks[choice % TASKS]);
  switch (choice / TASKS % 8) {
    case 0:
      if (cbr_task_begin(it->session, NULL, &task) != CBR_OK) return;
      atomic_fetch_add(&it->begun, 1);
      task = atomic_exchange(&it->tasks[choice % TASKS], task);
      if (task != CBR_NONE) (void)cbr_task_cancel(task);
      break;
    case 1: (void)cbr_task_respond(task, "r", 1); break;
    case 2: (void)cbr_task_complete(task, 0); break;
    case 3: (void)cbr_task_cancel(task); break;
    default: (void)cbr_task_data(task, "data", 4); break;
  }
}

static void *work_at_random(void *argument) {
  member *it = argument;
  pthread_barrier_wait(&together);
  for (int each = 0; each < TIMES(20000, 3000); each++) {
    it->random = it->random * 1103515245u + 12345u;
    act_at_random(it->crowd, it->random >> 8);
  }
  return NULL;
}

static void count_in_crowd(delegate *self, char what) {
  if (what == 'r') /* unless another thread has cancelled it meanwhile */
    (void)cbr_reply_send(self->reply, CBR_ALLOW, CBR_NONE);
  self->count = 0;
}

static void expect_crowd(cbr_queue queue) {
  static crowd all;
  member members[WORKERS];
  pthread_t threads[WORKERS];
  delegate it = {.act = count_in_crowd};
  memset(&all, 0, sizeof all);
  add_delegate(&it, whole);
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  options.delegate = it.token;
  options.queue = queue;
  EXPECT(CBR_OK, cbr_session_create(registry, &options, &all.session));
  pthread_barrier_init(&together, NULL, WORKERS);
  for (unsigned each = 0; each < WORKERS; each++) {
    members[each] = (member){&all, each + 1};
    pthread_create(&threads[each], NULL, work_at_random, &members[each]);
  }
  for (int each = 0; each < WORKERS; each++)
    pthread_join(threads[each], NULL);
  pthread_barrier_destroy(&together);
  EXPECT(CBR_OK, cbr_session_cancel(all.session));
  while (cbr_is_live(all.session)) sched_yield();
  EXPECT(CBR_ALREADY, cbr_invalidate_wait(all.session, CBR_REASON_ENDED,
                                          CBR_FOREVER));
  EQUAL(all.begun, it.complete);
  EQUAL(1, it.invalid);
  EQUAL(0, statistics_of(registry).live_tasks);
  EXPECT(CBR_OK, cbr_invalidate_wait(it.token, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(1, it.destroyed);
}

static void G24_crowdInline(void) { expect_crowd(CBR_NONE); }

/* On a queue: nothing is told before it is run. */
static cbr_queue add_queue(uint32_t kind) {
  cbr_queue queue = CBR_NONE;
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  options.label = "main loop";
  options.kind = kind;
  EXPECT(CBR_OK, cbr_queue_create(registry, &options, &queue));
  return queue;
}

static cbr_session add_queued_session(delegate *self, cbr_queue queue) {
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  options.label = "downloads";
  options.delegate = self->token;
  options.queue = queue;
  cbr_session session = CBR_NONE;
  EXPECT(CBR_OK, cbr_session_create(registry, &options, &session));
  return session;
}

/* The end that waits there names the session, and no memory of it (E10). */
static void G24_toldOnAQueue(void) {
  delegate it = {.act = allow};
  cbr_queue queue = add_queue(CBR_QUEUE_PUMPED);
  add_delegate(&it, whole);
  cbr_session session = add_queued_session(&it, queue);
  cbr_task task = add_task(session);
  EXPECT(CBR_OK, cbr_task_respond(task, "200", 3));
  EXPECT(CBR_OK, cbr_task_data(task, "abc", 3));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EXPECT(CBR_OK, cbr_session_finish(session));
  expect_told(&it, "");
  size_t ran;
  EXPECT(CBR_OK, cbr_queue_run(queue, 0, &ran));
  expect_told(&it, "rdci");
  CHECK(!cbr_is_live(session));
  end_delegate(&it);
  EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
}

/* What waits for others stays, in its order, whichever are cancelled. */
static void G28_cancellingDropsItsOwn(void) {
  enum { TASKS = 3, ROUNDS = 2 };
  for (int cancelled = 0; cancelled < 1 << TASKS; cancelled++) {
    delegate it = {0};
    cbr_queue queue = add_queue(CBR_QUEUE_PUMPED);
    add_delegate(&it, whole);
    cbr_session session = add_queued_session(&it, queue);
    cbr_task tasks[TASKS];
    char told[32] = "";
    size_t bytes = 0;
    for (int each = 0; each < TASKS; each++) tasks[each] = add_task(session);
    for (int round = 0; round < ROUNDS; round++)
      for (int each = 0; each < TASKS; each++) {
        size_t size = (size_t)1 << (TASKS * round + each);
        EXPECT(CBR_OK, cbr_task_data(tasks[each], "0123456789abcdef"
                                     "0123456789abcdef", size));
        if (cancelled >> each & 1) continue;
        bytes += size;
        strcat(told, "d");
      }
    for (int each = 0; each < TASKS; each++) {
      if (!(cancelled >> each & 1)) continue;
      EXPECT(CBR_OK, cbr_task_cancel(tasks[each]));
      strcat(told, "x");
    }
    for (int each = 0; each < TASKS; each++) {
      if (cancelled >> each & 1) continue;
      EXPECT(CBR_OK, cbr_task_data(tasks[each], "0", 1));
      EXPECT(CBR_OK, cbr_task_complete(tasks[each], 0));
      bytes++;
      strcat(told, "dc");
    }
    EXPECT(CBR_OK, cbr_session_finish(session));
    EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
    strcat(told, "i");
    expect_told(&it, told);
    EQUAL(bytes, it.bytes);
    end_delegate(&it);
    EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
  }
}

/* Many tasks of which each third is cancelled, in no order: what the others
 * were given is told in its order, and nothing else. A cancellation that looks
 * at what waits of others would take hours here. */
enum { MANY = TIMES(200000, 5000) };

static void next_of_many(void *context, cbr_task task, const void *bytes,
                         size_t size) {
  int given;
  EQUAL(sizeof given, size);
  memcpy(&given, bytes, size);
  delegate *self = context;
  CHECK(given % MANY % 3 != 0);
  CHECK(self->count < given);
  self->task = task;
  self->count = given;
  self->bytes++;
}

static void count_completion(void *context, cbr_task task, int error) {
  delegate *self = context;
  CHECK(self->task != CBR_NONE || self->bytes == 0);
  self->task = task;
  self->error += error == CBR_TASK_CANCELLED;
  self->complete++;
}

static void G28_manyAreCancelled(void) {
  static const cbr_function methods[CBR_SESSION_METHODS] = {
      NULL, AS_FUNCTION(next_of_many), AS_FUNCTION(count_completion), NULL,
      NULL};
  static cbr_task tasks[MANY];
  delegate it = {.count = -1};
  cbr_queue queue = add_queue(CBR_QUEUE_PUMPED);
  add_delegate(&it, methods);
  cbr_session session = add_queued_session(&it, queue);
  for (int each = 0; each < MANY; each++) tasks[each] = add_task(session);
  for (int each = 0; each < 2 * MANY; each++)
    EXPECT(CBR_OK, cbr_task_data(tasks[each % MANY], &each, sizeof each));
  int thirds = (MANY + 2) / 3;
  /* A prime that divides no number of thirds here: each comes once. */
  for (int each = 0, third = 0; each < thirds; each++) {
    EXPECT(CBR_OK, cbr_task_cancel(tasks[third * 3]));
    third = (int)((third + 32771ll) % thirds);
  }
  EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
  EQUAL(2 * (MANY - thirds), it.bytes);
  EQUAL(thirds, it.complete);
  EQUAL(thirds, it.error);
  for (int each = 0; each < MANY; each++)
    if (each % 3 != 0)
      EXPECT(CBR_OK, cbr_task_data(tasks[each], &each, sizeof each));
  EXPECT(CBR_OK, cbr_session_cancel(session));
  EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
  EQUAL(2 * (MANY - thirds), it.bytes);
  EQUAL(MANY, it.complete);
  EQUAL(MANY, it.error);
  CHECK(!cbr_is_live(session));
  end_delegate(&it);
  EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
}

static void give_more(delegate *self, char what) {
  if (what != 'd' || self->bytes == 10000) return;
  EXPECT(CBR_OK, cbr_task_data(self->task, "x", 1));
  self->count = 0;
}

static void note_bytes(void *context, void *payload) {
  *(size_t *)payload = ((delegate *)context)->bytes;
}

/* A session that always has more leaves the queue's others their turn, and
 * says no more when the queue has ended. */
static void G24_busySessionOnAQueue(void) {
  for (int way = 0; way < 2; way++) {
    WITHIN("way %d", way);
    delegate it = {.act = give_more};
    size_t bytes = 0;
    cbr_queue queue = add_queue(CBR_QUEUE_PUMPED);
    cbr_token token;
    add_delegate(&it, whole);
    EXPECT(CBR_OK, CBR_REGISTER(registry, "", note_bytes, &it, NULL, CBR_NONE,
                                &token));
    cbr_session session = add_queued_session(&it, queue);
    cbr_task task = add_task(session);
    cbr_message message = CBR_MESSAGE_INIT;
    message.payload = &bytes;
    EXPECT(CBR_OK, cbr_task_data(task, "x", 1));
    EXPECT(CBR_OK, cbr_post(queue, token, &message));
    EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
    CHECK(bytes > 0 && bytes < 10000);
    CHECK(it.bytes < 10000);
    struct pollfd wanted = {cbr_queue_descriptor(queue), POLLIN, 0};
    EQUAL(1, poll(&wanted, 1, 0));
    if (way == 0) {
      for (int run = 0; run < 10000 && it.bytes < 10000; run++)
        EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
      EQUAL(10000, it.bytes);
      EXPECT(CBR_OK, cbr_session_finish(session));
      EXPECT(CBR_OK, cbr_task_complete(task, 0));
      EXPECT(CBR_OK, cbr_queue_run(queue, 0, NULL));
      EQUAL(1, it.invalid);
    }
    EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
    EQUAL(way == 0, it.complete);
    CHECK(!cbr_is_live(session));
    end_delegate(&it);
    EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, 0));
  }
}

static cbr_queue ended_inside;

static void end_queue_inside(delegate *self, char what) {
  if (what == 'd')
    EXPECT(CBR_DEFERRED, cbr_invalidate(ended_inside, CBR_REASON_ENDED));
  (void)self;
}

static void G23_queueEndsInside(void) {
  delegate it = {.act = end_queue_inside};
  ended_inside = add_queue(CBR_QUEUE_PUMPED);
  add_delegate(&it, whole);
  cbr_session session = add_queued_session(&it, ended_inside);
  cbr_task task = add_task(session);
  for (int each = 0; each < 3; each++)
    EXPECT(CBR_OK, cbr_task_data(task, "x", 1));
  EXPECT(CBR_OK, cbr_task_complete(task, 0));
  EXPECT(CBR_OK, cbr_queue_run(ended_inside, 0, NULL));
  expect_told(&it, "d");
  CHECK(!cbr_is_live(task));
  CHECK(!cbr_is_live(session));
  end_delegate(&it);
}

static void G24_crowdOnAThread(void) {
  cbr_queue queue = add_queue(CBR_QUEUE_THREAD);
  expect_crowd(queue);
  EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
}

static void G24_toldOnAThread(void) {
  delegate it = {.act = allow};
  cbr_queue queue = add_queue(CBR_QUEUE_THREAD);
  add_delegate(&it, whole);
  for (int each = 0; each < 20; each++) {
    cbr_session session = add_queued_session(&it, queue);
    cbr_task task = add_task(session);
    EXPECT(CBR_OK, cbr_task_respond(task, NULL, 0));
    EXPECT(CBR_OK, cbr_task_data(task, "abc", 3));
    EXPECT(CBR_OK, cbr_task_complete(task, 0));
    EXPECT(CBR_OK, cbr_session_finish(session));
  }
  CHECK(cbr_queue_finish(queue) >= 0);
  while (cbr_is_live(queue)) sched_yield();
  EXPECT(CBR_ALREADY,
         cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
  EQUAL(20, it.invalid);
  EQUAL(20, it.complete);
  EXPECT(CBR_OK, cbr_invalidate_wait(it.token, CBR_REASON_ENDED, CBR_FOREVER));
}

/* The queue ends first: nobody is told, and all comes to its end. */
static void G23_queueEndsFirst(void) {
  for (int way = 0; way < 2; way++) {
    WITHIN("way %d", way);
    delegate it = {0};
    cbr_queue queue = add_queue(CBR_QUEUE_PUMPED);
    add_delegate(&it, whole);
    cbr_session session = add_queued_session(&it, queue);
    cbr_task task = add_task(session);
    if (way == 0) EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
    EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
    if (way == 1) EXPECT(CBR_OK, cbr_task_data(task, "1", 1));
    CHECK(!cbr_is_live(task));
    CHECK(!cbr_is_live(session));
    expect_told(&it, "");
    end_delegate(&it);
  }
  delegate it = {0};
  cbr_queue queue = add_queue(CBR_QUEUE_PUMPED);
  EXPECT(CBR_OK, cbr_invalidate_wait(queue, CBR_REASON_ENDED, CBR_FOREVER));
  add_delegate(&it, whole);
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  options.delegate = it.token;
  options.queue = queue;
  EXPECT(CBR_E_STALE, cbr_session_create(registry, &options, &it.session));
  options.queue = it.token;
  EXPECT(CBR_E_KIND, cbr_session_create(registry, &options, &it.session));
  end_delegate(&it);
}

static void G6_failuresTakeNothing(void) {
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  options.delegate = it.token;
  struct counted counted = {0};
  cbr_task_options what = CBR_TASK_OPTIONS_INIT;
  what.context = &counted;
  what.destroy = count_destroy;
  int failures = 0;
  for (int64_t after = 0;; after++) {
    cbr_session session = CBR_NONE;
    cbr_task task = CBR_NONE;
    cbr_test_fail_allocation(after);
    cbr_status status = cbr_session_create(registry, &options, &session);
    if (status == CBR_OK) status = cbr_task_begin(session, &what, &task);
    bool was_begun = status == CBR_OK;
    if (status == CBR_OK) status = cbr_task_respond(task, "r", 1);
    if (status == CBR_OK) status = cbr_task_data(task, "held", 4);
    if (status == CBR_OK)
      status = cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE);
    bool is_whole = cbr_test_fail_allocation(-1) >= 0;
    if (!is_whole) EXPECT(CBR_E_NOMEM, status);
    failures += !is_whole;
    EQUAL(0, destroyed(&counted));
    if (session != CBR_NONE) EXPECT(CBR_OK, cbr_session_cancel(session));
    EQUAL(was_begun ? 1 : 0, destroyed(&counted));
    counted = (struct counted){0};
    if (is_whole) break;
  }
  CHECK(failures > 5);
  EQUAL(0, statistics_of(registry).live_leases);
  EQUAL(0, statistics_of(registry).live_sessions);
  end_delegate(&it);
}

static void G1_sessionsRefuseWhatIsNotTheirs(void) {
  cbr_registry other = open_registry("other", CBR_LEVEL_OFF);
  struct counted counted = {0};
  cbr_token plain = add(registry, "plain", &counted, false, CBR_NONE);
  delegate it = {0};
  add_delegate(&it, whole);
  cbr_session_options options = CBR_SESSION_OPTIONS_INIT;
  cbr_session session = plain;
  EXPECT(CBR_E_INVALID, cbr_session_create(registry, NULL, &session));
  EXPECT(CBR_E_INVALID, cbr_session_create(registry, &options, &session));
  options.delegate = plain;
  EXPECT(CBR_E_INTERFACE, cbr_session_create(registry, &options, &session));
  options.delegate = registry;
  EXPECT(CBR_E_KIND, cbr_session_create(registry, &options, &session));
  options.delegate = it.token;
  EXPECT(CBR_E_FOREIGN, cbr_session_create(other, &options, &session));
  options.flags = 1;
  EXPECT(CBR_E_INVALID, cbr_session_create(registry, &options, &session));
  options.flags = 0;
  options.owner = plain;
  EXPECT(CBR_E_KIND, cbr_session_create(registry, &options, &session));
  EQUAL(CBR_NONE, session);
  options.owner = CBR_NONE;
  EXPECT(CBR_OK, cbr_session_create(registry, &options, &session));
  cbr_task task = session;
  cbr_task_options what = CBR_TASK_OPTIONS_INIT;
  what.flags = 2;
  EXPECT(CBR_E_INVALID, cbr_task_begin(session, &what, &task));
  EXPECT(CBR_E_KIND, cbr_task_begin(plain, NULL, &task));
  EXPECT(CBR_E_KIND, cbr_task_data(session, "x", 1));
  EXPECT(CBR_E_KIND, cbr_session_finish(plain));
  EXPECT(CBR_E_KIND, cbr_reply_send(session, CBR_ALLOW, CBR_NONE));
  task = add_task(session);
  EXPECT(CBR_E_INVALID, cbr_task_data(task, NULL, 1));
  EXPECT(CBR_E_INVALID, cbr_task_data(task, "x", 0));
  EXPECT(CBR_E_INVALID, cbr_task_respond(task, NULL, 1));
  EXPECT(CBR_E_INVALID, cbr_task_respond(task, "x", SIZE_MAX));
  EXPECT(CBR_OK, cbr_task_data(task, "x", 1));
  EXPECT(CBR_ALREADY, cbr_task_respond(task, "x", 1));
  EXPECT(CBR_OK, cbr_session_cancel(session));
  end_delegate(&it);
  EXPECT(CBR_OK, cbr_invalidate_wait(plain, CBR_REASON_ENDED, 0));
  close_registry(other);
}

/* F3: a session that nobody ended is named at close. */
static void F3_openSessionIsNamed(void) {
  cbr_registry former = registry;
  registry = open_registry("leaky", CBR_LEVEL_LIFECYCLE);
  delegate it = {0};
  add_delegate(&it, whole);
  (void)add_session(&it, CBR_NONE);
  EXPECT(CBR_OK, cbr_registry_close(registry, CBR_FOREVER));
  CHECK(strstr(cbr_last_error(), "the session \"downloads\" at ") != NULL);
  EQUAL(1, it.destroyed);
  registry = former;
}

/* A session that never had a task has no open one. */
static void F3_openTasksAreCounted(void) {
  history own;
  cbr_registry former = registry;
  registry = open_with_history(&own, "counted", CBR_LEVEL_LIFECYCLE);
  delegate idle = {0}, busy = {0};
  add_delegate(&idle, whole);
  add_delegate(&busy, whole);
  cbr_session without = add_session(&idle, CBR_NONE);
  cbr_session with = add_session(&busy, CBR_NONE);
  EXPECT(CBR_OK, cbr_task_complete(add_task(with), 0));
  cbr_task open = add_task(with);
  EXPECT(CBR_OK, cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER,
                                 NULL));
  EQUAL(1, number_in(&own, "SELECT count(*) FROM open_sessions "
                           "WHERE tasks = 0 AND open_tasks = 0"));
  EQUAL(1, number_in(&own, "SELECT count(*) FROM open_sessions "
                           "WHERE tasks = 2 AND open_tasks = 1"));
  EXPECT(CBR_OK, cbr_task_complete(open, 0));
  EXPECT(CBR_OK, cbr_session_finish(without));
  EXPECT(CBR_OK, cbr_session_finish(with));
  end_delegate(&idle);
  end_delegate(&busy);
  close_registry(registry);
  registry = former;
  EQUAL(2, number_in(&own, "SELECT count(*) FROM sessions "
                           "WHERE open_tasks = 0"));
  check_history(&own);
  remove_history(&own);
}

int main(void) {
  registry = open_registry("sessions", test_level());
  TEST(G24_lifeOfASession);
  TEST(F4_endWithoutTasks);
  TEST(G24_finishWaitsForTasks);
  TEST(G24_cancelAfterFinish);
  TEST(G26_heldBackUntilTheReply);
  TEST(G26_replyCancels);
  TEST(G26_replyHandsOver);
  TEST(F5_leastDelegate);
  TEST(G28_cancelInsideData);
  TEST(G28_gatheringAndContext);
  TEST(G24_endedFromInside);
  TEST(G23_delegateEndsFirst);
  TEST(G23_successorEndsFirst);
  TEST(G27_neverAnswered);
  TEST(G27_endedReply);
  TEST(G11_jumpOutOfADelegate);
  TEST(H1_delegateForks);
  TEST(F1_everyMixture);
  TEST(G24_crowdInline);
  TEST(G28_cancellingDropsItsOwn);
  TEST(G24_crowdOnAThread);
  TEST(G24_toldOnAQueue);
  TEST(G28_manyAreCancelled);
  TEST(G24_busySessionOnAQueue);
  TEST(G23_queueEndsInside);
  TEST(G24_toldOnAThread);
  TEST(G23_queueEndsFirst);
  TEST(G6_failuresTakeNothing);
  TEST(G1_sessionsRefuseWhatIsNotTheirs);
  TEST(F3_openSessionIsNamed);
  TEST(F3_openTasksAreCounted);
  EQUAL(0, statistics_of(registry).live_tokens);
  EQUAL(0, statistics_of(registry).live_sessions);
  EQUAL(0, statistics_of(registry).live_tasks);
  EQUAL(0, statistics_of(registry).live_replies);
  EQUAL(0, statistics_of(registry).live_leases);
  close_registry(registry);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * H13: a signal handler asks cbr_is_live while the interrupted thread is
 * anywhere in the library, and other threads register, call and end.
 */
#include "subject.h"

#include <signal.h>

enum { PLACES = 64 };

static cbr_registry registry;

/* A token that was published live, and is only ended afterwards. */
typedef struct place {
  _Atomic cbr_token token;
  _Atomic bool is_ended; /* its ending has returned */
} place;

static place places[PLACES];
static cbr_token lasting;
static _Atomic int asked, answered_live, wrong;
static _Atomic bool is_over;

/* Nothing but what the header allows. */
static void ask(int signal) {
  (void)signal;
  int problem = errno;
  for (int each = 0; each < PLACES; each++) {
    bool was_ended = atomic_load(&places[each].is_ended);
    cbr_token token = atomic_load(&places[each].token);
    bool is_live = cbr_is_live(token);
    /* The place is another token's by now, unless both are as before. */
    if (is_live && was_ended && atomic_load(&places[each].is_ended) &&
        atomic_load(&places[each].token) == token)
      atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&answered_live, is_live);
  }
  if (!cbr_is_live(lasting) || !cbr_is_live(registry))
    atomic_fetch_add(&wrong, 1);
  if (cbr_is_live(CBR_NONE) || cbr_is_live(UINT64_MAX) ||
      strcmp(cbr_status_name(CBR_E_STALE), "CBR_E_STALE") != 0)
    atomic_fetch_add(&wrong, 1);
  atomic_fetch_add(&asked, 1);
  errno = problem;
}

/* Registers, calls and ends, each place by one thread only. */
static void churn(void *argument) {
  place *own = argument;
  life life = {0};
  for (int step = 0; !atomic_load(&is_over); step++) {
    place *it = &own[step % (PLACES / 2)];
    cbr_token token;
    atomic_store(&life.destroyed, 0);
    EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
    atomic_store(&it->is_ended, false);
    atomic_store(&it->token, token);
    EXPECT(CBR_OK, subject_visit(token, &life));
    EXPECT(CBR_OK, cbr_invalidate(token, CBR_REASON_ENDED));
    EQUAL(1, life.destroyed);
    atomic_store(&it->is_ended, true);
    EXPECT(CBR_E_STALE, subject_visit(token, &life));
  }
}

static void H13_askedInASignalHandler(void) {
  enum { ENOUGH = TIMES(400, 150) };
  struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
  struct itimerspec often = {{0, 200000}, {0, 200000}}; /* 5 kHz */
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGALRM};
  life life = {0};
  worker workers[2];
  timer_t timer;
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &lasting));
  EQUAL(0, sigaction(SIGALRM, &action, NULL));
  EQUAL(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
  for (int each = 0; each < 2; each++)
    start(&workers[each], "churn", churn, &places[each * PLACES / 2]);
  EQUAL(0, timer_settime(timer, 0, &often, NULL));
  /* Any thread may get the signal; this one works, too. */
  while (atomic_load(&asked) < ENOUGH)
    EXPECT(CBR_OK, subject_visit(lasting, &life));
  timer_delete(timer);
  atomic_store(&is_over, true);
  for (int each = 0; each < 2; each++) join(&workers[each]);
  EQUAL(0, atomic_load(&wrong));
  CHECK(atomic_load(&answered_live) > 0);
  EXPECT(CBR_OK, cbr_invalidate(lasting, CBR_REASON_ENDED));
}

/* Right in the middle of an operation: at each of its points. */
static void ask_at(int32_t point, uint64_t handle) {
  (void)point;
  (void)handle;
  raise(SIGALRM);
}

static void H13_askedAtEachPoint(void) {
  life life = {0}, other = {0};
  cbr_token token;
  atomic_store(&asked, 0);
  EXPECT(CBR_OK, subject_register(registry, &other, CBR_NONE, &lasting));
  cbr_test_set_hook(ask_at);
  EXPECT(CBR_OK, subject_register(registry, &life, CBR_NONE, &token));
  EXPECT(CBR_OK, subject_visit(token, &life));
  EXPECT(CBR_OK, cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
  cbr_test_set_hook(reach);
  CHECK(atomic_load(&asked) > 10);
  EQUAL(0, atomic_load(&wrong));
  EXPECT(CBR_OK, cbr_invalidate(lasting, CBR_REASON_ENDED));
}

int main(void) {
  registry = open_registry("signals", CBR_LEVEL_CALLS);
  TEST(H13_askedInASignalHandler);
  TEST(H13_askedAtEachPoint);
  close_registry(registry);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending what an emission is inside: a connection, its owner, its signal, the
 * signal's owner, the registry; by a handler, by another thread, by both. What
 * is said (G14), that it says so (G15), and what becomes of the rest (G20).
 */
#include "gates.h"

typedef enum target {
  CONNECTION, OBSERVER, SIGNAL, OBSERVED, REGISTRY, TARGETS
} target;

static const char *const names[TARGETS] = {
    "connection", "its owner", "its signal", "the signal's owner", "registry"};

/* A signal of one owner, and three handlers: the second is what is ended, as
 * an observer's, the others are the registry's own. */
typedef struct scene scene;
typedef struct party {
  scene *scene;
  cbr_token token;
  int calls;
  void (*act)(scene *);
  void (*on_destroy)(scene *);
  struct counted counted;
} party;

struct scene {
  cbr_registry registry;
  cbr_owner observer, observed;
  cbr_signal signal;
  party parties[3];
  cbr_handle target;
  cbr_status status;
  void *more;
};

static cbr_disposition hear(void *context, void *argument) {
  party *self = context;
  CHECK(argument == self->scene);
  EQUAL(0, destroyed(&self->counted));
  __atomic_add_fetch(&self->calls, 1, __ATOMIC_RELAXED);
  reach(BEFORE_ACT, (uintptr_t)self);
  if (self->act) self->act(self->scene);
  reach(IN_CALLBACK, (uintptr_t)self);
  EQUAL(0, destroyed(&self->counted));
  return CBR_CONTINUE;
}

static void party_destroyed(void *context) {
  party *self = context;
  if (self->on_destroy) self->on_destroy(self->scene);
  count_destroy(&self->counted);
}

static void join_in(scene *it, int which, cbr_owner owner, bool is_plain) {
  party *self = &it->parties[which];
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "handler";
  what.function = (cbr_function)(uintptr_t)hear;
  what.context = self;
  what.destroy = is_plain ? NULL : party_destroyed;
  what.owner = owner;
  self->scene = it;
  EXPECT(CBR_OK, cbr_connect(it->signal, &what, NULL, &self->token));
}

static void set_up(scene *it, bool is_plain) {
  memset(it, 0, sizeof *it);
  it->registry = open_registry("inside", test_level());
  it->observer = add_owner(it->registry, "observer");
  it->observed = add_owner(it->registry, "observed");
  EXPECT(CBR_OK, cbr_signal_create(it->registry, "signal", it->observed,
                                   &it->signal));
  join_in(it, 0, CBR_NONE, false);
  join_in(it, 1, it->observer, is_plain);
  join_in(it, 2, CBR_NONE, false);
}

static void aim(scene *it, target target) {
  const cbr_handle handles[TARGETS] = {it->parties[1].token, it->observer,
                                       it->signal, it->observed,
                                       it->registry};
  it->target = handles[target];
  it->status = CBR_E_USER;
}

static bool ends_the_signal(target target) { return target >= SIGNAL; }

/* All is over: each destroy has run, nothing is left. */
static void tear_down(scene *it, target target) {
  if (target != REGISTRY) {
    EXPECT(CBR_ALREADY, cbr_invalidate_wait(it->target, CBR_REASON_ENDED, 0));
    CHECK(cbr_invalidate_wait(it->signal, CBR_REASON_ENDED, 0) >= CBR_OK);
    EQUAL(0, statistics_of(it->registry).live_tokens);
    EXPECT(CBR_OK, cbr_registry_close(it->registry, CBR_FOREVER));
  } else {
    EXPECT(CBR_ALREADY, cbr_registry_close(it->registry, CBR_FOREVER));
  }
  for (int each = 0; each < 3; each++)
    EQUAL(each != 1 || it->parties[1].counted.destroyed ? 1 : 0,
          destroyed(&it->parties[each].counted));
}

static void end_target(scene *it) {
  it->status = cbr_invalidate(it->target, CBR_REASON_ENDED);
}

static void ask_target(scene *it) {
  it->status = cbr_invalidate_wait(it->target, CBR_REASON_ENDED, 0);
}

static void wait_for_target(scene *it) {
  it->status = cbr_invalidate_wait(it->target, CBR_REASON_ENDED, CBR_FOREVER);
}

static void (*const ways[])(scene *) = {end_target, ask_target,
                                        wait_for_target};

/* ------------------------------------------------------------ by a handler */

static void G14_endedByTheHandlerItself(void) {
  for (int target = 0; target < TARGETS; target++)
    for (int way = 0; way < 3; way++)
      for (int is_plain = 0; is_plain < 2; is_plain++) {
        WITHIN("%s, way %d, plain %d", names[target], way, is_plain);
        scene it;
        set_up(&it, is_plain);
        aim(&it, target);
        it.parties[1].act = ways[way];
        bool is_over = ends_the_signal(target);
        EXPECT(is_over ? CBR_STOPPED : CBR_OK,
               cbr_emit(it.signal, &it, NULL));
        EXPECT(CBR_DEFERRED, it.status);
        EQUAL(is_over ? 0 : 1, it.parties[2].calls);
        EQUAL(is_plain ? 0 : 1, destroyed(&it.parties[1].counted));
        it.parties[1].act = NULL;
        if (!is_over) {
          EXPECT(CBR_OK, cbr_emit(it.signal, &it, NULL));
          EQUAL(1, it.parties[1].calls);
          EQUAL(2, it.parties[2].calls);
        }
        tear_down(&it, target);
      }
}

/* Inside a nested emission, both are left before it is over. */
static void emit_within(scene *it) {
  party *self = &it->parties[1];
  self->act = it->more ? end_target : wait_for_target;
  (void)cbr_emit(it->signal, it, NULL);
}

static void G14_endedInANestedEmission(void) {
  for (int target = 0; target < TARGETS; target++)
    for (int way = 0; way < 2; way++) {
      WITHIN("%s, way %d", names[target], way);
      scene it;
      set_up(&it, false);
      aim(&it, target);
      it.more = way ? &it : NULL;
      it.parties[1].act = emit_within;
      (void)cbr_emit(it.signal, &it, NULL);
      EXPECT(CBR_DEFERRED, it.status);
      EQUAL(2, it.parties[1].calls);
      EQUAL(ends_the_signal(target) ? 0 : 2, it.parties[2].calls);
      EQUAL(1, destroyed(&it.parties[1].counted));
      tear_down(&it, target);
    }
}

/* ------------------------------------------------------- by another thread */

typedef struct emission {
  scene *scene;
  worker worker;
  gate inside;
  cbr_status status;
} emission;

static void emit_it(void *argument) {
  emission *it = argument;
  it->status = cbr_emit(it->scene->signal, it->scene, NULL);
}

/* Starts an emission that stops inside the second handler. */
static void start_emission(emission *it, scene *scene, int point) {
  uintptr_t handler = (uintptr_t)&scene->parties[1];
  it->scene = scene;
  it->inside = (gate)GATE(point, handler, &it->worker);
  close_gate(&it->inside);
  start(&it->worker, "emitter", emit_it, it);
  await_gate(&it->inside);
}

static void finish_emission(emission *it) {
  open_gate(&it->inside);
  join(&it->worker);
}

static void run_end(void *argument) { end_target(argument); }
static void run_wait(void *argument) { wait_for_target(argument); }

static void G14_endedWhileAnotherThreadIsInside(void) {
  for (int target = 0; target < TARGETS; target++)
    for (int is_plain = 0; is_plain < 2; is_plain++) {
      WITHIN("%s, plain %d", names[target], is_plain);
      scene it;
      emission running;
      set_up(&it, is_plain);
      start_emission(&running, &it, IN_CALLBACK);
      aim(&it, target);
      bool is_parked = target == CONNECTION && is_plain;
      EXPECT(is_parked ? CBR_OK : CBR_PENDING,
             cbr_invalidate(it.target, CBR_REASON_ENDED));
      EXPECT(CBR_E_TIMEOUT,
             cbr_invalidate_wait(it.target, CBR_REASON_ENDED, 0));
      CHECK(strstr(cbr_last_error(), "on thread") != NULL);
      worker waiter;
      start(&waiter, "waiter", run_wait, &it);
      CHECK(!run_far(&waiter));
      EQUAL(0, destroyed(&it.parties[1].counted));
      finish_emission(&running);
      join(&waiter);
      CHECK(it.status == CBR_ALREADY || it.status == CBR_E_CLOSED);
      EXPECT(ends_the_signal(target) ? CBR_STOPPED : CBR_OK, running.status);
      EQUAL(ends_the_signal(target) ? 0 : 1, it.parties[2].calls);
      EQUAL(is_plain ? 0 : 1, destroyed(&it.parties[1].counted));
      tear_down(&it, target);
    }
}

/* --------------------------------------------------------------- by both */

static void G14_endedByAHandlerAmongOthers(void) {
  for (int target = 0; target < TARGETS; target++)
    for (int way = 0; way < 3; way++) {
      WITHIN("%s, way %d", names[target], way);
      scene it;
      emission other, own;
      set_up(&it, false);
      start_emission(&other, &it, IN_CALLBACK);
      aim(&it, target);
      it.parties[1].act = ways[way];
      own.scene = &it;
      start(&own.worker, "ender", emit_it, &own);
      bool is_done = run_far(&own.worker);
      EQUAL(way < 2, is_done);
      EQUAL(0, destroyed(&it.parties[1].counted));
      if (way == 0) EXPECT(CBR_DEFERRED, it.status);
      if (way == 1) EXPECT(CBR_E_TIMEOUT, it.status);
      if (way == 2) EXPECT(CBR_E_USER, it.status);
      finish_emission(&other);
      join(&own.worker);
      if (way == 2) EXPECT(CBR_DEFERRED, it.status);
      EQUAL(1, destroyed(&it.parties[1].counted));
      EQUAL(2, it.parties[1].calls);
      it.parties[1].act = NULL;
      tear_down(&it, target);
    }
}

/* ------------------------------------------------------- inside a destroy */

static cbr_status in_destroy[TARGETS];

static void ask_each_in_destroy(scene *it) {
  const cbr_handle handles[] = {it->parties[1].token, it->observer,
                                it->signal, it->observed};
  for (int each = 0; each < REGISTRY; each++)
    in_destroy[each] =
        cbr_invalidate_wait(handles[each], CBR_REASON_ENDED, 0);
}

/* A connection's destroy is inside all that the connection belongs to, its
 * signal included, though its owner is another one. */
static void G15_destroyIsInsideTheSignal(void) {
  for (int is_own = 0; is_own < 2; is_own++) {
    WITHIN("of the signal's owner %d", is_own);
    scene it;
    set_up(&it, false);
    if (is_own) {
      EXPECT(CBR_OK,
             cbr_invalidate(it.parties[1].token, CBR_REASON_ENDED));
      it.parties[1].counted = (struct counted){0};
      join_in(&it, 1, it.observed, false);
    }
    it.parties[1].on_destroy = ask_each_in_destroy;
    EXPECT(CBR_OK, cbr_invalidate(it.parties[1].token, CBR_REASON_ENDED));
    for (int each = 0; each < REGISTRY; each++) {
      bool is_inside = each != OBSERVER || !is_own;
      EXPECT(is_inside ? CBR_DEFERRED : CBR_OK, in_destroy[each]);
    }
    aim(&it, OBSERVED);
    tear_down(&it, OBSERVED);
  }
}

/* Another thread has claimed a connection of the signal, and pins nothing. */
static void G15_deferredAfterConnectionsOfOthers(void) {
  for (int which = 0; which < 3; which += 2)
    for (int target = SIGNAL; target <= OBSERVED; target++) {
      WITHIN("party %d, %s", which, names[target]);
      scene it, claiming;
      set_up(&it, false);
      claiming.target = it.parties[which].token;
      worker ender;
      gate claimed = GATE(DESTROYED, claiming.target, &ender);
      close_gate(&claimed);
      start(&ender, "ender", run_end, &claiming);
      await_gate(&claimed);
      aim(&it, target);
      it.parties[1].act = ask_target;
      EXPECT(CBR_STOPPED, cbr_emit(it.signal, &it, NULL));
      EXPECT(CBR_E_TIMEOUT, it.status);
      open_gate(&claimed);
      join(&ender);
      EXPECT(CBR_OK, claiming.status);
      tear_down(&it, target);
    }
}

/* ------------------------------------------------------------------ rings */

/* Two scenes, each with a thread inside its second handler that waits for
 * something of the other. */
static void B5_ringsThroughSignals(void) {
  for (int one = 0; one < REGISTRY; one++)
    for (int two = 0; two < REGISTRY; two++) {
      WITHIN("%s, %s", names[one], names[two]);
      scene it[2];
      emission running[2];
      for (int each = 0; each < 2; each++) {
        set_up(&it[each], false);
        start_emission(&running[each], &it[each], BEFORE_ACT);
        it[each].parties[1].act = wait_for_target;
      }
      aim(&it[0], one);
      aim(&it[1], two);
      cbr_handle first = it[0].target;
      it[0].target = it[1].target;
      it[1].target = first;
      open_gate(&running[0].inside);
      CHECK(!run_far(&running[0].worker));
      open_gate(&running[1].inside);
      join(&running[1].worker);
      EXPECT(CBR_E_WOULD_DEADLOCK, it[1].status);
      join(&running[0].worker);
      EXPECT(CBR_OK, it[0].status);
      for (int each = 0; each < 2; each++) {
        EXPECT(CBR_OK, cbr_registry_close(it[each].registry, CBR_FOREVER));
        for (int party = 0; party < 3; party++)
          EQUAL(1, destroyed(&it[each].parties[party].counted));
      }
    }
}

/* The destroy of a connection waits for a thread that waits for its signal. */
static void B5_ringThroughADestroyAndASignal(void) {
  for (int target = SIGNAL; target <= OBSERVED; target++) {
    WITHIN("%s", names[target]);
    scene dying, other;
    set_up(&dying, false);
    set_up(&other, false);
    emission running;
    start_emission(&running, &other, BEFORE_ACT);
    aim(&dying, target);
    other.target = dying.target;
    other.parties[1].act = wait_for_target;
    dying.target = other.parties[1].token;
    dying.parties[1].on_destroy = wait_for_target;
    worker ender;
    gate marked = GATE(END_MARKED, dying.parties[1].token, &ender);
    close_gate(&marked);
    scene ending = {.target = dying.parties[1].token};
    start(&ender, "ender", run_end, &ending);
    await_gate(&marked);
    open_gate(&running.inside);
    CHECK(!run_far(&running.worker));
    open_gate(&marked);
    join(&ender);
    EXPECT(CBR_E_WOULD_DEADLOCK, dying.status);
    EXPECT(CBR_OK, ending.status);
    join(&running.worker);
    EXPECT(CBR_OK, other.status);
    close_registry(dying.registry);
    close_registry(other.registry);
  }
}

/* ------------------------------------------------------ leases and parking */

/* A lease on a connection keeps it, and so its signal: for whoever waits. */
static void G14_leaseOnAConnectionKeepsItsSignal(void) {
  for (int target = 0; target < REGISTRY; target++) {
    WITHIN("%s", names[target]);
    scene it;
    set_up(&it, false);
    aim(&it, target);
    cbr_lease_handle lease;
    cbr_call call;
    EXPECT(CBR_OK, cbr_lease(it.parties[1].token, &lease));
    EXPECT(CBR_PENDING, cbr_invalidate(it.target, CBR_REASON_ENDED));
    EXPECT(CBR_E_TIMEOUT,
           cbr_invalidate_wait(it.target, CBR_REASON_ENDED, 0));
    EXPECT(CBR_OK, cbr_lease_get(lease, &call));
    CHECK(call.context == &it.parties[1]);
    EQUAL(0, destroyed(&it.parties[1].counted));
    worker waiter;
    start(&waiter, "waiter", run_wait, &it);
    CHECK(!run_far(&waiter));
    EXPECT(CBR_OK, cbr_lease_end(lease));
    EQUAL(1, destroyed(&it.parties[1].counted));
    join(&waiter);
    EXPECT(CBR_ALREADY, it.status);
    tear_down(&it, target);
  }
}

/* Whoever is inside is deferred although there is a lease: nothing runs. */
static void G15_deferredDespiteALease(void) {
  for (int target = 0; target < REGISTRY; target++) {
    WITHIN("%s", names[target]);
    scene it;
    set_up(&it, false);
    aim(&it, target);
    it.parties[1].act = wait_for_target;
    cbr_lease_handle leases[2];
    EXPECT(CBR_OK, cbr_lease(it.parties[1].token, &leases[0]));
    EXPECT(CBR_OK, cbr_lease(it.parties[2].token, &leases[1]));
    (void)cbr_emit(it.signal, &it, NULL);
    EXPECT(CBR_DEFERRED, it.status);
    EQUAL(0, destroyed(&it.parties[1].counted));
    EXPECT(CBR_OK, cbr_lease_end(leases[0]));
    EXPECT(CBR_OK, cbr_lease_end(leases[1]));
    EQUAL(1, destroyed(&it.parties[1].counted));
    tear_down(&it, target);
  }
}

/* A connection without destroy is parked when its signal ends, or marked and
 * not parked yet. */
static void G14_parkedConnections(void) {
  for (int is_late = 0; is_late < 2; is_late++)
    for (int target = 0; target < REGISTRY; target++)
      for (int way = 0; way < 3; way++) {
        WITHIN("late %d, %s, way %d", is_late, names[target], way);
        scene it;
        set_up(&it, true);
        aim(&it, target);
        scene parking = {.target = it.parties[1].token};
        worker ender, waiter;
        gate marked = GATE(END_MARKED, parking.target, &ender);
        if (is_late) close_gate(&marked);
        start(&ender, "ender", run_end, &parking);
        if (is_late) {
          await_gate(&marked);
        } else {
          join(&ender);
        }
        start(&waiter, "waiter",
              way == 0 ? run_end : run_wait, &it);
        CHECK(run_far(&waiter) || is_late);
        if (is_late) open_gate(&marked);
        if (is_late) join(&ender);
        join(&waiter);
        EXPECT(CBR_OK, parking.status);
        if (target == CONNECTION) {
          EXPECT(CBR_ALREADY, it.status);
        } else if (way > 0) {
          EXPECT(CBR_OK, it.status);
        } else {
          CHECK(it.status == CBR_OK || (is_late && it.status == CBR_PENDING));
        }
        if (target >= SIGNAL) EQUAL(0, statistics_of(it.registry).unsettled);
        tear_down(&it, target);
      }
}

/* ------------------------------------------------- threads and processes */

static void leave_thread(scene *it) {
  (void)it;
  pthread_exit(NULL);
}

/* G11: a thread ends inside an emission, of a signal that lives on. */
static void G11_threadEndsInsideAnEmission(void) {
  for (int target = 0; target < TARGETS; target++) {
    WITHIN("%s", names[target]);
    scene it;
    set_up(&it, false);
    aim(&it, target);
    it.parties[1].act = leave_thread;
    emission lost = {.scene = &it, .status = CBR_E_USER};
    start(&lost.worker, "leaving", emit_it, &lost);
    join(&lost.worker);
    EXPECT(CBR_E_USER, lost.status);
    it.parties[1].act = NULL;
    EQUAL(1, statistics_of(it.registry).abandoned);
    EXPECT(CBR_OK, cbr_emit(it.signal, &it, NULL));
    EQUAL(2, it.parties[1].calls);
    EQUAL(1, it.parties[2].calls);
    EXPECT(CBR_OK, cbr_invalidate_wait(it.target, CBR_REASON_ENDED,
                                       CBR_FOREVER));
    EQUAL(1, destroyed(&it.parties[1].counted));
    tear_down(&it, target);
  }
}

static pid_t forked;

static void fork_inside(scene *it) {
  (void)it;
  forked = fork();
}

/* A handler that forks: nothing of the parent's is called in the child. */
static void G20_handlerForks(void) {
  scene it;
  set_up(&it, false);
  it.parties[1].act = fork_inside;
  fflush(NULL);
  cbr_status status = cbr_emit(it.signal, &it, NULL);
  if (forked == 0) {
    EXPECT(CBR_E_FORKED, status);
    EQUAL(0, it.parties[2].calls);
    EXPECT(CBR_E_FORKED, cbr_emit(it.signal, &it, NULL));
    EXPECT(CBR_E_FORKED, cbr_block(it.signal));
    cbr_registration what = CBR_REGISTRATION_INIT;
    what.function = (cbr_function)(uintptr_t)hear;
    cbr_token token;
    EXPECT(CBR_E_FORKED, cbr_connect(it.signal, &what, NULL, &token));
    EXPECT(CBR_E_FORKED, cbr_invalidate(it.signal, CBR_REASON_ENDED));
    EXPECT(CBR_E_FORKED, cbr_invalidate(it.parties[1].token,
                                        CBR_REASON_ENDED));
    for (int each = 0; each < 3; each++)
      EQUAL(0, destroyed(&it.parties[each].counted));
    scene own;
    set_up(&own, false);
    EXPECT(CBR_OK, cbr_emit(own.signal, &own, NULL));
    aim(&own, SIGNAL);
    EXPECT(CBR_OK, cbr_invalidate(own.target, CBR_REASON_ENDED));
    tear_down(&own, SIGNAL);
    fflush(NULL);
    _exit(failures_of_test != 0);
  }
  CHECK(forked > 0);
  EXPECT(CBR_OK, status);
  EQUAL(1, it.parties[2].calls);
  int how = -1;
  CHECK(waitpid(forked, &how, 0) == forked);
  EQUAL(0, how);
  aim(&it, SIGNAL);
  EXPECT(CBR_OK, cbr_invalidate(it.target, CBR_REASON_ENDED));
  tear_down(&it, SIGNAL);
}

int main(void) {
  TEST(G14_endedByTheHandlerItself);
  TEST(G14_endedInANestedEmission);
  TEST(G14_endedWhileAnotherThreadIsInside);
  TEST(G14_endedByAHandlerAmongOthers);
  TEST(G15_destroyIsInsideTheSignal);
  TEST(G15_deferredAfterConnectionsOfOthers);
  TEST(B5_ringsThroughSignals);
  TEST(B5_ringThroughADestroyAndASignal);
  TEST(G14_leaseOnAConnectionKeepsItsSignal);
  TEST(G15_deferredDespiteALease);
  TEST(G14_parkedConnections);
  TEST(G11_threadEndsInsideAnEmission);
  TEST(G20_handlerForks);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Random operations of several threads on few handles, with an oracle: a
 * context that is poisoned and freed in destroy (G7, G8), a flag per token
 * that is set when an ending has returned (G9), and counts that must add up
 * in the end, in the statistics and in the history (A1, A2, A5).
 */
#include "history.h"
#include "subject.h"

enum {
  THREADS = 4,
  PLACES = 12,
  OWNERS = 3,
  OBJECTS = 2,
  SHARED_LEASES = 4,
  DEPTH = 3,
  STEPS = TIMES(6000, 2000),
  ENTRIES = STEPS
};

/* One registration. It stays until the end, so that it can be used late. */
typedef struct entry {
  life life;
  _Atomic cbr_token token;
  _Atomic cbr_owner owner;
  _Atomic bool is_ended; /* an ending of it has returned */
  bool is_leasable;      /* a wait for it may have no end */
  bool is_one_shot;
  bool has_destroy;
  bool is_registered;
  subject *context; /* of one without destroy */
} entry;

static struct setting {
  const char *name;
  uint32_t level;
  int registries;
  bool switches; /* levels */
  uint64_t ring_bytes;
  uint64_t calls_per_second;
} setting;

static cbr_registry registries[2];
static _Atomic(entry *) places[PLACES];
static _Atomic cbr_owner owners[OWNERS];
static int objects[OBJECTS];
static _Atomic cbr_lease_handle shared_leases[SHARED_LEASES];
static entry entries[THREADS][ENTRIES];

/* One thread of the test. */
typedef struct actor {
  worker worker;
  int number;
  uint64_t random;
  int depth;
  int registrations;
  uint64_t entered, refused, abandoned;
} actor;

static actor actors[THREADS];
static __thread actor *self;
static _Atomic uint64_t strays[3]; /* entered, refused, abandoned elsewhere */

static uint32_t draw(uint32_t below) {
  self->random ^= self->random << 13;
  self->random ^= self->random >> 7;
  self->random ^= self->random << 17;
  return (uint32_t)(self->random >> 32) % below;
}

static void act(void *argument);

/* ------------------------------------------------------------ the oracle -- */

static void note_end(entry *it) { atomic_store(&it->is_ended, true); }

/* All that belonged to an owner whose ending has returned. */
static void note_owner_end(cbr_owner owner) {
  for (int each = 0; each < PLACES; each++) {
    entry *it = atomic_load(&places[each]);
    if (it && atomic_load(&it->owner) == owner) note_end(it);
  }
}

static void check_destroyed(entry *it) {
  EQUAL(0, atomic_load(&it->life.running));
  if (it->has_destroy) EQUAL(1, atomic_load(&it->life.destroyed));
}

/* ------------------------------------------------------------ operations -- */

static cbr_owner draw_owner(int registry) {
  cbr_owner owner = atomic_load(&owners[draw(OWNERS)]);
  return registry == 0 && draw(2) ? owner : CBR_NONE;
}

static void renew_owner(void) {
  cbr_owner fresh = CBR_NONE, parent = atomic_load(&owners[draw(OWNERS)]);
  cbr_status status;
  if (draw(3) == 0)
    status = cbr_owner_create_child(parent, "child", &fresh);
  else if (draw(2))
    status = cbr_owner_for_object(registries[0], &objects[draw(OBJECTS)],
                                  "object", &fresh);
  else
    status = cbr_owner_create(registries[0], "owner", &fresh);
  if (status != CBR_OK) return;
  cbr_owner old = atomic_exchange(&owners[draw(OWNERS)], fresh);
  if (draw(2)) {
    status = cbr_invalidate(old, CBR_REASON_ENDED);
    CHECK(status >= CBR_OK || status == CBR_E_INVALID);
    if (status >= CBR_OK) note_owner_end(old);
  }
}

static void end_object(void) {
  int *object = &objects[draw(OBJECTS)];
  cbr_status status = cbr_object_died(registries[0], object);
  CHECK(status >= CBR_OK);
}

static void add_entry(void) {
  if (self->registrations == ENTRIES) return;
  entry *it = &entries[self->number][self->registrations++];
  int registry = setting.registries > 1 ? (int)draw(2) : 0;
  it->is_leasable = draw(3) == 0;
  it->is_one_shot = draw(6) == 0;
  it->has_destroy = draw(4) != 0;
  it->life.on_call = act;
  it->life.on_destroy = act;
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.label = "stressed";
  what.function = (cbr_function)subject_call;
  what.context = it->context = subject_make(&it->life);
  what.destroy = it->has_destroy ? subject_destroy : NULL;
  what.owner = draw_owner(registry);
  what.flags = it->is_one_shot ? CBR_ONE_SHOT : 0;
  atomic_store(&it->owner, what.owner);
  cbr_token token;
  cbr_status status = cbr_register(registries[registry], &what, &token);
  if (status != CBR_OK) {
    CHECK(status == CBR_E_DYING || status == CBR_E_STALE);
    EQUAL(0, atomic_load(&it->life.destroyed));
    free(what.context);
    return;
  }
  it->is_registered = true;
  atomic_store(&it->token, token);
  atomic_store(&places[draw(PLACES)], it);
}

static entry *draw_entry(void) {
  entry *it = atomic_load(&places[draw(PLACES)]);
  return it && atomic_load(&it->token) != CBR_NONE ? it : NULL;
}

static void call_entry(entry *it) {
  bool was_ended = atomic_load(&it->is_ended);
  cbr_call call;
  cbr_status status = subject_enter(atomic_load(&it->token), &it->life, &call);
  if (status != CBR_OK) {
    self->refused++;
    CHECK(status == CBR_E_STALE ||
          (status == CBR_E_CONSUMED && it->is_one_shot));
    return;
  }
  CHECK(!was_ended); /* G9 */
  self->entered++;
  subject_run(&call);
  EXPECT(CBR_OK, subject_leave(&call, &it->life));
  if (it->is_one_shot) note_end(it);
}

static void end_entry(entry *it) {
  cbr_status status =
      cbr_invalidate(atomic_load(&it->token), CBR_REASON_USER);
  CHECK(status >= CBR_OK);
  note_end(it);
}

/* Without limit only for what has no lease, which no ring shows. */
static void wait_for_entry(entry *it) {
  uint64_t timeout = it->is_leasable ? draw(2) * 100000 : CBR_FOREVER;
  cbr_status status = cbr_invalidate_wait(atomic_load(&it->token),
                                          CBR_REASON_USER, timeout);
  note_end(it);
  if (status == CBR_OK || status == CBR_ALREADY)
    check_destroyed(it);
  else if (self->depth == 0)
    EXPECT(CBR_E_TIMEOUT, status);
  else
    CHECK(status == CBR_DEFERRED || status == CBR_E_WOULD_DEADLOCK ||
          (status == CBR_E_TIMEOUT && it->is_leasable));
}

static void use_lease(cbr_lease_handle lease, entry *it) {
  cbr_call call;
  atomic_fetch_add(&it->life.running, 1);
  EXPECT(CBR_OK, cbr_lease_get(lease, &call));
  subject_run(&call);
  atomic_fetch_sub(&it->life.running, 1);
}

/* Takes a lease, and ends it or hands it to whoever finds it. */
static void lease_entry(entry *it) {
  if (!it->is_leasable) return;
  cbr_lease_handle lease;
  bool was_ended = atomic_load(&it->is_ended);
  cbr_status status = cbr_lease(atomic_load(&it->token), &lease);
  if (status != CBR_OK) {
    self->refused += status == CBR_E_STALE || status == CBR_E_CONSUMED;
    return;
  }
  CHECK(!was_ended);
  use_lease(lease, it);
  lease = atomic_exchange(&shared_leases[draw(SHARED_LEASES)], lease);
  if (lease != CBR_NONE) EXPECT(CBR_OK, cbr_lease_end(lease));
}

static void end_lease(void) {
  cbr_lease_handle lease =
      atomic_exchange(&shared_leases[draw(SHARED_LEASES)], CBR_NONE);
  if (lease != CBR_NONE) EXPECT(CBR_OK, cbr_lease_end(lease));
}

/* A thread that ends inside a call (G11). */
static void end_inside(void *argument) {
  entry *it = argument;
  cbr_call call, inner;
  cbr_status status = subject_enter(atomic_load(&it->token), &it->life, &call);
  if (status != CBR_OK) {
    atomic_fetch_add(&strays[1], 1);
    return;
  }
  atomic_fetch_add(&strays[0], 1);
  status = cbr_enter(atomic_load(&it->token), &inner);
  atomic_fetch_add(&strays[status == CBR_OK ? 0 : 1], 1);
  atomic_fetch_add(&strays[2], status == CBR_OK ? 2 : 1);
  atomic_fetch_sub(&it->life.running, 1);
  pthread_exit(NULL);
}

static void churn(entry *it) {
  worker thread;
  start(&thread, "churned", end_inside, it);
  join(&thread);
  if (it->is_one_shot) note_end(it);
}

static void switch_level(entry *it) {
  uint32_t level = 1 + draw(3);
  cbr_status status =
      draw(8) == 0 ? cbr_audit_level(registries[0], level)
                   : cbr_audit_level(atomic_load(&it->token), level);
  CHECK(status == CBR_OK || status == CBR_E_STALE);
}

static void operate(void) {
  entry *it = draw_entry();
  uint32_t what = draw(100);
  if (what < 15 || !it) return add_entry();
  if (what < 55) return call_entry(it);
  if (what < 65) return end_entry(it);
  if (what < 75) return wait_for_entry(it);
  if (what < 85) return lease_entry(it);
  if (what < 92) return end_lease();
  if (what < 94) return renew_owner();
  if (what < 95) return end_object();
  if (what < 96 && self->depth == 0) return churn(it);
  if (setting.switches) return switch_level(it);
}

/* What a callback and a destroy do besides. */
static void act(void *argument) {
  (void)argument;
  if (!self || self->depth >= DEPTH || draw(4) != 0) return;
  self->depth++;
  operate();
  self->depth--;
}

static void run_actor(void *argument) {
  self = argument;
  for (int step = 0; step < STEPS; step++) operate();
}

/* ------------------------------------------------------------- the account */

static void end_all(void) {
  self = NULL;
  for (int each = 0; each < SHARED_LEASES; each++) {
    cbr_lease_handle lease = atomic_exchange(&shared_leases[each], CBR_NONE);
    if (lease != CBR_NONE) EXPECT(CBR_OK, cbr_lease_end(lease));
  }
  for (int actor = 0; actor < THREADS; actor++)
    for (int each = 0; each < actors[actor].registrations; each++) {
      entry *it = &entries[actor][each];
      if (!it->is_registered) continue;
      cbr_status status = cbr_invalidate_wait(
          atomic_load(&it->token), CBR_REASON_ENDED, CBR_FOREVER);
      CHECK(status == CBR_OK || status == CBR_ALREADY);
      EQUAL(it->has_destroy, it->life.destroyed);
      EQUAL(0, it->life.running);
      if (!it->has_destroy) free(it->context);
    }
  for (int each = 0; each < OWNERS; each++) {
    cbr_owner owner = atomic_exchange(&owners[each], CBR_NONE);
    if (owner == CBR_NONE) continue;
    cbr_status status =
        cbr_invalidate_wait(owner, CBR_REASON_ENDED, CBR_FOREVER);
    CHECK(status == CBR_OK || status == CBR_ALREADY);
  }
}

static void check_statistics(void) {
  uint64_t registered = 0, refused = 0, abandoned = 0, made = 0;
  for (int each = 0; each < setting.registries; each++) {
    cbr_statistics now = statistics_of(registries[each]);
    EQUAL(0, now.live_tokens);
    EQUAL(0, now.live_leases);
    EQUAL(now.registered, now.ended);
    EQUAL(0, now.unsettled);
    registered += now.registered;
    refused += now.refused;
    abandoned += now.abandoned;
  }
  for (int actor = 0; actor < THREADS; actor++)
    for (int each = 0; each < actors[actor].registrations; each++)
      made += entries[actor][each].is_registered;
  uint64_t expected_refusals = strays[1];
  for (int each = 0; each < THREADS; each++)
    expected_refusals += actors[each].refused;
  EQUAL(made, registered);
  EQUAL(expected_refusals, refused);
  EQUAL(strays[2], abandoned);
}

/* What the history counts is what was done, by two ways of counting. */
static void check_account(const history *it) {
  check_history(it);
  expect_no_rows(it, "SELECT * FROM live");
  expect_no_rows(it, "SELECT * FROM leaks");
  expect_no_rows(it, "SELECT * FROM in_flight");
  EQUAL(0, number_in(it, "SELECT coalesce(sum(events), 0) FROM loss"));
  if (setting.switches || setting.level == CBR_LEVEL_OFF) return;
  uint64_t entered = strays[0], refused = strays[1];
  for (int each = 0; each < THREADS; each++) {
    entered += actors[each].entered;
    refused += actors[each].refused;
  }
  EQUAL(entered + refused, number_in(it, "SELECT attempts FROM conservation "
                                         "WHERE token = 'total'"));
  EQUAL(refused, number_in(it, "SELECT refused FROM conservation "
                               "WHERE token = 'total'"));
  EQUAL(strays[2], number_in(it, "SELECT abandoned FROM conservation "
                                 "WHERE token = 'total'"));
  if (setting.level == CBR_LEVEL_CALLS)
    EQUAL(entered - strays[2],
          number_in(it, "SELECT called + aggregated FROM conservation "
                        "WHERE token = 'total'"));
}

static void run_setting(void) {
  history kept;
  make_history(&kept);
  memset(actors, 0, sizeof actors);
  memset(entries, 0, sizeof entries);
  memset(strays, 0, sizeof strays);
  for (int each = 0; each < PLACES; each++) atomic_store(&places[each], NULL);
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.label = setting.name;
  options.history_path = kept.path;
  options.level = setting.level;
  options.ring_bytes = setting.ring_bytes;
  options.calls_per_second = setting.calls_per_second;
  options.block_timeout_ns = UINT64_C(60000000000);
  for (int each = 0; each < setting.registries; each++)
    EXPECT(CBR_OK, cbr_registry_open(&options, &registries[each]));
  for (int each = 0; each < OWNERS; each++) {
    cbr_owner owner = CBR_NONE;
    EXPECT(CBR_OK, cbr_owner_create(registries[0], "first", &owner));
    atomic_store(&owners[each], owner);
  }
  for (int each = 0; each < THREADS; each++) {
    actors[each].number = each;
    actors[each].random = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(each + 1);
    start(&actors[each].worker, "actor", run_actor, &actors[each]);
  }
  for (int each = 0; each < THREADS; each++) join(&actors[each].worker);
  end_all();
  check_statistics();
  uint64_t achieved;
  EXPECT(CBR_OK, cbr_audit_flush(registries[0], CBR_FLUSH_DATABASE,
                                 CBR_FOREVER, &achieved));
  check_history(&kept);
  for (int each = 0; each < setting.registries; each++)
    close_registry(registries[each]);
  check_account(&kept);
  remove_history(&kept);
}

static void run(struct setting of) {
  setting = of;
  test_(of.name, run_setting);
}

int main(void) {
  run((struct setting){"A1_off", CBR_LEVEL_OFF, 1, false, 0, 0});
  run((struct setting){"A1_lifecycle", CBR_LEVEL_LIFECYCLE, 1, false, 0, 0});
  run((struct setting){"A1_calls", CBR_LEVEL_CALLS, 1, false, 0, UINT64_MAX});
  run((struct setting){"A1_callsOverBudget", CBR_LEVEL_CALLS, 1, false, 0,
                       2000});
  run((struct setting){"A5_smallRings", CBR_LEVEL_CALLS, 2, false, 4096, 0});
  run((struct setting){"A1_levelsSwitched", CBR_LEVEL_CALLS, 2, true, 0, 0});
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Owners of scopes (G17): what was registered in a block ends with it, however
 * it is left, and no call of it is running then (G9).
 */
#include "gates.h"

static cbr_registry registry;

static cbr_token add_on(cbr_owner owner, struct counted *counted) {
  return add(registry, "in a scope", counted, false, owner);
}

static cbr_token leave_early(struct counted *counted) {
  CBR_SCOPED_OWNER(owner, registry, "early");
  cbr_token token = add_on(owner, counted);
  CHECK(cbr_is_live(token));
  if (counted) return token;
  return CBR_NONE;
}

static void G17_scopeEndsItsCallbacks(void) {
  struct counted counted = {0};
  cbr_token inner = CBR_NONE;
  cbr_token outer = CBR_NONE;
  {
    CBR_SCOPED_OWNER(owner, registry, "outer");
    outer = add_on(owner, &counted);
    for (int each = 0; each < 2; each++) {
      CBR_SCOPED_OWNER(again, registry, "inner");
      CHECK(!cbr_is_live(inner));
      inner = add_on(again, &counted);
    }
    CHECK(!cbr_is_live(inner));
    CHECK(cbr_is_live(outer));
  }
  CHECK(!cbr_is_live(outer));
  CHECK(!cbr_is_live(leave_early(&counted)));
  EQUAL(0, statistics_of(registry).live_owners);
}

static void G17_scopeWithoutAnOwner(void) {
  CBR_SCOPED_OWNER(owner, CBR_NONE, "of no registry");
  EQUAL(CBR_NONE, owner);
}

typedef struct scene {
  cbr_token token;
  cbr_owner owner;
  bool is_left;
} scene;

static void stay(void *context) {
  (void)context;
  reach(IN_CALLBACK, CBR_NONE);
}

static void call_it(void *context) {
  scene *it = context;
  CBR_CALL(it->token, void (*)(void *), (cbr_now.context));
}

static void leave_scope(void *context) {
  scene *it = context;
  {
    CBR_SCOPED_OWNER(owner, registry, "scope");
    it->owner = owner;
    EXPECT(CBR_OK, CBR_REGISTER(registry, "stays", stay, it, NULL, owner,
                                &it->token));
    reach(BEFORE_ACT, CBR_NONE);
  }
  it->is_left = true;
}

static void G9_scopeWaitsForCallsElsewhere(void) {
  scene it = {0};
  worker leaver, caller;
  gate made = GATE(BEFORE_ACT, CBR_NONE, &leaver);
  gate inside = GATE(IN_CALLBACK, CBR_NONE, &caller);
  close_gate(&made);
  close_gate(&inside);
  start(&leaver, "leaver", leave_scope, &it);
  await_gate(&made);
  start(&caller, "caller", call_it, &it);
  await_gate(&inside);
  gate waits = GATE(WAIT_BEGAN, CBR_NONE, &leaver);
  close_gate(&waits);
  open_gate(&made);
  await_gate(&waits);
  CHECK(!it.is_left);
  open_gate(&waits);
  open_gate(&inside);
  join(&caller);
  join(&leaver);
  CHECK(it.is_left);
}

int main(void) {
  registry = open_registry("scopes", CBR_LEVEL_OFF);
  TEST(G17_scopeEndsItsCallbacks);
  TEST(G17_scopeWithoutAnOwner);
  TEST(G9_scopeWaitsForCallsElsewhere);
  close_registry(registry);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting (G14, G15): it covers what is running, and nothing else; it never
 * hangs, whatever is parked, pending or left behind meanwhile.
 */
#include "subject.h"

static cbr_registry registry;

static void nothing(void *context) { (void)context; }

/* A token without destroy: ending it is only a mark (G14). */
static cbr_token add_plain(cbr_owner owner) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "plain", nothing, NULL, NULL, owner,
                              &token));
  return token;
}

/* What a worker waits for, and what it was answered. */
typedef struct wait {
  cbr_handle handle;
  cbr_status status;
} wait_for;

static void wait_it(void *argument) {
  wait_for *it = argument;
  it->status = cbr_invalidate_wait(it->handle, CBR_REASON_ENDED, CBR_FOREVER);
}

static void end_it(void *argument) {
  wait_for *it = argument;
  it->status = cbr_invalidate(it->handle, CBR_REASON_ENDED);
}

/* ---------------------------------------------------------------- parked -- */

static void G14_ownerWithParkedToken(void) {
  for (int waits = 0; waits < 2; waits++) {
    cbr_owner owner = add_owner(registry, "owner");
    EXPECT(CBR_OK, cbr_invalidate(add_plain(owner), CBR_REASON_ENDED));
    wait_for wait = {owner, CBR_E_USER};
    worker waiter;
    start(&waiter, "waiter", waits ? wait_it : end_it, &wait);
    join(&waiter);
    EXPECT(CBR_OK, wait.status);
  }
}

static void G15_parkedAfterTheWaitBegan(void) {
  wait_for ending = {add_plain(CBR_NONE), CBR_E_USER};
  wait_for waiting = {ending.handle, CBR_E_USER};
  worker ender, waiter;
  gate marked = GATE(END_MARKED, ending.handle, &ender);
  close_gate(&marked);
  start(&ender, "ender", end_it, &ending);
  await_gate(&marked);
  start(&waiter, "waiter", wait_it, &waiting);
  CHECK(!run_far(&waiter));
  open_gate(&marked);
  join(&ender);
  EXPECT(CBR_OK, ending.status);
  join(&waiter);
  EXPECT(CBR_ALREADY, waiting.status);
}

static void D3_parkedWhileClosing(void) {
  cbr_registry closing = open_registry("closing", CBR_LEVEL_OFF);
  cbr_token token;
  EXPECT(CBR_OK, CBR_REGISTER(closing, "plain", nothing, NULL, NULL, CBR_NONE,
                              &token));
  wait_for ending = {token, CBR_E_USER};
  worker ender;
  gate marked = GATE(END_MARKED, token, &ender);
  close_gate(&marked);
  start(&ender, "ender", end_it, &ending);
  await_gate(&marked);
  EXPECT(CBR_PENDING, cbr_invalidate(closing, CBR_REASON_ENDED));
  open_gate(&marked);
  join(&ender);
  EXPECT(CBR_E_CLOSED, cbr_invalidate(token, CBR_REASON_ENDED));
}

/* ------------------------------------------------------- inside a destroy -- */

static void wait_in_destroy(void *argument) { wait_it(argument); }

static void G15_destroyWaitsForItsSibling(void) {
  cbr_owner owner = add_owner(registry, "owner");
  life lives[2] = {{0}, {0}};
  cbr_token tokens[2];
  wait_for waits[2];
  for (int each = 0; each < 2; each++) {
    lives[each].on_destroy = wait_in_destroy;
    lives[each].argument = &waits[each];
    EXPECT(CBR_OK,
           subject_register(registry, &lives[each], owner, &tokens[each]));
  }
  for (int each = 0; each < 2; each++)
    waits[each] = (wait_for){tokens[!each], CBR_E_USER};
  wait_for ending = {owner, CBR_E_USER};
  worker ender;
  start(&ender, "ender", end_it, &ending);
  join(&ender);
  EXPECT(CBR_OK, ending.status);
  for (int each = 0; each < 2; each++) {
    EQUAL(1, lives[each].destroyed);
    CHECK(waits[each].status == CBR_DEFERRED ||
          waits[each].status == CBR_ALREADY);
  }
}

static void end_thread(void *argument) {
  (void)argument;
  pthread_exit(NULL);
}

static void G11_threadEndsInDestroyOfAGroup(void) {
  cbr_owner owner = add_owner(registry, "owner");
  life lives[3] = {{0}};
  cbr_token token;
  for (int each = 0; each < 3; each++) {
    if (each != 1) lives[each].on_destroy = end_thread;
    EXPECT(CBR_OK, subject_register(registry, &lives[each], owner, &token));
  }
  wait_for ending = {owner, CBR_E_USER};
  worker ender;
  start(&ender, "ender", end_it, &ending);
  join(&ender);
  for (int each = 0; each < 3; each++) EQUAL(1, lives[each].destroyed);
  wait_for waiting = {owner, CBR_E_USER};
  start(&ender, "waiter", wait_it, &waiting);
  join(&ender);
  EXPECT(CBR_ALREADY, waiting.status);
}

/* ---------------------------------------------------- inside, and waiting -- */

static cbr_disposition stop_in_visitor(void *context, const cbr_item *item) {
  (void)item;
  reach(IN_VISITOR, *(cbr_handle *)context);
  return CBR_STOP;
}

static void visit_it(void *argument) {
  EXPECT(CBR_STOPPED, cbr_registry_each_live(*(cbr_registry *)argument,
                                             stop_in_visitor, argument));
}

static void close_inside(void *argument) {
  wait_for *it = argument;
  cbr_call call;
  EXPECT(CBR_OK, cbr_enter(it->handle, &call));
  it->status = cbr_registry_close(*(cbr_registry *)call.context, CBR_FOREVER);
  EXPECT(CBR_OK, cbr_leave(&call));
}

static void G15_visitorEndsWhileACloserWaits(void) {
  cbr_registry closing = open_registry("closing", CBR_LEVEL_OFF);
  cbr_token token;
  EXPECT(CBR_OK, CBR_REGISTER(closing, "plain", nothing, &closing, NULL,
                              CBR_NONE, &token));
  wait_for wait = {token, CBR_E_USER};
  worker visitor, closer;
  gate visiting = GATE(IN_VISITOR, closing, &visitor);
  close_gate(&visiting);
  start(&visitor, "visitor", visit_it, &closing);
  await_gate(&visiting);
  start(&closer, "closer", close_inside, &wait);
  CHECK(!run_far(&closer));
  open_gate(&visiting);
  join(&visitor);
  join(&closer);
  EXPECT(CBR_DEFERRED, wait.status);
  EXPECT(CBR_E_CLOSED, cbr_invalidate(token, CBR_REASON_ENDED));
}

int main(int argc, char **argv) {
  registry = open_registry("waiting", CBR_LEVEL_OFF);
  int only = argc > 1 ? atoi(argv[1]) : 0;
#define T(n, f) if (!only || only == n) TEST(f)
  T(1,G14_ownerWithParkedToken);
  T(2,G15_parkedAfterTheWaitBegan);
  T(3,D3_parkedWhileClosing);
  T(4,G15_destroyWaitsForItsSibling);
  T(5,G11_threadEndsInDestroyOfAGroup);
  T(6,G15_visitorEndsWhileACloserWaits);
  return finish();
}

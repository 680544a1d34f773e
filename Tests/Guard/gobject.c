/* SPDX-License-Identifier: Apache-2.0
 *
 * Owners of GObjects (G18): what belongs to an object ends with it, and what a
 * thread is inside of then, or the object's own callback, is safe.
 */
#include <callback_registry_glib.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static cbr_registry registry;
static int failures;
static int is_inside, is_finalized, order;

static void expect(bool is_so, const char *what, int line) {
  if (is_so) return;
  failures++;
  fprintf(stderr, "line %d: expected %s (%s)\n", line, what, cbr_last_error());
}

#define EXPECT(what) expect((what), #what, __LINE__)

static void finalized(gpointer unused) {
  (void)unused;
  __atomic_store_n(&is_finalized, 1, __ATOMIC_SEQ_CST);
}

static GObject *make_object(void) {
  GObject *object = g_object_new(G_TYPE_OBJECT, NULL);
  is_finalized = 0;
  g_object_set_data_full(object, "test", object, finalized);
  return object;
}

static cbr_owner owner_of(GObject *object) {
  cbr_owner owner;
  EXPECT(cbr_owner_for_gobject(registry, object, "object", &owner) == CBR_OK);
  return owner;
}

static void nothing(void *context) { (void)context; }

static void test_death(void) {
  GObject *object = make_object();
  cbr_owner owner = owner_of(object);
  cbr_token token;
  EXPECT(owner == owner_of(object));
  EXPECT(CBR_REGISTER(registry, "nothing", nothing, object, NULL, owner,
                      &token) == CBR_OK);
  EXPECT(cbr_is_live(token));
  g_object_unref(object);
  EXPECT(!cbr_is_live(token) && !cbr_is_live(owner) && is_finalized);
}

static void test_dispose(void) {
  GObject *object = make_object();
  cbr_owner first = owner_of(object);
  g_object_run_dispose(object);
  EXPECT(!cbr_is_live(first));
  cbr_owner second = owner_of(object);
  EXPECT(second != first && cbr_is_live(second));
  g_object_unref(object);
  EXPECT(!cbr_is_live(second));
}

/* Stays inside until its token is dead, and for long enough to be seen when
 * nobody waits for it. */
static void stay(void *context) {
  cbr_token token = *(cbr_token *)context;
  __atomic_store_n(&is_inside, 1, __ATOMIC_SEQ_CST);
  while (cbr_is_live(token)) sched_yield();
  for (int each = 0; each < 10000; each++) sched_yield();
  EXPECT(!__atomic_load_n(&is_finalized, __ATOMIC_SEQ_CST));
  order = 1;
}

static void *call(void *context) {
  cbr_token token = *(cbr_token *)context;
  CBR_CALL(token, void (*)(void *), (cbr_now.context));
  return NULL;
}

static void test_in_flight_elsewhere(void) {
  static cbr_token token;
  pthread_t caller;
  GObject *object = make_object();
  EXPECT(CBR_REGISTER(registry, "stay", stay, &token, NULL, owner_of(object),
                      &token) == CBR_OK);
  pthread_create(&caller, NULL, call, &token);
  while (!__atomic_load_n(&is_inside, __ATOMIC_SEQ_CST)) sched_yield();
  g_object_unref(object);
  EXPECT(order == 1 && is_finalized);
  pthread_join(caller, NULL);
}

static void drop(void *context) {
  g_object_unref(context);
  EXPECT(is_finalized);
}

static void test_in_its_own_callback(void) {
  GObject *object = make_object();
  cbr_token token;
  EXPECT(CBR_REGISTER(registry, "drop", drop, object, NULL, owner_of(object),
                      &token) == CBR_OK);
  call(&token);
  EXPECT(!cbr_is_live(token));
}

int main(void) {
  if (cbr_registry_open(NULL, &registry) != CBR_OK) return 2;
  test_death();
  test_dispose();
  test_in_flight_elsewhere();
  test_in_its_own_callback();
  EXPECT(cbr_registry_close(registry, CBR_FOREVER) == CBR_OK);
  return failures != 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Store buffers (G7, G8, A18): readers enter and leave as fast as they can
 * while each token is ended soon after it was published. Whatever a fence is
 * missing for shows here: a pin that an ender does not see, so that a context
 * is destroyed under a call, or an ending that a leaver does not see, so that
 * a context is never destroyed. Nothing else orders the threads.
 */
#include "gates.h"

enum { READERS = 2, ROUNDS = TIMES(150000, 20000) };

/* The context of one round; it stays, so that its mark can be read late. */
typedef struct mark {
  _Atomic uint32_t is_dead, destroyed;
} mark;

static mark marks[ROUNDS];
static _Atomic cbr_token current;
static _Atomic bool is_over;
static _Atomic int started;
static _Atomic uint64_t calls_made, calls_of_the_dead;

static void destroy(void *context) {
  mark *it = context;
  atomic_store_explicit(&it->is_dead, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&it->destroyed, 1, memory_order_relaxed);
}

/* Memory that is in no cache. Stores there stay in the processor's store
 * buffer for long, and so do the pins that are stored after them. */
enum { FAR_BYTES = 1 << 25, FAR_STORES = 24 };
static uint8_t far[READERS][FAR_BYTES];
static __thread uint8_t *far_own;
static __thread uint32_t far_place;

static void fill_store_buffer(void) {
  for (int each = 0; each < FAR_STORES; each++) {
    far_place = far_place * 1664525 + 1013904223;
    far_own[far_place % FAR_BYTES] = (uint8_t)each;
  }
}

/* Looks at its context for a moment. */
static uint32_t look(void *context) {
  mark *it = context;
  uint32_t dead = 0;
  for (int each = 0; each < 20; each++)
    dead |= atomic_load_explicit(&it->is_dead, memory_order_relaxed);
  fill_store_buffer();
  return dead;
}

/* Reads by entering and leaving, or by way of a lease. */
static void read_on(void *argument) {
  bool leases = argument != NULL;
  static _Atomic uint32_t next;
  far_place = atomic_fetch_add(&next, 1);
  far_own = far[far_place % READERS];
  uint64_t entered = 0, dead = 0;
  while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
    cbr_token token = atomic_load_explicit(&current, memory_order_relaxed);
    cbr_lease_handle lease;
    cbr_call call;
    fill_store_buffer();
    if (leases && entered % 8 == 7) {
      if (cbr_lease(token, &lease) != CBR_OK) continue;
      if (cbr_lease_get(lease, &call) != CBR_OK) abort();
      dead += ((uint32_t(*)(void *))call.function)(call.context);
      if (cbr_lease_end(lease) != CBR_OK) abort();
    } else {
      if (cbr_enter(token, &call) != CBR_OK) continue;
      dead += ((uint32_t(*)(void *))call.function)(call.context);
      if (cbr_leave(&call) != CBR_OK) abort();
    }
    if (entered++ == 0) atomic_fetch_add(&started, 1);
  }
  atomic_fetch_add(&calls_made, entered);
  atomic_fetch_add(&calls_of_the_dead, dead);
}

static void run(bool leases, bool waits) {
  cbr_registry registry = open_registry("fences", CBR_LEVEL_OFF);
  worker readers[READERS];
  memset(marks, 0, sizeof marks);
  atomic_store(&is_over, false);
  atomic_store(&calls_made, 0);
  atomic_store(&calls_of_the_dead, 0);
  atomic_store(&started, 0);
  mark lasting = {0, 0};
  cbr_token first;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "first", look, &lasting, destroy,
                              CBR_NONE, &first));
  atomic_store(&current, first);
  for (int each = 0; each < READERS; each++)
    start(&readers[each], "reader", read_on, leases ? &readers : NULL);
  while (atomic_load(&started) < READERS) sched_yield();
  int unlike = 0;
  for (int round = 0; round < ROUNDS; round++) {
    cbr_token token;
    if (CBR_REGISTER(registry, "round", look, &marks[round], destroy, CBR_NONE,
                     &token) != CBR_OK)
      stuck_("fences", "cannot register");
    atomic_store_explicit(&current, token, memory_order_relaxed);
    for (volatile int each = 0; each < round % 200;) each++;
    cbr_status status =
        waits ? cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER)
              : cbr_invalidate(token, CBR_REASON_ENDED);
    unlike += status != CBR_OK && (waits || status != CBR_PENDING);
  }
  atomic_store(&is_over, true);
  for (int each = 0; each < READERS; each++) join(&readers[each]);
  int lost = 0;
  for (int round = 0; round < ROUNDS; round++)
    lost += atomic_load(&marks[round].destroyed) != 1;
  EQUAL(0, lost);
  EQUAL(0, unlike);
  EQUAL(0, atomic_load(&calls_of_the_dead));
  CHECK(atomic_load(&calls_made) >= READERS);
  close_registry(registry);
}

static void G7_noDestroyUnderACallOrLost(void) { run(false, false); }
static void G9_noCallAfterTheWait(void) { run(false, true); }
static void G7_noDestroyUnderALease(void) { run(true, false); }

int main(void) {
  TEST(G7_noDestroyUnderACallOrLost);
  TEST(G9_noCallAfterTheWait);
  TEST(G7_noDestroyUnderALease);
  return finish();
}

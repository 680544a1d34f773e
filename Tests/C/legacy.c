/* SPDX-License-Identifier: Apache-2.0
 *
 * A legacy object model: three objects of unrelated code, with three setters
 * and five places for a delegate, as a function and a void *. One guard stands
 * before each setter and no call site is touched: when the delegate dies, once,
 * all five are cleared, and whoever has copied one calls nothing (F8, G18,
 * G19).
 */
#include "history.h"

/* --------------------------------------------- code that nobody can change -- */

struct scroll_view {
  void (*did_scroll)(void *user_data, int offset);
  void *scroll_data;
  double (*zoom)(void *user_data);
  void *zoom_data;
};

static void scroll_view_set_delegate(struct scroll_view *view,
                                     void (*did_scroll)(void *, int),
                                     double (*zoom)(void *),
                                     void *user_data) {
  view->did_scroll = did_scroll;
  view->zoom = zoom;
  view->scroll_data = view->zoom_data = user_data;
}

typedef size_t (*fetch_function)(const char *bytes, size_t size, void *closure);

struct fetch {
  fetch_function arrived, failed;
  void *arrived_closure, *failed_closure;
};

enum { FETCH_ARRIVED, FETCH_FAILED };

static void fetch_set(struct fetch *fetch, int what, fetch_function function,
                      void *closure) {
  if (what == FETCH_ARRIVED) {
    fetch->arrived = function;
    fetch->arrived_closure = closure;
  } else {
    fetch->failed = function;
    fetch->failed_closure = closure;
  }
}

static void *(*menu_item_of)(int row, void *refcon);
static void *menu_refcon;

static void menu_install(void *(*item_of)(int, void *), void *refcon) {
  menu_item_of = item_of;
  menu_refcon = refcon;
}

/* --------------------------------------------------------------- the guards -- */

static cbr_registry registry;

CBR_TRAMPOLINE_VOID(guarded_scroll, (void *user_data, int offset), user_data,
                    (cbr_now.context, offset))
CBR_TRAMPOLINE(guarded_zoom, double, 1.0, (void *user_data), user_data,
               (cbr_now.context))
CBR_TRAMPOLINE(guarded_fetch, size_t, SIZE_MAX,
               (const char *bytes, size_t size, void *closure), closure,
               (bytes, size, cbr_now.context))
CBR_TRAMPOLINE(guarded_item, void *, NULL, (int row, void *refcon), refcon,
               (row, cbr_now.context))

/* Registers what an object was to be given, with the object as its owner, and
 * has the legacy place cleared when the token dies. */
static void *guard(const char *place, cbr_function function, void *delegate,
                   cbr_slot_cleared clear, void *object) {
  cbr_owner owner = CBR_NONE;
  cbr_token token = CBR_NONE, observer = CBR_NONE;
  cbr_slot slot = CBR_NONE;
  EXPECT(CBR_OK, cbr_owner_for_object(registry, delegate, "delegate", &owner));
  EXPECT(CBR_OK, CBR_REGISTER(registry, place, function, delegate, NULL, owner,
                              &token));
  EXPECT(CBR_OK, CBR_REGISTER(registry, "clears", clear, object, NULL,
                              CBR_NONE, &observer));
  EXPECT(CBR_OK, cbr_slot_create(registry, place, CBR_NONE, &slot));
  EXPECT(CBR_OK, cbr_slot_set(slot, token));
  EXPECT(CBR_OK, cbr_slot_on_clear(slot, observer));
  return cbr_cookie(token);
}

static int cleared;

static void clear_scroll(void *context, cbr_slot slot, cbr_token token) {
  (void)slot, (void)token;
  struct scroll_view *view = context;
  view->did_scroll = NULL;
  view->scroll_data = NULL;
  cleared++;
}

static void clear_zoom(void *context, cbr_slot slot, cbr_token token) {
  (void)slot, (void)token;
  struct scroll_view *view = context;
  view->zoom = NULL;
  view->zoom_data = NULL;
  cleared++;
}

static void clear_arrived(void *context, cbr_slot slot, cbr_token token) {
  (void)slot, (void)token;
  fetch_set(context, FETCH_ARRIVED, NULL, NULL);
  cleared++;
}

static void clear_failed(void *context, cbr_slot slot, cbr_token token) {
  (void)slot, (void)token;
  fetch_set(context, FETCH_FAILED, NULL, NULL);
  cleared++;
}

static void clear_menu(void *context, cbr_slot slot, cbr_token token) {
  (void)context, (void)slot, (void)token;
  menu_install(NULL, NULL);
  cleared++;
}

/* What programs call from now on, by the names of before. */
static void guarded_scroll_view_set_delegate(struct scroll_view *view,
                                             void (*did_scroll)(void *, int),
                                             double (*zoom)(void *),
                                             void *user_data) {
  scroll_view_set_delegate(view, guarded_scroll, guarded_zoom, NULL);
  view->scroll_data = guard("did_scroll", (cbr_function)did_scroll, user_data,
                            clear_scroll, view);
  view->zoom_data =
      guard("zoom", (cbr_function)zoom, user_data, clear_zoom, view);
}

static void guarded_fetch_set(struct fetch *fetch, int what,
                              fetch_function function, void *closure) {
  bool is_arrived = what == FETCH_ARRIVED;
  fetch_set(fetch, what, guarded_fetch,
            guard(is_arrived ? "arrived" : "failed", (cbr_function)function,
                  closure, is_arrived ? clear_arrived : clear_failed, fetch));
}

static void guarded_menu_install(void *(*item_of)(int, void *), void *refcon) {
  menu_install(guarded_item, guard("item_of", (cbr_function)item_of, refcon,
                                   clear_menu, NULL));
}

/* -------------------------------------------------------------- the program -- */

struct controller {
  int offset;
  size_t bytes;
  char item[8];
};

static void scrolled(void *delegate, int offset) {
  ((struct controller *)delegate)->offset = offset;
}

static double zoomed(void *delegate) {
  return ((struct controller *)delegate)->offset * 2.0;
}

static size_t took(const char *bytes, size_t size, void *delegate) {
  (void)bytes;
  return ((struct controller *)delegate)->bytes += size;
}

static void *item_of(int row, void *delegate) {
  return &((struct controller *)delegate)->item[row];
}

static void set_all(struct scroll_view *view, struct fetch *fetch,
                    struct controller *delegate) {
  guarded_scroll_view_set_delegate(view, scrolled, zoomed, delegate);
  guarded_fetch_set(fetch, FETCH_ARRIVED, took, delegate);
  guarded_fetch_set(fetch, FETCH_FAILED, took, delegate);
  guarded_menu_install(item_of, delegate);
}

static void F8_oneDeathClearsFiveSlots(void) {
  history it;
  registry = open_with_history(&it, "legacy", CBR_LEVEL_CALLS);
  struct scroll_view view = {0};
  struct fetch fetch = {0};
  struct controller *delegate = calloc(1, sizeof *delegate);
  set_all(&view, &fetch, delegate);

  view.did_scroll(view.scroll_data, 21);
  CHECK(view.zoom(view.zoom_data) == 42.0);
  EQUAL(3, fetch.arrived("abc", 3, fetch.arrived_closure));
  EQUAL(4, fetch.failed("d", 1, fetch.failed_closure));
  CHECK(menu_item_of(2, menu_refcon) == &delegate->item[2]);

  /* Someone has copied all of it. */
  struct scroll_view late_view = view;
  struct fetch late_fetch = fetch;
  void *(*late_item_of)(int, void *) = menu_item_of;
  void *late_refcon = menu_refcon;

  cleared = 0;
  EXPECT(CBR_OK, cbr_object_died(registry, delegate));
  free(delegate);
  EQUAL(5, cleared);
  CHECK(!view.did_scroll && !view.scroll_data);
  CHECK(!view.zoom && !view.zoom_data);
  CHECK(!fetch.arrived && !fetch.arrived_closure);
  CHECK(!fetch.failed && !fetch.failed_closure);
  CHECK(!menu_item_of && !menu_refcon);

  uint64_t refused = statistics_of(registry).refused;
  late_view.did_scroll(late_view.scroll_data, 1);
  CHECK(late_view.zoom(late_view.zoom_data) == 1.0);
  CHECK(late_fetch.arrived("e", 1, late_fetch.arrived_closure) == SIZE_MAX);
  CHECK(late_fetch.failed("f", 1, late_fetch.failed_closure) == SIZE_MAX);
  CHECK(late_item_of(0, late_refcon) == NULL);
  EQUAL(refused + 5, statistics_of(registry).refused);

  close_registry(registry);
  check_history(&it);
  EQUAL(5, number_in(&it, "SELECT count(*) FROM late_callers WHERE attempts = 1"
                          " AND ended_reason = 'owner died'"));
  EQUAL(5, number_in(&it, "SELECT count(DISTINCT label) FROM late_callers "
                          "WHERE label IN ('did_scroll', 'zoom', 'arrived', "
                          "'failed', 'item_of')"));
  EQUAL(5, number_in(&it, "SELECT count(*) FROM history "
                          "WHERE event = 'slot cleared'"));
  remove_history(&it);
}

/* A new delegate at the address of the former one is called; what was copied
 * from before still is not (G18). */
static void G18_anotherObjectAtTheSameAddress(void) {
  registry = open_registry("legacy", test_level());
  struct scroll_view view = {0};
  struct fetch fetch = {0};
  struct controller delegate = {0};
  set_all(&view, &fetch, &delegate);
  struct scroll_view late = view;
  EXPECT(CBR_OK, cbr_object_died(registry, &delegate));
  set_all(&view, &fetch, &delegate);
  view.did_scroll(view.scroll_data, 1);
  late.did_scroll(late.scroll_data, 2);
  EQUAL(1, delegate.offset);
  CHECK(late.zoom(late.zoom_data) == 1.0);
  CHECK(view.zoom(view.zoom_data) == 2.0);
  EXPECT(CBR_OK, cbr_object_died(registry, &delegate));
  close_registry(registry);
}

int main(void) {
  TEST(F8_oneDeathClearsFiveSlots);
  TEST(G18_anotherObjectAtTheSameAddress);
  return finish();
}

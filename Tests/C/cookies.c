/* SPDX-License-Identifier: Apache-2.0
 *
 * Cookies: the token as the void * of code that cannot be changed, and
 * trampolines that look at it before anything is called (A15, C9, C13, G29).
 */
#include "history.h"

#include <signal.h>

static cbr_registry registry;

static cbr_token add_function(cbr_function function, void *context) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "legacy", function, context, NULL,
                              CBR_NONE, &token));
  return token;
}

static void end(cbr_token token) {
  EXPECT(CBR_OK,
         cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER));
}

static void G1_everyValueIsACookie(void) {
  const cbr_token values[] = {CBR_NONE, 1, UINT64_MAX, 1ull << 63,
                              0x0123456789abcdefu,
                              add_function((cbr_function)finish, NULL)};
  for (size_t each = 0; each < sizeof values / sizeof *values; each++)
    CHECK(cbr_from_cookie(cbr_cookie(values[each])) == values[each]);
  CHECK(cbr_cookie(CBR_NONE) == NULL && cbr_from_cookie(NULL) == CBR_NONE);
  end(values[5]);
}

/* ------------------------------------------------------ the ready shapes -- */

/* What the functions were given, and whether the context was theirs. */
static int mine, called;

static void told(void *context) { called += context == &mine; }

static void heard(void *object, void *context) {
  called += context == &mine && object == &called;
}

static void *started(void *context) {
  called += context == &mine;
  return context;
}

static int stepped(void *context) {
  called += context == &mine;
  return 7;
}

static int compared(const void *left, const void *right, void *context) {
  called += context == &mine;
  return *(const int *)left - *(const int *)right;
}

static size_t written(char *bytes, size_t size, size_t count, void *context) {
  called += context == &mine && memcmp(bytes, "bytes", 5) == 0;
  return size * count;
}

static int shown(void *context, int count, char **values, char **names) {
  called += context == &mine && count == 1 &&
            strcmp(values[0], "1") == 0 && strcmp(names[0], "one") == 0;
  return 0;
}

/* Each goes through a trampoline, and expects what a live or dead token
 * answers. */
static void try_notice(void *cookie, bool is_live) {
  (void)is_live;
  cbr_trampoline_notice(cookie);
}

static void try_event(void *cookie, bool is_live) {
  (void)is_live;
  cbr_trampoline_event(&called, cookie);
}

static void try_start(void *cookie, bool is_live) {
  pthread_t thread;
  void *result = &called;
  CHECK(pthread_create(&thread, NULL, cbr_trampoline_start, cookie) == 0);
  pthread_join(thread, &result);
  CHECK(result == (is_live ? &mine : NULL));
}

static void try_step(void *cookie, bool is_live) {
  EQUAL(is_live ? 7 : 0, cbr_trampoline_step(cookie));
}

static void try_compare(void *cookie, bool is_live) {
  int two = 2, one = 1;
  EQUAL(is_live ? 1 : 0, cbr_trampoline_compare(&two, &one, cookie));
}

static void try_bytes(void *cookie, bool is_live) {
  char bytes[] = "bytes";
  EQUAL(is_live ? 5 : 0, cbr_trampoline_bytes(bytes, 1, 5, cookie));
}

static void try_row(void *cookie, bool is_live) {
  sqlite3 *database = NULL;
  EQUAL(SQLITE_OK, sqlite3_open(":memory:", &database));
  EQUAL(is_live ? SQLITE_OK : SQLITE_ABORT,
        sqlite3_exec(database, "SELECT 1 AS one", cbr_trampoline_row, cookie,
                     NULL));
  sqlite3_close(database);
}

static const struct shape {
  const char *name;
  cbr_function function;
  void (*attempt)(void *cookie, bool is_live);
} shapes[] = {
    {"notice", (cbr_function)told, try_notice},
    {"event", (cbr_function)heard, try_event},
    {"start", (cbr_function)started, try_start},
    {"step", (cbr_function)stepped, try_step},
    {"compare", (cbr_function)compared, try_compare},
    {"bytes", (cbr_function)written, try_bytes},
    {"row", (cbr_function)shown, try_row},
};

static void A15_aLateCallReturnsTheDefaultAndIsRecorded(void) {
  history it;
  registry = open_with_history(&it, "cookies", CBR_LEVEL_CALLS);
  int count = (int)(sizeof shapes / sizeof *shapes);
  for (int each = 0; each < count; each++) {
    const struct shape *shape = &shapes[each];
    WITHIN("%s", shape->name);
    cbr_token token = CBR_NONE;
    EXPECT(CBR_OK, CBR_REGISTER(registry, shape->name, shape->function, &mine,
                                NULL, CBR_NONE, &token));
    called = 0;
    shape->attempt(cbr_cookie(token), true);
    EQUAL(1, called);
    end(token);
    uint64_t refused = statistics_of(registry).refused;
    shape->attempt(cbr_cookie(token), false);
    EQUAL(1, called);
    EQUAL(refused + 1, statistics_of(registry).refused);
    /* And with what is no token at all. */
    shape->attempt(&mine, false);
    shape->attempt(NULL, false);
    EQUAL(1, called);
    EQUAL(refused + 1, statistics_of(registry).refused);
  }
  close_registry(registry);
  check_history(&it);
  EQUAL(count, number_in(&it, "SELECT count(DISTINCT label) FROM refusals"));
  EQUAL(count, number_in(&it, "SELECT count(*) FROM refusals"));
  remove_history(&it);
}

/* ------------------------------------------------------- trampolines made -- */

struct event {
  int number;
  void *user_data;
};

struct pair {
  double first;
  int second;
};

CBR_TRAMPOLINE(on_event, struct pair, ((struct pair){-1, -2}),
               (const struct event *event, struct pair given),
               event->user_data, (event, given))
CBR_TRAMPOLINE_VOID(on_last, (float small, int64_t large, void *cookie),
                    cookie, (small, large, cbr_now.context))

static struct pair swapped(const struct event *event, struct pair given) {
  return (struct pair){given.second, event->number + (int)given.first};
}

static void took(float small, int64_t large, void *context) {
  *(bool *)context = small == 0.5f && large == INT64_MIN;
}

static void G29_aTrampolineHasAnySignature(void) {
  registry = open_registry("cookies", test_level());
  cbr_token token = add_function((cbr_function)swapped, NULL);
  struct event event = {40, cbr_cookie(token)};
  struct pair result = on_event(&event, (struct pair){2, 1});
  CHECK(result.first == 1 && result.second == 42);
  end(token);
  result = on_event(&event, (struct pair){2, 1});
  CHECK(result.first == -1 && result.second == -2);

  bool is_right = false;
  token = add_function((cbr_function)took, &is_right);
  on_last(0.5f, INT64_MIN, cbr_cookie(token));
  CHECK(is_right);
  is_right = false;
  end(token);
  on_last(0.5f, INT64_MIN, cbr_cookie(token));
  CHECK(!is_right);
  close_registry(registry);
}

/* A cookie is not mistaken for what has its token's slot by now (C9). */
static void C9_aReusedSlotIsNotCalled(void) {
  registry = open_registry("cookies", test_level());
  called = 0;
  cbr_token first = add_function((cbr_function)told, &mine), other;
  void *cookie = cbr_cookie(first);
  end(first);
  for (;;) {
    other = add_function((cbr_function)told, &mine);
    if (slot_of(other) == slot_of(first)) break;
    end(other);
  }
  cbr_trampoline_notice(cookie);
  EQUAL(0, called);
  cbr_trampoline_notice(cbr_cookie(other));
  EQUAL(1, called);
  close_registry(registry);
  cbr_trampoline_notice(cbr_cookie(other));
  EQUAL(1, called);
}

/* The address of something instead of a token. */
static void C13_addressesAreNoCookies(void) {
  registry = open_registry("cookies", test_level());
  for (int each = 0; each < 100; each++)
    add_function((cbr_function)told, &mine);
  called = 0;
  const char *stack = (const char *)&stack;
  for (int each = 0; each < TIMES(10000000, 300000); each++)
    cbr_trampoline_notice((void *)((uintptr_t)stack + (uintptr_t)each));
  EQUAL(0, called);
  close_registry(registry);
}

static void end_itself(void *context) {
  called++;
  EXPECT(CBR_DEFERRED,
         cbr_invalidate(*(cbr_token *)context, CBR_REASON_ENDED));
  cbr_trampoline_notice(cbr_cookie(*(cbr_token *)context));
}

static void G12_aCallbackEndsItself(void) {
  registry = open_registry("cookies", test_level());
  called = 0;
  cbr_token token = CBR_NONE;
  token = add_function((cbr_function)end_itself, &token);
  cbr_trampoline_notice(cbr_cookie(token));
  EQUAL(1, called);
  close_registry(registry);
}

static cbr_token inherited;

static void call_inherited(void) {
  called = 0;
  cbr_trampoline_notice(cbr_cookie(inherited));
  EQUAL(0, called);
  CHECK(strstr(cbr_last_error(), "fork") != NULL);
}

static void H1_aForkedChildCallsNothing(void) {
  registry = open_registry("cookies", test_level());
  inherited = add_function((cbr_function)told, &mine);
  CHECK(holds_in_child(call_inherited));
  called = 0;
  cbr_trampoline_notice(cbr_cookie(inherited));
  EQUAL(1, called);
  close_registry(registry);
}

/* What the header calls async-signal-safe is called in a handler. */
static cbr_token in_handler;
static volatile sig_atomic_t handled;

static void handle(int number) {
  (void)number;
  handled = cbr_from_cookie(cbr_cookie(in_handler)) == in_handler &&
            cbr_is_live(in_handler);
}

static void G29_cookiesAreMadeInSignalHandlers(void) {
  registry = open_registry("cookies", test_level());
  in_handler = add_function((cbr_function)told, &mine);
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  CHECK(handled);
  signal(SIGUSR1, SIG_DFL);
  close_registry(registry);
}

int main(void) {
  registry = open_registry("cookies", test_level());
  TEST(G1_everyValueIsACookie);
  close_registry(registry);
  TEST(A15_aLateCallReturnsTheDefaultAndIsRecorded);
  TEST(G29_aTrampolineHasAnySignature);
  TEST(C9_aReusedSlotIsNotCalled);
  TEST(C13_addressesAreNoCookies);
  TEST(G12_aCallbackEndsItself);
  TEST(H1_aForkedChildCallsNothing);
  TEST(G29_cookiesAreMadeInSignalHandlers);
  return finish();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The test harness: a program lists its tests in main and ends with
 * `return finish();`. A test's name says what it proves (G9, A18).
 */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callback_registry.h"

static int tests_passed, tests_failed;
static int failures_of_test;
/* What a table is at; shown with each failure. See WITHIN. */
static char check_place[128];
static pthread_mutex_t check_lock = PTHREAD_MUTEX_INITIALIZER;

/* Notes a failed expectation; the test goes on. Threads: any. */
#define CHECK(condition) \
  check_((condition), #condition, __FILE__, __LINE__, cbr_last_error())

/* Expects a status, and shows the one that came. */
#define EXPECT(expected, expression) \
  expect_((expected), (expression), #expression, __FILE__, __LINE__)

/* Expects equal integers, and shows both. */
#define EQUAL(expected, expression)                                       \
  equal_((long long)(expected), (long long)(expression), #expression, \
         __FILE__, __LINE__)

/* Says which cell of a table the expectations that follow are of. */
#define WITHIN(...) snprintf(check_place, sizeof check_place, __VA_ARGS__)

/* Runs one test function. */
#define TEST(function) test_(#function, function)

static inline void fail_(void) {
  pthread_mutex_lock(&check_lock);
  if (check_place[0]) fprintf(stderr, "  (at %s)\n", check_place);
  failures_of_test++;
  pthread_mutex_unlock(&check_lock);
}

static inline int check_(int condition, const char *text, const char *file,
                         int line, const char *error) {
  if (condition) return 1;
  fprintf(stderr, "%s:%d: %s: does not hold (last error: %s)\n", file, line,
          text, error);
  fail_();
  return 0;
}

static inline int expect_(int expected, int status, const char *text,
                          const char *file, int line) {
  if (expected == status) return 1;
  fprintf(stderr, "%s:%d: %s: %s instead of %s (last error: %s)\n", file,
          line, text, cbr_status_name(status), cbr_status_name(expected),
          cbr_last_error());
  fail_();
  return 0;
}

static inline int equal_(long long expected, long long value,
                         const char *text, const char *file, int line) {
  if (expected == value) return 1;
  fprintf(stderr, "%s:%d: %s: %lld instead of %lld\n", file, line, text,
          value, expected);
  fail_();
  return 0;
}

static inline void test_(const char *name, void (*function)(void)) {
  failures_of_test = 0;
  check_place[0] = 0;
  function();
  if (failures_of_test == 0) {
    tests_passed++;
  } else {
    tests_failed++;
    fprintf(stderr, "FAILED %s\n", name);
  }
}

static inline int finish(void) {
  printf("%d passed, %d failed\n", tests_passed, tests_failed);
  return tests_failed != 0;
}

#endif

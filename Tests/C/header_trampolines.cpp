// SPDX-License-Identifier: Apache-2.0
//
// Trampolines of the C++ layer: any signature, wherever the cookie is; what
// they return when the token is dead; exceptions leave the call (G29, H9).

#include "callback_registry.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>

static int failures = 0;

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::fprintf(stderr, "%s:%d: expected %s (last error: %s)\n",       \
                   __FILE__, __LINE__, #condition, cbr_last_error());     \
      ++failures;                                                         \
    }                                                                     \
  } while (0)

namespace {

cbr::registry registry;

enum class answer { none = 3, some };

int first(void *context, int number) {
  return *static_cast<int *>(context) + number;
}

answer last(const char *text, void *context) {
  return *static_cast<int *>(context) == text[0] ? answer::some : answer::none;
}

struct unmovable_text {
  std::unique_ptr<int> held;
};

int middle(unmovable_text text, const void *context, double factor) {
  return static_cast<int>(*text.held * factor) +
         *static_cast<const int *>(context);
}

void nothing(void *context) { ++*static_cast<int *>(context); }

void thrown(void *) { throw std::runtime_error("out of a callback"); }

template <class Function>
cbr_token add(Function *function, void *context) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_REGISTER(registry, "shape", function, context, nullptr, CBR_NONE,
                      &token) == CBR_OK);
  return token;
}

void end(cbr_token token) {
  EXPECT(cbr_invalidate_wait(token, CBR_REASON_ENDED, CBR_FOREVER) == CBR_OK);
}

void any_signature() {
  int context = 40;
  cbr_token token = add(first, &context);
  int (*at_first)(void *, int) = cbr::trampoline<int(void *, int), 0, -1>;
  EXPECT(at_first(cbr_cookie(token), 2) == 42);
  end(token);
  EXPECT(at_first(cbr_cookie(token), 2) == -1);
  EXPECT((cbr::trampoline<int(void *, int), 0>)(cbr_cookie(token), 2) == 0);

  context = 'x';
  token = add(last, &context);
  const auto at_last =
      cbr::trampoline<answer(const char *, void *), 1, answer::none>;
  EXPECT(at_last("x", cbr_cookie(token)) == answer::some);
  end(token);
  EXPECT(at_last("x", cbr_cookie(token)) == answer::none);

  context = 2;
  token = add(middle, &context);
  const auto between =
      cbr::trampoline<int(unmovable_text, const void *, double), 1>;
  EXPECT(between({std::make_unique<int>(20)}, cbr_cookie(token), 2.0) == 42);
  end(token);
  EXPECT(between({std::make_unique<int>(20)}, cbr_cookie(token), 2.0) == 0);

  context = 0;
  token = add(nothing, &context);
  cbr::trampoline<void(void *), 0>(cbr_cookie(token));
  end(token);
  cbr::trampoline<void(void *), 0>(cbr_cookie(token));
  EXPECT(context == 1);
}

void exceptions_leave() {
  const cbr_token token = add(thrown, nullptr);
  bool caught = false;
  try {
    cbr::trampoline<void(void *), 0>(cbr_cookie(token));
  } catch (const std::runtime_error &) {
    caught = true;
  }
  EXPECT(caught);
  EXPECT(cbr_mark() == 0);
  end(token);  // nothing is left of the call
}

}  // namespace

int main() {
  EXPECT(registry.open() == CBR_OK);
  any_signature();
  exceptions_leave();
  EXPECT(registry.close() == CBR_OK);
  return failures == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
//
// Trampolines of the C++ layer: any signature, wherever the cookie is; what
// they return when the token is dead; exceptions leave the call (G29, H9).
// Thunks of callables, described by their types.

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

struct point {
  double x, y;
};

struct place {
  point at;
  char name[4];
  std::int16_t floor;
};

}  // namespace

template <>
struct cbr::fields<point> : cbr::field_list<double, double> {};
template <>
struct cbr::fields<place>
    : cbr::field_list<point, char, char, char, char, std::int16_t> {};

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

void thunks_of_callables() {
  int calls = 0;
  cbr::registration twice;
  EXPECT(twice.bind<int(int)>(registry, "twice", [&](int number) {
    ++calls;
    return number * 2;
  }) == CBR_OK);
  cbr::thunk thunk;
  EXPECT(thunk.create<long(int)>(registry, twice) == CBR_E_INTERFACE);
  EXPECT(thunk.create_or<int(int)>(registry, twice, -1) == CBR_OK);
  int (*call)(int) = thunk.function<int(int)>();
  EXPECT(call(21) == 42 && calls == 1);
  EXPECT(thunk.end() == CBR_OK);
  EXPECT(call(21) == -1 && calls == 1);
  EXPECT(thunk.function<int(int)>() == nullptr);

  // Without arguments, and with every kind of them.
  cbr::registration nothing;
  EXPECT(nothing.bind<void()>(registry, "nothing", [&] { ++calls; }) ==
         CBR_OK);
  EXPECT(thunk.create<void()>(registry, nothing) == CBR_OK);
  thunk.function<void()>()();
  EXPECT(calls == 2);

  using all = answer(const place &, place, float, bool, unsigned char, answer);
  cbr::registration everything;
  EXPECT(everything.bind<all>(
             registry, "everything",
             [](const place &known, place copied, float number, bool is_set,
                unsigned char letter, answer given) {
               return known.floor == copied.floor && copied.at.y == 2.5 &&
                              copied.name[3] == 'd' && number == 0.5f &&
                              is_set && letter == 255
                          ? given
                          : answer::none;
             }) == CBR_OK);
  EXPECT(thunk.create_or<all>(registry, everything, answer::none) == CBR_OK);
  const place here = {{1.5, 2.5}, {'a', 'b', 'c', 'd'}, -3};
  all *check = thunk.function<all>();
  EXPECT(check(here, here, 0.5f, true, 255, answer::some) == answer::some);
  EXPECT(everything.end() == CBR_OK);
  EXPECT(check(here, here, 0.5f, true, 255, answer::some) == answer::none);

  // A structure comes back, and is the default.
  cbr::registration moved;
  EXPECT(moved.bind<place(place)>(registry, "moved", [](place it) {
    it.at.x += 1;
    return it;
  }) == CBR_OK);
  EXPECT(thunk.create_or<place(place)>(registry, moved, here) == CBR_OK);
  place (*move)(place) = thunk.function<place(place)>();
  EXPECT(move(here).at.x == 2.5 && move(here).floor == -3);
  EXPECT(moved.end() == CBR_OK);
  EXPECT(move({}).at.x == 1.5 && move({}).name[1] == 'b');
  const cbr_thunk kept = thunk;
  {
    cbr::thunk gone = std::move(thunk);
    EXPECT(cbr_is_live(kept));
  }
  EXPECT(!cbr_is_live(kept));
  EXPECT(move({}).at.x == 1.5);
}

}  // namespace

int main() {
  EXPECT(registry.open() == CBR_OK);
  any_signature();
  exceptions_leave();
  thunks_of_callables();
  EXPECT(registry.close() == CBR_OK);
  return failures == 0 ? 0 : 1;
}

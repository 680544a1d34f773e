// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer keeps what it promises: exceptions leave the call (H9, G11),
// guards can be moved, a callable is deleted exactly once (G7), a call with
// another signature is refused (G10), destructors wait (G9).

#include "callback_registry.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

static int failures = 0;

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::fprintf(stderr, "%s:%d: expected %s (last error: %s)\n",       \
                   __FILE__, __LINE__, #condition, cbr_last_error());     \
      ++failures;                                                         \
    }                                                                     \
  } while (0)

namespace shapes {
struct square {
  int side;
};
}  // namespace shapes

// Every compiler must make the same tags of these.
static_assert(cbr::type_tag<void()> == 0x7f31a52302caf8edu);
static_assert(cbr::type_tag<int(double, const char *)> ==
              0xd4f2fe6bbad3f6c1u);

// The tags of signatures that are all different.
template <class... Signatures>
constexpr bool all_differ() {
  const std::uint64_t tags[] = {cbr::type_tag<Signatures>...};
  for (const std::uint64_t &tag : tags)
    for (const std::uint64_t *other = tags; other != &tag; ++other)
      if (*other == tag) return false;
  return true;
}

static_assert(all_differ<void(int), void(unsigned), int(int), void(int, int),
                         void(int *), void(const int *), void(volatile int *),
                         void(int &), void(int &&), void(int **),
                         void(int, bool), void(bool, int)>());

// Results and parameters do not cancel each other out.
static_assert(all_differ<void(), int(int), double(double), int(double),
                         double(int), int *(int *), bool(bool), int(int, int),
                         int(int, int, int), void(void *), void *(),
                         int(double, int), int(int, double)>());

// Each has its own meaning, whatever its size.
static_assert(all_differ<
    void(bool), void(char), void(signed char), void(unsigned char),
    void(wchar_t), void(char16_t), void(char32_t), void(short),
    void(unsigned short), void(int), void(unsigned), void(long),
    void(unsigned long), void(float), void(double), void(long double),
#if defined(__cpp_char8_t)
    void(char8_t),
#endif
#if defined(__SIZEOF_INT128__)
    void(__int128_t), void(__uint128_t),
#endif
#if defined(__SIZEOF_FLOAT128__)
    void(__float128),
#endif
#if defined(__FLT16_MAX__)
    void(_Float16),
#endif
#if defined(__STDCPP_FLOAT32_T__)
    void(_Float32),
#endif
    void(void *), void(std::nullptr_t)>());

// One size and sign: the machine sees no difference.
static_assert(sizeof(long) != sizeof(long long) ||
              cbr::type_tag<long(unsigned long *)> ==
                  cbr::type_tag<long long(unsigned long long *)>);
static_assert(cbr::type_tag<void(const int)> == cbr::type_tag<void(int)>);

static_assert(!std::is_copy_constructible_v<cbr::guard>);
static_assert(!std::is_copy_constructible_v<cbr::registration>);
static_assert(std::is_nothrow_move_constructible_v<cbr::guard>);
static_assert(std::is_nothrow_move_assignable_v<cbr::guard>);
static_assert(std::is_nothrow_move_constructible_v<cbr::registration>);
static_assert(std::is_nothrow_move_assignable_v<cbr::registry>);

// Counts its living copies, and remembers being freed twice.
struct tracked {
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> twice{0};
  const tracked *self = this;

  tracked() { ++alive; }
  tracked(const tracked &) { ++alive; }
  ~tracked() {
    if (self != this) ++twice;
    self = nullptr;
    --alive;
  }
};

static cbr::registry open_registry() {
  cbr::registry registry;
  EXPECT(registry.open() == CBR_OK);
  return registry;
}

static cbr_status end_now(cbr_token token) {
  return cbr_invalidate_wait(token, CBR_REASON_ENDED, 0);
}

static void typed_calls() {
  cbr::registry registry = open_registry();
  int total = 0;
  cbr::registration add, count, choose, take;
  EXPECT(add.bind<int(int, int)>(registry, "add", [](int a, int b) {
    return a + b;
  }) == CBR_OK);
  EXPECT(count.bind<void(int)>(registry, "count", [&](int by) {
    total += by;
    return total;  // more than the signature asks for
  }) == CBR_OK);
  EXPECT(choose.bind<int &()>(registry, "choose", [&]() -> int & {
    return total;
  }) == CBR_OK);
  EXPECT(take.bind<std::unique_ptr<int>(std::unique_ptr<int>)>(
             registry, "take", [](std::unique_ptr<int> given) {
               ++*given;
               return given;
             }) == CBR_OK);

  auto sum = cbr::call<int(int, int)>(add, 2, 3);
  EXPECT(sum && *sum == 5 && sum.status == CBR_OK);
  EXPECT((cbr::call<int(int, int)>(add, 2, 3).value_or(0) == 5));
  EXPECT(cbr::call<void(int)>(count, 7));
  EXPECT(total == 7);
  cbr::call<int &()>(choose)->get() = 9;
  EXPECT(total == 9);
  auto given = cbr::call<std::unique_ptr<int>(std::unique_ptr<int>)>(
      take, std::make_unique<int>(1));
  EXPECT(given && **given == 2);

  // Every compiler must make the same tag of this one, too.
  EXPECT((cbr::type_tag<shapes::square &(bool, void *)> ==
          0x92224c9af588f8b7u));

  // Another signature is refused before the context is touched (G10).
  EXPECT(cbr::call<void(long double)>(count, 1).status == CBR_E_INTERFACE);
  EXPECT((!cbr::call<int(int)>(add, 1)));
  EXPECT(cbr::guard(count).status() == CBR_E_INTERFACE);
  EXPECT(total == 9);

  // Local types of one name, within one file.
  cbr::registration local;
  {
    struct square {
      int side;
    };
    EXPECT(local.bind<int(square *)>(registry, "local", [](square *its) {
      return its->side;
    }) == CBR_OK);
    square small{3};
    EXPECT(cbr::call<int(square *)>(local, &small).value_or(0) == 3);
  }
  struct square {
    const char *name;
  } large{""};
  EXPECT(cbr::call<int(square *)>(local, &large).status == CBR_E_INTERFACE);
  shapes::square other{4};
  EXPECT(cbr::call<int(shapes::square *)>(local, &other).status ==
         CBR_E_INTERFACE);

  EXPECT(count.end() == CBR_OK);
  EXPECT(count.end() == CBR_ALREADY);
  auto late = cbr::call<void(int)>(count, 1);
  EXPECT(!late && late.status == CBR_E_STALE);
  EXPECT(total == 9);
  EXPECT(cbr::explain(count).find("count") != std::string::npos);
  EXPECT(cbr::explain(~cbr_handle{0}).empty());
  EXPECT(cbr::call<void()>(CBR_NONE).status == CBR_E_INVALID);
}

static void double_it(void *context, int by) {
  *static_cast<int *>(context) *= by;
}

static cbr_disposition answer(void *context) {
  return *static_cast<cbr_disposition *>(context);
}

static void tokens_of_c_code() {
  cbr::registry registry = open_registry();
  int number = 21;
  cbr_token token;
  EXPECT(CBR_REGISTER(registry, "double", double_it, &number, nullptr,
                      CBR_NONE, &token) == CBR_OK);
  EXPECT(cbr::guard(token).call<void(int)>(2));
  EXPECT(number == 42);
  if (cbr::guard call{token}) EXPECT(call.context<int>() == &number);
  CBR_CALL(token, void (*)(void *, int), (cbr_now.context, 2));
  EXPECT(number == 84);

  const cbr_method methods[] = {{"answer", CBR_METHOD_REQUIRED, 0},
                                {"ask", CBR_METHOD_DEFAULT, CBR_STOP}};
  const cbr_interface interface = {sizeof(cbr_interface), "oracle", 1, 2,
                                   methods};
  const cbr_function table[] = {CBR_FUNCTION_CAST_(cbr_function, answer),
                                nullptr};
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.interface = &interface;
  what.methods = table;
  what.context = &number;
  cbr_token oracle;
  EXPECT(cbr_register(registry, &what, &oracle) == CBR_OK);
  auto answered =
      cbr::guard(oracle, interface, 0).call<cbr_disposition()>();
  EXPECT(answered && *answered == 84);
  cbr::guard absent(oracle, interface, 1);
  EXPECT(!absent && absent.status() == CBR_E_UNIMPLEMENTED);
  EXPECT(absent.disposition() == CBR_STOP);
  EXPECT(end_now(oracle) == CBR_OK);
}

// H9: the exception arrives, the call is over, the registry works on.
static void exceptions_leave() {
  cbr::registry registry = open_registry();
  cbr::registration outer, inner;
  EXPECT(inner.bind<void(int)>(registry, "inner", [](int number) {
    throw std::out_of_range(std::to_string(number));
  }) == CBR_OK);
  EXPECT(outer.bind<void(int)>(registry, "outer", [&](int number) {
    cbr::call<void(int)>(inner, number);
  }) == CBR_OK);

  const std::size_t mark = cbr_mark();
  for (int number = 0; number < 1000; ++number) {
    bool arrived = false;
    try {
      cbr::call<void(int)>(outer, number);
    } catch (const std::out_of_range &error) {
      arrived = error.what() == std::to_string(number);
    }
    EXPECT(arrived);
  }
  EXPECT(cbr_mark() == mark);

  try {
    cbr::guard guard(outer, cbr::type_tag<void(int)>);
    EXPECT(end_now(outer) == CBR_DEFERRED);
    throw 1;
  } catch (int) {
  }
  EXPECT(end_now(outer) == CBR_ALREADY);
  EXPECT(end_now(inner) == CBR_OK);

  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(cbr_registry_statistics(registry, &statistics) == CBR_OK);
  EXPECT(statistics.abandoned == 0);
  EXPECT(statistics.live_tokens == 0);

  cbr::registration after;
  EXPECT(after.bind<int()>(registry, "after", [] { return 1; }) == CBR_OK);
  EXPECT(cbr::call<int()>(after).value_or(0) == 1);
}

static void guards_move() {
  cbr::registry registry = open_registry();
  int first_number = 1, second_number = 2;
  cbr_token first, second;
  EXPECT(CBR_REGISTER(registry, "first", double_it, &first_number, nullptr,
                      CBR_NONE, &first) == CBR_OK);
  EXPECT(CBR_REGISTER(registry, "second", double_it, &second_number, nullptr,
                      CBR_NONE, &second) == CBR_OK);
  const std::size_t mark = cbr_mark();
  {
    cbr::guard from(first);
    cbr::guard to(std::move(from));
    EXPECT(to && to.context<int>() == &first_number);
    EXPECT(!from && from.status() == CBR_E_INVALID);
    EXPECT(from.context<int>() == nullptr);
    EXPECT(!from.call<void(int)>(2));
    EXPECT(from.leave() == CBR_E_INVALID);
    EXPECT(first_number == 1);

    // The call that the target held is left, the other one arrives.
    cbr::guard other(second);
    other = std::move(to);
    EXPECT(end_now(second) == CBR_OK);
    EXPECT(other && other.context<int>() == &first_number);
    EXPECT(!to);

    cbr::guard &same = other;
    other = std::move(same);
    EXPECT(other);
    EXPECT(end_now(first) == CBR_DEFERRED);
    EXPECT(other.leave() == CBR_OK);
    EXPECT(other.leave() == CBR_E_INVALID);
    EXPECT(!other && !other.call<void(int)>(2));
  }
  EXPECT(cbr_mark() == mark);
  EXPECT(end_now(first) == CBR_ALREADY);

  // From a function, in a container: each is left once.
  cbr_token third;
  EXPECT(CBR_REGISTER(registry, "third", double_it, &first_number, nullptr,
                      CBR_NONE, &third) == CBR_OK);
  {
    auto enter = [&] { return cbr::guard(third); };
    std::vector<cbr::guard> guards;
    for (int count = 0; count < 100; ++count) guards.push_back(enter());
    guards.erase(guards.begin());
    EXPECT(end_now(third) == CBR_DEFERRED);
    EXPECT(guards.back());
  }
  EXPECT(end_now(third) == CBR_ALREADY);
}

static void callables_are_deleted_once() {
  {
    cbr::registry registry = open_registry();
    cbr::registration ended, moved, replaced, dropped;
    cbr::owner owner;
    EXPECT(owner.create(registry, "owner") == CBR_OK);

    // By end, when nothing is in flight.
    EXPECT(ended.bind<void()>(registry, "ended", [value = tracked()] {
      (void)value;
    }) == CBR_OK);
    EXPECT(tracked::alive == 1);
    EXPECT(ended.end() == CBR_OK && tracked::alive == 0);

    // At the end of the call that ended it, and not before.
    EXPECT(ended.bind<void()>(registry, "itself", [&, value = tracked()] {
      EXPECT(ended.end() == CBR_DEFERRED);
      EXPECT(tracked::alive == 1 && value.self == &value);
    }) == CBR_OK);
    EXPECT(cbr::call<void()>(ended));
    EXPECT(tracked::alive == 0);
    EXPECT(ended.end() == CBR_ALREADY);

    // A one-shot: after its call.
    EXPECT(ended.bind<void()>(registry, {"once", CBR_NONE, CBR_ONE_SHOT},
                              [value = tracked()] {
                                EXPECT(tracked::alive == 1);
                                (void)value;
                              }) == CBR_OK);
    EXPECT(cbr::call<void()>(ended));
    EXPECT(tracked::alive == 0);
    EXPECT(cbr::call<void()>(ended).status == CBR_E_CONSUMED);

    // A failed registration keeps nothing (G6), and the wrapper keeps what it
    // had.
    const std::string long_label(300, 'x');
    EXPECT(moved.bind<void()>(registry, "kept", [value = tracked()] {
      (void)value;
    }) == CBR_OK);
    EXPECT(moved.bind<void()>(registry, long_label.c_str(),
                              [value = tracked()] { (void)value; }) ==
           CBR_E_INVALID);
    EXPECT(tracked::alive == 1);
    EXPECT(cbr::call<void()>(moved));

    // Moved wrappers own once; replacing ends the former.
    cbr::registration target(std::move(moved));
    EXPECT(moved == CBR_NONE && cbr_is_live(target));
    moved = std::move(target);
    EXPECT(target == CBR_NONE && cbr_is_live(moved) && tracked::alive == 1);
    EXPECT(replaced.bind<void()>(registry, "replaced", [value = tracked()] {
      (void)value;
    }) == CBR_OK);
    EXPECT(tracked::alive == 2);
    replaced = std::move(moved);
    EXPECT(tracked::alive == 1);
    EXPECT(replaced.end() == CBR_OK && tracked::alive == 0);

    // Given up: the owner ends it.
    EXPECT(dropped.bind<void()>(registry, {"dropped", owner},
                                [value = tracked()] {
                                  (void)value;
                                }) == CBR_OK);
    cbr_token token = dropped.release();
    EXPECT(dropped == CBR_NONE && dropped.end() == CBR_ALREADY);
    EXPECT(cbr_is_live(token) && tracked::alive == 1);
    EXPECT(owner.end() == CBR_OK);
    EXPECT(!cbr_is_live(token) && tracked::alive == 0);

    // Left to the end of the scope, together with a child owner.
    cbr::owner parent, child;
    EXPECT(parent.create(registry, "parent") == CBR_OK);
    EXPECT(child.create_child(parent, "child") == CBR_OK);
    EXPECT(dropped.bind<void()>(registry, {"last", child},
                                [value = tracked()] {
                                  (void)value;
                                }) == CBR_OK);
  }
  EXPECT(tracked::alive == 0);

  // A wrapper that outlives its registry.
  cbr::registration late;
  {
    cbr::registry registry = open_registry();
    EXPECT(late.bind<void()>(registry, "late", [value = tracked()] {
      (void)value;
    }) == CBR_OK);
    EXPECT(registry.close() == CBR_OK);
    EXPECT(registry.close() == CBR_ALREADY);
  }
  EXPECT(tracked::alive == 0);
  EXPECT(!cbr::call<void()>(late));
  EXPECT(tracked::twice == 0);
}

static void destructors_wait() {
  cbr::registry registry = open_registry();
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> entered{false}, finished{false};
    std::thread caller;
    {
      cbr::registration slow;
      EXPECT(slow.bind<void(cbr_token)>(registry, "slow", [&](cbr_token self) {
        entered = true;
        while (cbr_is_live(self)) std::this_thread::yield();
        finished = true;
      }) == CBR_OK);
      caller = std::thread([&, token = cbr_token(slow)] {
        cbr::call<void(cbr_token)>(token, token);
      });
      while (!entered) std::this_thread::yield();
    }
    EXPECT(finished);
    caller.join();
  }
}

static cbr_disposition remember(void *context, const cbr_item *item) {
  if (std::strcmp(item->label, "here") == 0)
    *static_cast<std::string *>(context) =
        std::string(item->file) + ":" + std::to_string(item->line);
  return CBR_CONTINUE;
}

static void sites_and_errors() {
  cbr::registry registry = open_registry();
  cbr::registration here;
  const int line = __LINE__ + 1;
  EXPECT(here.bind<void()>(registry, "here", [] {}) == CBR_OK);
  std::string site;
  EXPECT(cbr_registry_each_live(registry, remember, &site) == CBR_OK);
  EXPECT(site == std::string(__FILE__) + ":" + std::to_string(line));

  EXPECT(cbr::check(CBR_OK) == CBR_OK);
  EXPECT(here.end() == CBR_OK);
  EXPECT(cbr::check(cbr_invalidate(here, CBR_REASON_ENDED)) == CBR_ALREADY);
  bool thrown = false;
  try {
    cbr::check(cbr::call<void()>(here).status);
  } catch (const cbr::error &error) {
    thrown = error.status() == CBR_E_STALE &&
             std::strstr(error.what(), "CBR_E_STALE") != nullptr;
  }
  EXPECT(thrown);

  // What copying a callable throws arrives, and nothing was registered.
  struct uncopyable {
    uncopyable() = default;
    uncopyable(const uncopyable &) { throw 2; }
    void operator()() const {}
  } callable;
  thrown = false;
  try {
    (void)here.bind<void()>(registry, "never", callable);
  } catch (int) {
    thrown = true;
  }
  EXPECT(thrown);
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(cbr_registry_statistics(registry, &statistics) == CBR_OK);
  EXPECT(statistics.live_tokens == 0);
}

// An object with an owner that ends before its other members do (G18).
struct window {
  explicit window(bool &is_open) : open(is_open) { open = true; }
  ~window() { EXPECT(living.end() == CBR_OK); }
  struct frame {
    bool &open;
    explicit frame(bool &it) : open(it) {}
    ~frame() { open = false; }
  };
  bool &open;
  frame its_frame{open};
  cbr::living living{this};
};

void living_objects() {
  cbr::registry registry;
  EXPECT(registry.open() == CBR_OK);
  bool open = false;
  cbr_token token = CBR_NONE;
  std::atomic<bool> inside{false};
  std::thread caller;
  {
    window it(open);
    EXPECT(it.living.begin(registry, "window") == CBR_OK);
    EXPECT(it.living.begin(registry, "window") == CBR_OK);
    cbr_owner owner;
    EXPECT(cbr_owner_for_object(registry, &it, "window", &owner) == CBR_OK);
    EXPECT(owner == it.living);
    cbr::registration drawn;
    EXPECT(drawn.bind<void()>(registry, {"draw", owner}, [&] {
             inside = true;
             while (cbr_is_live(token)) std::this_thread::yield();
             for (int each = 0; each < 1000; ++each) std::this_thread::yield();
             EXPECT(open);  // its members are there until this returns
           }) == CBR_OK);
    token = drawn.release();
    caller = std::thread([&] { cbr::call<void()>(token); });
    while (!inside) std::this_thread::yield();
  }
  caller.join();
  EXPECT(!open);
  EXPECT(cbr::call<void()>(token).status == CBR_E_STALE);

  // Its owner has been ended, and others have asked for it again.
  {
    window it(open);
    EXPECT(it.living.begin(registry, "window") == CBR_OK);
    EXPECT(cbr_object_died(registry, &it) == CBR_OK);
    cbr_owner owner;
    EXPECT(cbr_owner_for_object(registry, &it, "again", &owner) == CBR_OK);
    EXPECT(owner != it.living);
    cbr::registration drawn;
    EXPECT(drawn.bind<void()>(registry, {"draw", owner}, [] {}) == CBR_OK);
    token = drawn.release();
  }
  EXPECT(cbr::call<void()>(token).status == CBR_E_STALE);

  // A new object at the same address is another one.
  alignas(cbr::living) unsigned char room[sizeof(cbr::living)];
  cbr_owner former = CBR_NONE;
  for (int each = 0; each < 2; ++each) {
    auto *living = new (room) cbr::living(room);
    EXPECT(living->begin(registry, "again") == CBR_OK);
    EXPECT(*living != former);
    former = *living;
    living->~living();
    EXPECT(!cbr_is_live(former));
  }
}

int main() {
  living_objects();
  typed_calls();
  tokens_of_c_code();
  exceptions_leave();
  guards_move();
  callables_are_deleted_once();
  destructors_wait();
  sites_and_errors();
  return failures == 0 ? 0 : 1;
}

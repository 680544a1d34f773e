// SPDX-License-Identifier: Apache-2.0
//
// Slots and signals of the C++ layer: what G19 and G20 promise of the handles
// holds of the wrappers, an exception of a handler goes around the library,
// and a handler's callable is deleted once, when it is not running (G7).

#include "callback_registry.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

static std::atomic<int> failures{0};

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::fprintf(stderr, "%s:%d: expected %s (last error: %s)\n",       \
                   __FILE__, __LINE__, #condition, cbr_last_error());     \
      ++failures;                                                         \
    }                                                                     \
  } while (0)

static_assert(!std::is_copy_constructible_v<cbr::slot>);
static_assert(!std::is_copy_constructible_v<cbr::signal<int>>);
static_assert(!std::is_copy_constructible_v<cbr::connection>);
static_assert(!std::is_copy_constructible_v<cbr::blocked>);
static_assert(std::is_nothrow_move_assignable_v<cbr::slot>);
static_assert(std::is_nothrow_move_assignable_v<cbr::signal<int, char &>>);
static_assert(std::is_nothrow_move_assignable_v<cbr::connection>);
static_assert(std::is_nothrow_move_assignable_v<cbr::blocked>);

static cbr::registry open_registry() {
  cbr::registry registry;
  EXPECT(registry.open() == CBR_OK);
  return registry;
}

static cbr_statistics statistics_of(cbr_registry registry) {
  cbr_statistics statistics = CBR_STATISTICS_INIT;
  EXPECT(cbr_registry_statistics(registry, &statistics) == CBR_OK);
  return statistics;
}

template <class... Arguments>
static cbr::signal<Arguments...> add_signal(cbr_registry registry) {
  cbr::signal<Arguments...> signal;
  EXPECT(signal.create(registry, "changed") == CBR_OK);
  return signal;
}

static void G19_slotsHoldCallables() {
  cbr::registry registry = open_registry();
  cbr::slot delegate;
  EXPECT((delegate.call<int(int)>(1).status == CBR_E_STALE));
  EXPECT(delegate.create(registry, "delegate") == CBR_OK);
  EXPECT((delegate.call<int(int)>(1).status == CBR_EMPTY));

  cbr_slot told_slot = CBR_NONE;
  cbr_token told_token = CBR_NONE;
  cbr::registration observer, controller, other;
  EXPECT((observer.bind_untagged<void(cbr_slot, cbr_token)>(
      registry, "observer", [&](cbr_slot slot, cbr_token token) {
        told_slot = slot;
        told_token = token;
      })) == CBR_OK);
  EXPECT(delegate.on_clear(observer) == CBR_OK);
  EXPECT(controller.bind<int(int)>(registry, "controller", [](int by) {
    return by + 1;
  }) == CBR_OK);
  EXPECT(other.bind<int(int)>(registry, "other", [](int by) {
    return by + 2;
  }) == CBR_OK);

  EXPECT(delegate.set(controller) == CBR_OK);
  EXPECT(delegate.token() == controller);
  EXPECT(delegate.call<int(int)>(1).value_or(0) == 2);
  EXPECT(delegate.call<int(long double)>(1).status == CBR_E_INTERFACE);
  EXPECT(delegate.set(other) == CBR_OK);
  EXPECT(delegate.call<int(int)>(1).value_or(0) == 3);
  EXPECT(told_slot == CBR_NONE);
  const cbr_token dying = other;
  EXPECT(other.end() == CBR_OK);
  EXPECT(told_slot == delegate && told_token == dying);
  EXPECT(delegate.call<int(int)>(1).status == CBR_EMPTY);

  EXPECT(delegate.set(controller) == CBR_OK);
  EXPECT(delegate.set(CBR_NONE) == CBR_OK);
  EXPECT(delegate.token() == CBR_NONE);
  EXPECT(delegate.set(controller) == CBR_OK);
  cbr::slot moved = std::move(delegate);
  EXPECT(moved.call<int(int)>(1).value_or(0) == 2);
  EXPECT(moved.end() == CBR_OK);
  EXPECT(moved.end() == CBR_ALREADY);
  EXPECT(moved.call<int(int)>(1).status == CBR_E_STALE);
  EXPECT(statistics_of(registry).live_slots == 0);
}

struct listener {
  std::string heard;
  void hear(const std::string &what) { heard += what; }
  cbr_disposition stop(const std::string &) const { return CBR_STOP; }
};

static void G20_orderAndAnswers() {
  cbr::registry registry = open_registry();
  auto changed = add_signal<std::string>(registry);
  std::string heard;
  listener object;
  auto last = changed.connect("last", [&](const std::string &) {
    heard += "c";
  }, -1);
  auto first = changed.connect("first", [&](std::string it) {  // a copy
    heard += it += "a";
  });
  auto second = changed.connect("second", [&](const std::string &it) {
    heard += it;
    return CBR_DISCONNECT;
  });
  auto method = changed.connect("method", &object, &listener::hear, 1);
  EXPECT(last && first && second && method);
  EXPECT(first.status() == CBR_OK);
  auto did = changed.emit("-");
  EXPECT(did && did.called == 4 && did.stopped_by == CBR_NONE);
  EXPECT(heard == "-a-c" && object.heard == "-");
  EXPECT(!cbr_is_live(second));
  auto stopper = changed.connect("stop", &object, &listener::stop);
  did = changed.emit("+");
  EXPECT(!did && did.status == CBR_STOPPED && did.stopped_by == stopper);
  EXPECT(heard == "-a-c+a");
  EXPECT(stopper.end() == CBR_OK);
  EXPECT(first.end(CBR_REASON_CANCELLED) == CBR_OK);
  EXPECT(changed.emit("!").called == 2);

  {
    cbr::blocked quiet(changed), more(method);
    EXPECT(quiet && more);
    EXPECT(changed.emit("").blocked > 0);
    cbr::blocked moved = std::move(quiet);
    EXPECT(moved && !quiet && quiet.status() == CBR_E_INVALID);
    EXPECT(moved.unblock() == CBR_OK);
    EXPECT(moved.unblock() == CBR_E_INVALID);
    did = changed.emit("");
    EXPECT(did.called == 1 && did.blocked == 1);
    moved = cbr::blocked(method);
    more = std::move(moved);  // still blocked once
    EXPECT(changed.emit("").blocked == 1);
  }
  EXPECT(changed.emit("").called == 2);
  EXPECT(changed.end() == CBR_OK);
  EXPECT(changed.emit("").status == CBR_E_STALE);
  EXPECT(!cbr_is_live(method));
  auto late = changed.connect("late", [](const std::string &) {});
  EXPECT(!late && late.status() == CBR_E_STALE);
  EXPECT(cbr::blocked(changed).status() == CBR_E_STALE);
}

// Arguments are shared: what is passed by reference is the caller's own.
static void G20_argumentsAreShared() {
  cbr::registry registry = open_registry();
  auto asked = add_signal<int &, const int *, std::unique_ptr<int>>(registry);
  auto add = [](int &total, const int *by, const std::unique_ptr<int> &) {
    total += *by;
  };
  auto one = asked.connect("one", add), two = asked.connect("two", add);
  int total = 0;
  const int by = 21;
  EXPECT(asked.emit(total, &by, std::make_unique<int>(1)));
  EXPECT(total == 42);
  auto nothing = add_signal<>(registry);
  auto counting = nothing.connect("count", [&] { ++total; });
  EXPECT(nothing.emit().called == 1);
  EXPECT(total == 43);
}

// G7: as often deleted as made, also when nothing was connected.
static void G7_callablesAreDeletedOnce() {
  auto life = std::make_shared<int>(0);
  cbr::registry registry = open_registry();
  {
    cbr::owner owner;
    EXPECT(owner.create(registry, "owner") == CBR_OK);
    auto changed = add_signal<>(registry);
    auto own = changed.connect({"own", owner}, [life] {});
    auto kept = changed.connect("kept", [life] {});
    EXPECT(life.use_count() == 3);
    EXPECT(owner.end() == CBR_OK);
    EXPECT(life.use_count() == 2);
    EXPECT(changed.connect({"dying", owner}, [life] {}).status() < 0);
    EXPECT(changed.connect("\n", [life] {}).status() == CBR_E_INVALID);
    EXPECT(life.use_count() == 2);
    kept = changed.connect("replaced", [life] {});
    EXPECT(life.use_count() == 2);
    cbr_token released = kept.release();
    kept = cbr::connection();
    EXPECT(cbr_is_live(released));
    EXPECT(changed.emit().called == 1);
  }
  EXPECT(life.use_count() == 1);
  EXPECT(statistics_of(registry).live_tokens == 0);
  EXPECT(statistics_of(registry).live_signals == 0);
}

// What a handler has captured stays until it returns, whatever it ends.
static void G20_handlersEndThemselves() {
  cbr::registry registry = open_registry();
  auto life = std::make_shared<int>(0);
  auto changed = std::make_unique<cbr::signal<>>(add_signal<>(registry));
  cbr::connection self;
  self = changed->connect("self", [&self, life] {
    const std::shared_ptr<int> &captured = life;
    self = cbr::connection();
    EXPECT(captured.use_count() == 2);
    ++*captured;
  });
  EXPECT(changed->emit().called == 1);
  EXPECT(*life == 1 && life.use_count() == 1);

  auto emitter = changed->connect("emitter", [&changed, life] {
    changed.reset();
    EXPECT(life.use_count() == 2);
  });
  auto never = changed->connect("never", [life] { ++*life; });
  EXPECT(changed->emit().status == CBR_STOPPED);
  EXPECT(*life == 1 && life.use_count() == 1);

  auto again = add_signal<>(registry);
  int times = 0;
  auto once = again.connect({"once", CBR_NONE, CBR_ONE_SHOT}, [&] {
    ++times;
    EXPECT(again.emit().called == 0);
  });
  EXPECT(again.emit().called == 1);
  EXPECT(again.emit().called == 0);
  EXPECT(times == 1);
}

// H9: an exception goes around the library; the emission ends with it.
static void G20_exceptionsEndTheEmission() {
  cbr::registry registry = open_registry();
  auto outer = add_signal<int>(registry), inner = add_signal<int>(registry);
  auto life = std::make_shared<int>(0);
  int after = 0;
  auto throwing = inner.connect("throws", [life](int number) {
    throw std::out_of_range(std::to_string(number));
  });
  auto nesting = outer.connect("nests", [&](int it) { inner.emit(it); });
  auto behind = outer.connect("behind", [&](int) { ++after; });
  const std::size_t mark = cbr_mark();
  for (int number = 0; number < 1000; ++number) {
    bool arrived = false;
    try {
      outer.emit(number);
    } catch (const std::out_of_range &error) {
      arrived = error.what() == std::to_string(number);
    }
    EXPECT(arrived && cbr_mark() == mark);
  }
  EXPECT(after == 0);
  EXPECT(throwing.end() == CBR_OK);
  EXPECT(life.use_count() == 1);
  EXPECT(outer.emit(0) && after == 1);
  EXPECT(statistics_of(registry).abandoned == 0);

  // A one-shot that throws has been used; one that ended itself is deleted.
  auto ending = inner.connect("ends", [life, &inner](int) {
    (void)inner.end();
    throw 5;
  });
  int thrown = 0;
  try {
    inner.emit(0);
  } catch (int number) {
    thrown = number;
  }
  EXPECT(thrown == 5 && life.use_count() == 1);
}

// G11: a thread may end inside a handler; what it was inside is released.
static void G11_threadsEndInsideAnEmission() {
  cbr::registry registry = open_registry();
  auto life = std::make_shared<int>(0);
  auto changed = add_signal<>(registry);
  auto leaving = changed.connect("leaves", [life] { pthread_exit(nullptr); });
  pthread_t thread;
  EXPECT(pthread_create(&thread, nullptr, [](void *its) -> void * {
    static_cast<cbr::signal<> *>(its)->emit();
    return its;
  }, &changed) == 0);
  void *answer = &thread;
  EXPECT(pthread_join(thread, &answer) == 0);
  EXPECT(answer == nullptr);
  EXPECT(leaving.end() == CBR_OK);
  EXPECT(life.use_count() == 1);
  EXPECT(changed.end() == CBR_OK);
}

// G9: a connection's destructor waits for the handler on another thread.
static void G9_destructorsWait() {
  cbr::registry registry = open_registry();
  auto changed = add_signal<>(registry);
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> entered{false}, finished{false};
    std::atomic<cbr_token> token{CBR_NONE};
    std::thread emitter;
    {
      auto slow = changed.connect("slow", [&] {
        entered = true;
        while (token == CBR_NONE || cbr_is_live(token))
          std::this_thread::yield();
        finished = true;
      });
      token = slow;
      emitter = std::thread([&] { changed.emit(); });
      while (!entered) std::this_thread::yield();
    }
    EXPECT(finished);
    emitter.join();
  }
}

// Connecting, ending, blocking and emitting on four threads.
static void G20_fourThreads() {
  cbr::registry registry = open_registry();
  auto changed = add_signal<int &>(registry);
  auto life = std::make_shared<int>(0);
  std::vector<std::thread> threads;
  for (int each = 0; each < 4; ++each)
    threads.emplace_back([&, each, captured = life] {
      for (int round = 0; round < 300; ++round) {
        auto mine = changed.connect("mine", [captured](int &count) {
          ++count;
        }, (round + each) % 3);
        int count = 0;
        EXPECT(changed.emit(count) && count > 0);
        cbr::blocked quiet(mine);
        EXPECT(quiet);
      }
    });
  for (auto &thread : threads) thread.join();
  threads.clear();
  EXPECT(life.use_count() == 1);
  EXPECT(changed.end() == CBR_OK);
  EXPECT(statistics_of(registry).live_tokens == 0);
}

int main() {
  G19_slotsHoldCallables();
  G20_orderAndAnswers();
  G20_argumentsAreShared();
  G7_callablesAreDeletedOnce();
  G20_handlersEndThemselves();
  G20_exceptionsEndTheEmission();
  G11_threadsEndInsideAnEmission();
  G9_destructorsWait();
  G20_fourThreads();
  return failures == 0 ? 0 : 1;
}

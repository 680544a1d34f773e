// SPDX-License-Identifier: Apache-2.0
//
// Queues, sessions and completions of the C++ layer: what G21 to G28 promise
// of the handles holds of the wrappers, and arguments, contexts and delegates
// are destroyed exactly once, also when nothing is delivered.

#include "callback_registry.hpp"

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

static std::atomic<int> failures{0};

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::fprintf(stderr, "%s:%d: expected %s (last error: %s)\n",       \
                   __FILE__, __LINE__, #condition, cbr_last_error());     \
      ++failures;                                                         \
    }                                                                     \
  } while (0)

static_assert(!std::is_copy_constructible_v<cbr::queue>);
static_assert(!std::is_copy_constructible_v<cbr::session>);
static_assert(!std::is_copy_constructible_v<cbr::completion>);
static_assert(std::is_nothrow_move_assignable_v<cbr::queue>);
static_assert(std::is_nothrow_move_assignable_v<cbr::session>);
static_assert(std::is_nothrow_move_assignable_v<cbr::completion>);

// Knows how many of it there are.
struct counted {
  static inline std::atomic<int> alive{0};
  int number;

  explicit counted(int its_number) : number(its_number) { ++alive; }
  counted(const counted &other) : number(other.number) { ++alive; }
  counted(counted &&other) noexcept : number(other.number) { ++alive; }
  ~counted() { --alive; }
};

static cbr::registry open_registry() {
  cbr::registry registry;
  EXPECT(registry.open() == CBR_OK);
  return registry;
}

static cbr::queue add_queue(cbr_registry registry, std::uint32_t kind) {
  cbr::queue queue;
  EXPECT(queue.create(registry, "queue", kind) == CBR_OK);
  return queue;
}

static void G21_argumentsAreKeptByValue() {
  cbr::registry registry = open_registry();
  std::vector<std::string> heard;
  cbr::registration token;
  EXPECT((token.bind<void(const std::string &, std::unique_ptr<int>)>(
             registry, "heard",
             [&](const std::string &text, std::unique_ptr<int> number) {
               heard.push_back(text + std::to_string(*number));
             })) == CBR_OK);
  cbr::queue queue = add_queue(registry, CBR_QUEUE_PUMPED);
  EXPECT(queue.descriptor() >= 0);
  for (int each = 0; each < 3; ++each) {
    std::string text(40, static_cast<char>('a' + each));
    EXPECT((queue.post<void(const std::string &, std::unique_ptr<int>)>(
               token, text, std::make_unique<int>(each))) == CBR_OK);
  }
  EXPECT(heard.empty());
  std::size_t ran = 0;
  EXPECT(queue.run(2, &ran) == CBR_OK && ran == 2);
  EXPECT(queue.run(0, &ran) == CBR_OK && ran == 1);
  EXPECT(heard.size() == 3);
  for (int each = 0; each < 3; ++each)
    EXPECT(heard[static_cast<std::size_t>(each)] ==
           std::string(40, static_cast<char>('a' + each)) +
               std::to_string(each));
}

static void G10_anotherSignatureIsRefused() {
  cbr::registry registry = open_registry();
  cbr::registration token;
  EXPECT(token.bind<void(int)>(registry, "int", [](int) {}) == CBR_OK);
  cbr::queue queue = add_queue(registry, CBR_QUEUE_PUMPED);
  EXPECT((queue.post<void(counted)>(token, counted(1))) == CBR_E_INTERFACE);
  EXPECT(counted::alive == 0);
}

static void G21_argumentsAreDestroyedOnce() {
  cbr::registry registry = open_registry();
  cbr::registration token;
  int sum = 0;
  auto bind = [&] {
    EXPECT(token.bind<void(const counted &)>(
               registry, "counted",
               [&](const counted &it) { sum += it.number; }) == CBR_OK);
  };
  bind();
  cbr::queue queue;
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  options.overflow = CBR_QUEUE_DROP_OLDEST;
  options.max_items = 2;
  EXPECT(queue.create(registry, options) == CBR_OK);
  auto post = [&](int number) {
    return queue.post<void(const counted &)>(token, counted(number));
  };
  for (int each = 1; each <= 4; ++each) EXPECT(post(each) == CBR_OK);
  EXPECT(counted::alive == 2);  // two were dropped for later ones
  EXPECT(queue.run() == CBR_OK);
  EXPECT(sum == 7 && counted::alive == 0);
  EXPECT(post(5) == CBR_OK);
  EXPECT(token.end() == CBR_OK);
  EXPECT(post(6) == CBR_E_STALE);
  EXPECT(queue.run() == CBR_OK);
  EXPECT(sum == 7 && counted::alive == 0);
  bind();
  EXPECT(post(7) == CBR_OK && counted::alive == 1);
  EXPECT(queue.end() == CBR_OK);
  EXPECT(sum == 7 && counted::alive == 0);
  EXPECT(post(8) == CBR_E_STALE && counted::alive == 0);
}

static void G22_whatDoesNotFitStaysTheCallers() {
  cbr::registry registry = open_registry();
  cbr::registration token;
  EXPECT(token.bind<void(counted)>(registry, "counted", [](counted) {}) ==
         CBR_OK);
  cbr::queue queue;
  cbr_queue_options options = CBR_QUEUE_OPTIONS_INIT;
  options.max_bytes = 3 * sizeof(counted);
  EXPECT(queue.create(registry, options) == CBR_OK);
  for (int each = 0; each < 3; ++each)
    EXPECT((queue.post<void(counted)>(token, counted(each))) == CBR_OK);
  EXPECT((queue.post<void(counted)>(token, counted(3))) == CBR_E_FULL);
  EXPECT(counted::alive == 3);
  cbr_queue_counts counts;
  EXPECT(queue.statistics(counts) == CBR_OK);
  EXPECT(counts.waiting == 3 && counts.waiting_bytes == 3 * sizeof(counted));
  EXPECT(queue.finish() == CBR_PENDING);
  EXPECT((queue.post<void(counted)>(token, counted(4))) == CBR_E_CLOSED);
  EXPECT(queue.run() == CBR_OK);
  EXPECT(counted::alive == 0 && !cbr_is_live(queue));
}

static void G21_aThreadDelivers() {
  cbr::registry registry = open_registry();
  std::atomic<int> sum{0};
  std::thread::id runner;
  cbr::registration token;
  EXPECT(token.bind<void(int)>(registry, "sum", [&](int number) {
           runner = std::this_thread::get_id();
           sum += number;
         }) == CBR_OK);
  cbr::queue queue = add_queue(registry, CBR_QUEUE_THREAD);
  EXPECT(queue.descriptor() == -1);
  cbr::queue moved = std::move(queue);
  for (int each = 1; each <= 10; ++each)
    EXPECT(moved.post<void(int)>(token, each) == CBR_OK);
  while (sum < 55) std::this_thread::yield();
  EXPECT(moved.end() == CBR_OK);
  EXPECT(runner != std::this_thread::get_id());
}

// What a delegate was told, which may outlive it.
struct told {
  std::string events;
  int deleted = 0;
};

class listener : public cbr::session_delegate {
 public:
  explicit listener(told &its_told) : told_(its_told) {}
  ~listener() override { ++told_.deleted; }

  void did_receive_data(cbr_task, std::string_view data) override {
    told_.events += "data ";
    told_.events += data;
    told_.events += ";";
  }
  void did_complete(cbr_task task, int error) override {
    told_.events += "complete " + std::to_string(error) + ";";
    if (const counted *context = cbr::task_context<counted>(task))
      told_.events += "of " + std::to_string(context->number) + ";";
  }
  void did_become_invalid(cbr_session, cbr_reason reason) override {
    told_.events += "invalid " + std::to_string(reason) + ";";
  }

 private:
  told &told_;
};

class careful : public listener {
 public:
  using listener::listener;
  cbr_reply reply = CBR_NONE;

  void did_receive_response(cbr_task, std::string_view response,
                            cbr_reply its_reply) override {
    reply = its_reply;
    EXPECT(response == "200");
  }
};

static void G24_aDelegateIsToldInOrder() {
  cbr::registry registry = open_registry();
  told told;
  {
    cbr::delegate delegate;
    EXPECT(delegate.bind(registry, "listener", nullptr) ==
           CBR_E_INVALID);
    EXPECT(delegate.bind(registry, "listener",
                                  std::make_unique<listener>(told)) == CBR_OK);
    cbr::session session;
    EXPECT(session.create(registry, "downloads", delegate) == CBR_OK);
    cbr_task task = CBR_NONE;
    EXPECT(session.begin("page", task, std::make_unique<counted>(7)) ==
           CBR_OK);
    EXPECT(cbr_task_respond(task, "200", 3) == CBR_OK);
    EXPECT(cbr_task_data(task, "abc", 3) == CBR_OK);
    EXPECT(cbr_task_complete(task, 5) == CBR_OK);
    EXPECT(told.events == "data abc;complete 5;of 7;");
    EXPECT(counted::alive == 0);
    EXPECT(session.finish() == CBR_OK);
    EXPECT(session.begin("late", task, std::make_unique<counted>(8)) ==
           CBR_E_CLOSED);
    EXPECT(counted::alive == 0);
    EXPECT(told.deleted == 0);
  }
  EXPECT(told.events == "data abc;complete 5;of 7;invalid " +
                            std::to_string(CBR_REASON_ENDED) + ";");
  EXPECT(told.deleted == 1);
}

static void G26_dataWaitsForTheReply() {
  cbr::registry registry = open_registry();
  told told;
  cbr::delegate delegate;
  auto object = std::make_unique<careful>(told);
  careful &it = *object;
  EXPECT(delegate.bind(registry, "careful", std::move(object)) ==
         CBR_OK);
  cbr::session session;
  EXPECT(session.create(registry, "downloads", delegate) == CBR_OK);
  cbr_task task = CBR_NONE;
  EXPECT(session.begin("page", task) == CBR_OK);
  EXPECT(cbr_task_respond(task, "200", 3) == CBR_OK);
  EXPECT(cbr_task_data(task, "abc", 3) == CBR_OK);
  EXPECT(told.events.empty());
  EXPECT(cbr_reply_send(it.reply, CBR_ALLOW, CBR_NONE) == CBR_OK);
  EXPECT(told.events == "data abc;");
  EXPECT(session.cancel() == CBR_OK);
  EXPECT(session.cancel() == CBR_ALREADY);
}

// The thread that runs the queue is the one that ends all: nothing hangs, and
// the delegate hears of the end when the queue is run.
static void G24_aQueuedSessionEndsWithItsWrapper() {
  cbr::registry registry = open_registry();
  told told;
  cbr::queue queue = add_queue(registry, CBR_QUEUE_PUMPED);
  cbr::delegate delegate;
  EXPECT(delegate.bind(registry, "listener",
                                std::make_unique<listener>(told)) == CBR_OK);
  cbr_task task = CBR_NONE;
  {
    cbr::session session;
    EXPECT(session.create(registry, "downloads", delegate, queue) == CBR_OK);
    EXPECT(session.begin("page", task) == CBR_OK);
    EXPECT(cbr_task_data(task, "abc", 3) == CBR_OK);
  }
  EXPECT(told.events.empty() && told.deleted == 0);
  EXPECT(queue.run() == CBR_OK);
  EXPECT(told.events == "complete " + std::to_string(CBR_TASK_CANCELLED) +
                            ";invalid " +
                            std::to_string(CBR_REASON_CANCELLED) + ";");
  EXPECT(told.deleted == 0);
  EXPECT(delegate.end() == CBR_OK && told.deleted == 1);
}

// Here the delegate goes while its session has yet to tell it something.
static void G23_aDelegateMayGoFirst() {
  cbr::registry registry = open_registry();
  told told;
  cbr::queue queue = add_queue(registry, CBR_QUEUE_PUMPED);
  cbr::session session;
  {
    cbr::delegate delegate;
    EXPECT(delegate.bind(registry, "listener",
                                  std::make_unique<listener>(told)) ==
           CBR_OK);
    EXPECT(session.create(registry, "downloads", delegate, queue) == CBR_OK);
    cbr_task task = CBR_NONE;
    EXPECT(session.begin("page", task) == CBR_OK);
    EXPECT(cbr_task_data(task, "abc", 3) == CBR_OK);
    EXPECT(delegate.end() == CBR_PENDING);
  }
  EXPECT(told.deleted == 0);
  EXPECT(queue.run() == CBR_OK);
  EXPECT(told.events.empty() && told.deleted == 1);
  EXPECT(session.cancel() == CBR_ALREADY);
}

static void G27_aCompletionIsCalledOnce() {
  cbr::registry registry = open_registry();
  std::vector<int> errors;
  int value = 42;
  auto note = [&, guard = counted(0)](int error, void *it) {
    errors.push_back(error);
    EXPECT(it == (error == 3 ? &value : nullptr));
  };
  {
    cbr::completion sent, forgotten, replaced;
    EXPECT(sent.create(registry, "sent", -1, note) == CBR_OK);
    EXPECT(forgotten.create(registry, "forgotten", -2, note) == CBR_OK);
    EXPECT(replaced.create(registry, "replaced", -3, note) == CBR_OK);
    EXPECT(sent.send(3, &value) == CBR_OK);
    EXPECT(sent.send(4) == CBR_E_CONSUMED);
    EXPECT(replaced.create(registry, "replacing", -4, note) == CBR_OK);
    EXPECT((errors == std::vector<int>{3, -3}));
    EXPECT(replaced.end() == CBR_OK);
    EXPECT((errors == std::vector<int>{3, -3, -4}));
  }
  EXPECT((errors == std::vector<int>{3, -3, -4, -2}));
  EXPECT(counted::alive == 1);  // that of note itself
}

// A millisecond is waited for: how long it takes is not looked at.
static void G27_whatComesTooLateIsAnsweredByTheQueue() {
  cbr::registry registry = open_registry();
  told told;
  std::vector<int> errors;
  cbr::queue queue = add_queue(registry, CBR_QUEUE_PUMPED);
  cbr::completion completion;
  EXPECT(completion.create(registry, "late", -1, [&](int error, void *) {
           errors.push_back(error);
         }) == CBR_OK);
  EXPECT(completion.set_timeout(queue, 1000000) == CBR_OK);
  cbr::delegate delegate;
  EXPECT(delegate.bind(registry, "listener",
                       std::make_unique<listener>(told)) == CBR_OK);
  cbr::session session;
  EXPECT(session.create(registry, "downloads", delegate, queue) == CBR_OK);
  cbr_task_options options = CBR_TASK_OPTIONS_INIT;
  options.timeout_ns = 1000000;
  cbr_task task = CBR_NONE;
  EXPECT(session.begin(options, task) == CBR_OK);
  while (errors.empty() || told.events.empty()) {
    pollfd readable = {queue.descriptor(), POLLIN, 0};
    EXPECT(poll(&readable, 1, -1) == 1);
    EXPECT(queue.run() == CBR_OK);
  }
  EXPECT((errors == std::vector<int>{-1}));
  EXPECT(told.events ==
         "complete " + std::to_string(CBR_TASK_TIMED_OUT) + ";");
}

// What a wrapper held is called when it is given another: it may give it one
// itself, which is not lost.
static void G27_aCompletionIsReplacedFromInside() {
  cbr::registry registry = open_registry();
  std::vector<int> errors;
  cbr::completion held;
  auto note = [&](int error, void *) { errors.push_back(error); };
  EXPECT(held.create(registry, "first", -1, [&](int error, void *) {
    errors.push_back(error);
    EXPECT(held.create(registry, "second", -2, note) == CBR_OK);
  }) == CBR_OK);
  held = cbr::completion();
  EXPECT(cbr_is_live(held));
  EXPECT((errors == std::vector<int>{-1}));
  held = cbr::completion();
  EXPECT((errors == std::vector<int>{-1, -2}));
}

int main() {
  static const struct {
    const char *name;
    void (*run)();
  } tests[] = {
#define TEST(name) {#name, name}
      TEST(G21_argumentsAreKeptByValue),
      TEST(G10_anotherSignatureIsRefused),
      TEST(G21_argumentsAreDestroyedOnce),
      TEST(G22_whatDoesNotFitStaysTheCallers),
      TEST(G21_aThreadDelivers),
      TEST(G24_aDelegateIsToldInOrder),
      TEST(G26_dataWaitsForTheReply),
      TEST(G24_aQueuedSessionEndsWithItsWrapper),
      TEST(G23_aDelegateMayGoFirst),
      TEST(G27_aCompletionIsCalledOnce),
      TEST(G27_whatComesTooLateIsAnsweredByTheQueue),
      TEST(G27_aCompletionIsReplacedFromInside),
#undef TEST
  };
  int failed = 0;
  for (const auto &test : tests) {
    const int before = failures;
    test.run();
    if (failures == before) continue;
    std::fprintf(stderr, "FAILED %s\n", test.name);
    ++failed;
  }
  const int count = static_cast<int>(std::size(tests));
  std::printf("%d passed, %d failed\n", count - failed, failed);
  return failed > 0;
}

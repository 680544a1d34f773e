// SPDX-License-Identifier: Apache-2.0
//
// The rows of the matrix: one story each, told to every library alike. What is
// expected follows from the rules of cbr_emit (G20).
#include "rows.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "emitter.h"

namespace {

using connections = std::vector<std::unique_ptr<connection>>;

std::string heard;

handler say(char letter) {
  return [letter] { heard += letter; };
}

std::string expect(const std::string &expected) {
  const std::string actual = std::exchange(heard, "");
  if (actual == expected) return "";
  return "called " + (actual.empty() ? "nobody" : actual) + " instead of " +
         (expected.empty() ? "nobody" : expected);
}

// The first of several that did not happen as expected.
std::string first_of(std::initializer_list<std::string> outcomes) {
  for (const std::string &each : outcomes)
    if (!each.empty()) return each;
  return "";
}

std::string removed_before_its_turn() {
  auto signal = make_emitter();
  connections it(3);
  it[0] = signal->connect([&] {
    heard += 'a';
    it[1]->disconnect();
  });
  it[1] = signal->connect(say('b'));
  it[2] = signal->connect(say('c'));
  signal->emit();
  return expect("ac");
}

std::string added_meanwhile() {
  auto signal = make_emitter();
  connections it(3);
  it[0] = signal->connect([&] {
    heard += 'a';
    if (!it[2]) it[2] = signal->connect(say('n'));
  });
  it[1] = signal->connect(say('b'));
  signal->emit();
  const std::string first = expect("ab");
  signal->emit();
  return first_of({first, expect("abn")});
}

std::string removes_itself() {
  auto signal = make_emitter();
  connections it(2);
  auto state = std::make_shared<int>(0);
  it[0] = signal->connect([&it, captured = state] {
    const std::shared_ptr<int> *its = &captured;
    it[0]->disconnect();
    ++**its;
    heard += 'a';
  });
  it[1] = signal->connect(say('b'));
  signal->emit();
  const std::string first = expect("ab");
  if (state.use_count() != 1) return "its state is not freed";
  signal->emit();
  return first_of(
      {first, expect("b"), *state == 1 ? "" : "its state is lost"});
}

std::string removes_and_frees_another() {
  auto signal = make_emitter();
  connections it(3);
  auto memory = std::make_unique<std::string>("b");
  std::string *used = memory.get();
  it[0] = signal->connect([&] {
    heard += 'a';
    if (!memory) return;
    it[1]->disconnect();
    memory.reset();
  });
  it[1] = signal->connect([used] { heard += *used; });
  it[2] = signal->connect(say('c'));
  signal->emit();
  const std::string first = expect("ac");
  signal->emit();
  return first_of({first, expect("ac")});
}

std::string destroyed_inside() {
  auto signal = make_emitter();
  auto state = std::make_shared<int>(0);
  connections it(3);
  it[0] = signal->connect(say('a'));
  it[1] = signal->connect([&signal, captured = state] {
    signal.reset();
    ++*captured;
    heard += 'b';
  });
  it[2] = signal->connect(say('c'));
  signal->emit();
  return first_of({expect("ab"), state.use_count() == 1
                                     ? ""
                                     : "its state is not freed"});
}

std::string disconnected_after_the_emitter() {
  auto signal = make_emitter();
  connections it(2);
  it[0] = signal->connect(say('a'));
  it[1] = signal->connect(say('b'));
  signal.reset();
  if (it[0]->disconnect() == answer::done) return "says that it was live";
  auto other = make_emitter();
  auto newer = other->connect(say('n'));
  it[1]->disconnect();
  other->emit();
  return expect("n");
}

std::string nested() {
  auto signal = make_emitter();
  connections it(2);
  int depth = 0;
  it[0] = signal->connect([&] {
    heard += 'a';
    if (++depth < 3) signal->emit();
  });
  it[1] = signal->connect(say('b'));
  signal->emit();
  return expect("aaabbb");
}

std::string nested_without_end() {
  auto signal = make_emitter();
  auto it = signal->connect([&] {
    if (heard.size() < 1000000) heard += 'a';
    signal->emit();
  });
  signal->emit();
  const bool is_bounded = std::exchange(heard, "").size() < 1000000;
  return is_bounded ? "" : "there is no end";
}

std::string one_shot_nested() {
  auto signal = make_emitter();
  connections it(2);
  it[0] = signal->connect_once([&] {
    heard += 'a';
    signal->emit();
  });
  it[1] = signal->connect(say('b'));
  signal->emit();
  const std::string first = expect("abb");
  signal->emit();
  return first_of({first, expect("b")});
}

std::string exception() {
  auto signal = make_emitter();
  connections it(3);
  auto state = std::make_shared<int>(0);
  bool is_throwing = true, has_arrived = false;
  it[0] = signal->connect(say('a'));
  it[1] = signal->connect([&is_throwing, captured = state] {
    if (is_throwing) throw std::runtime_error("b");
    heard += 'b';
  });
  it[2] = signal->connect(say('c'));
  try {
    signal->emit();
  } catch (const std::runtime_error &) {
    has_arrived = true;
  }
  if (!has_arrived) return "it does not arrive";
  const std::string first = expect("a");
  is_throwing = false;
  signal->emit();
  const std::string second = expect("abc");
  it[1]->disconnect();
  if (state.use_count() != 1) return "the handler's state is never freed";
  signal->emit();
  return first_of({first, second, expect("ac")});
}

// A handler that connects another one while it is being copied.
struct connects_when_copied {
  emitter *signal;
  connections *made;

  connects_when_copied(emitter *its, connections *all)
      : signal(its), made(all) {}
  connects_when_copied(const connects_when_copied &other)
      : signal(other.signal), made(other.made) {
    if (made->empty()) {
      made->emplace_back();
      made->back() = signal->connect(say('n'));
    }
  }
  void operator()() const { heard += 'a'; }
};

std::string connected_while_connecting() {
  auto signal = make_emitter(), other = make_emitter();
  connections made, it(3);
  it[0] = other->connect([&] {
    it[1] = signal->connect(connects_when_copied(signal.get(), &made));
    signal->emit();
    heard += 'o';
  });
  other->emit();
  return expect("nao");
}

std::string priorities() {
  auto signal = make_emitter();
  connections it;
  const int of[] = {0, 5, -5, 0, 5, 0};
  for (int each = 0; each < 6; ++each)
    it.push_back(signal->connect_at(of[each], say("abcdef"[each])));
  signal->emit();
  return expect("beadfc");
}

std::string order_under_churn() {
  auto signal = make_emitter();
  connections it;
  std::vector<std::size_t> order;
  std::string called, expected;
  unsigned random = 1;
  for (std::size_t each = 0; each < 200; ++each) {
    const std::string name = std::to_string(each) + " ";
    it.push_back(signal->connect([&called, name] { called += name; }));
    order.push_back(each);
    random = random * 1103515245u + 12345u;
    if (random >> 30 == 0) {
      const std::size_t out = (random >> 8) % order.size();
      it[order[out]]->disconnect();
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(out));
    }
  }
  for (std::size_t each : order) expected += std::to_string(each) + " ";
  signal->emit();
  return called == expected ? "" : "another order";
}

std::string blocking_is_counted() {
  auto signal = make_emitter();
  connections it(2);
  it[0] = signal->connect(say('a'));
  it[1] = signal->connect(say('b'));
  it[0]->block();
  it[0]->block();
  signal->emit();
  const std::string twice = expect("b");
  it[0]->unblock();
  signal->emit();
  const std::string once = expect("b");
  it[0]->unblock();
  signal->emit();
  return first_of({twice, once, expect("ab")});
}

// The handler stops at its first instruction: its library has found it
// connected, and it has not touched its memory. There it stays until the other
// thread has freed that, or, where disconnecting waits, for a while.
std::string freed_by_another_thread() {
  auto signal = make_emitter();
  std::atomic<bool> is_inside{false}, is_freed{false};
  auto memory = std::make_unique<std::string>("memory of the handler");
  auto it = signal->connect([&, used = memory.get()] {
    is_inside = true;
    for (int each = 0; each < 100 && !is_freed; ++each)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    heard += used->front();
  });
  std::thread ender([&] {
    while (!is_inside) std::this_thread::yield();
    it->disconnect();
    memory.reset();
    is_freed = true;
  });
  signal->emit();
  ender.join();
  signal->emit();
  return expect("m");
}

std::string late_disconnection() {
  auto signal = make_emitter();
  auto it = signal->connect(say('a'));
  if (it->disconnect() == answer::was_gone) return "says that it was gone";
  return it->disconnect() == answer::was_gone ? "" : "nothing is said";
}

std::string left_at_teardown() {
  auto signal = make_emitter();
  auto it = signal->connect(say('a'));
  const std::string said = tear_down();
  return said.find("handler") != std::string::npos ? "" : "nothing is said";
}

}  // namespace

const std::vector<row> rows = {
    {"removed before its turn",
     "it is not called: its turn comes when it is connected no longer",
     removed_before_its_turn},
    {"added during an emission",
     "it is called from the next one on: it was not connected when this began",
     added_meanwhile},
    {"removes itself",
     "its state stays until it has returned, then is freed: it is in flight",
     removes_itself},
    {"removes another one and frees its memory",
     "that is not called any more, so nothing touches the memory",
     removes_and_frees_another},
    {"destroys the emitter",
     "the emission ends with it: none of its handlers is connected any more",
     destroyed_inside},
    {"disconnected after the emitter is gone",
     "it is said to be gone, and nothing newer is touched: a handle is "
     "compared",
     disconnected_after_the_emitter},
    {"emits again",
     "each emission calls all that are connected, the inner one first",
     nested},
    {"emits again without end",
     "it is refused at a depth, before the stack is used up",
     nested_without_end},
    {"one-shot that emits again",
     "it is called once: it ends before its call begins",
     one_shot_nested},
    {"throws an exception",
     "it arrives where it was emitted, the emission ends, later ones work and "
     "nothing is leaked: each call is left",
     exception},
    {"connected while connecting",
     "both are connected: the library holds no lock in the program's code",
     connected_while_connecting},
    {"priorities",
     "higher ones are called first, equal ones in order of connection",
     priorities},
    {"order while others come and go",
     "order of connection",
     order_under_churn},
    {"blocked twice, unblocked once",
     "it is still blocked: blocking is counted",
     blocking_is_counted},
    {"another thread disconnects it between check and call, and frees its "
     "memory",
     "disconnecting waits until the call is over, then it is called no more",
     freed_by_another_thread},
    {"disconnected twice",
     "the second time says that it was gone",
     late_disconnection},
    {"handlers left at the end",
     "they are named when the library is done with",
     left_at_teardown},
};

// SPDX-License-Identifier: Apache-2.0
//
// std::weak_ptr: lock it, and call the std::function that it guards.
#include <cstdlib>
#include <functional>
#include <memory>

#include "../harness.h"

namespace {

struct Listener {
  std::function<void(void *)> function = bench_work;
  void *context = &bench_context;
};

// The middle one keeps the other two on cache lines of their own.
std::shared_ptr<Listener> alive[3];
std::weak_ptr<Listener> known[3];

void call(std::weak_ptr<Listener> &weak, uint64_t count) {
  while (count--) {
    auto listener = weak.lock();
    if (!listener) std::abort();
    listener->function(listener->context);
  }
}

void run_one(uint64_t count, unsigned) { call(known[0], count); }
void run_two(uint64_t count, unsigned thread) {
  call(known[2 * thread], count);
}

void run_lifetime(uint64_t count, unsigned) {
  while (count--) {
    auto listener = std::make_shared<Listener>();
    known[1] = listener;
  }
}

}  // namespace

void peer_calls() {
  for (int i = 0; i < 3; i++)
    known[i] = alive[i] = std::make_shared<Listener>();
  bench_add("std::weak_ptr lock + std::function", run_one);
}

void peer_threads() {
  bench_add_threads("std::weak_ptr, one object", run_one);
  bench_add_threads("std::weak_ptr, two objects", run_two);
}

void peer_lifetimes() {
  bench_add("std::make_shared + weak_ptr, and release", run_lifetime);
}

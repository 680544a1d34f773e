// SPDX-License-Identifier: Apache-2.0
//
// What one writes first: a mutex, and a hash map from number to function. It
// is called under the lock, as nothing else would keep it alive.
#include <cstdlib>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "../harness.h"

namespace {

std::mutex mutex;
std::unordered_map<uint64_t, std::function<void()>> callbacks;
uint64_t next = 0;

uint64_t insert() {
  void *context = &bench_context;
  std::lock_guard<std::mutex> guard(mutex);
  callbacks.emplace(next, [context] { bench_work(context); });
  return next++;
}

void remove(uint64_t number) {
  std::lock_guard<std::mutex> guard(mutex);
  callbacks.erase(number);
}

void call(uint64_t number, uint64_t count) {
  while (count--) {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = callbacks.find(number);
    if (found == callbacks.end()) std::abort();
    found->second();
  }
}

void run_one(uint64_t count, unsigned) { call(500, count); }
void run_two(uint64_t count, unsigned thread) { call(500 + thread, count); }

void run_lifetime(uint64_t count, unsigned) {
  while (count--) remove(insert());
}

}  // namespace

void peer_calls() {
  while (next < 1000) insert();
  bench_add("mutex + hash map of std::function", run_one);
}

void peer_threads() {
  bench_add_threads("mutex + hash map, one callback", run_one);
  bench_add_threads("mutex + hash map, two callbacks", run_two);
}

void peer_lifetimes() {
  bench_add("mutex + hash map, insert + erase", run_lifetime);
}

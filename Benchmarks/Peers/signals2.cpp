// SPDX-License-Identifier: Apache-2.0
//
// boost::signals2 with one slot: plain, and tracking a shared object.
#include <boost/signals2.hpp>
#include <memory>

#include "../harness.h"

namespace {

using Signal = boost::signals2::signal<void(void *)>;

// The middle one keeps the memory of the other two apart.
Signal plain[3], tracked, fresh;
auto object = std::make_shared<int>(0);

Signal::slot_type tracking() {
  return Signal::slot_type(bench_work).track_foreign(object);
}

void run_plain(uint64_t count, unsigned) {
  while (count--) plain[0](&bench_context);
}

void run_two(uint64_t count, unsigned thread) {
  while (count--) plain[2 * thread](&bench_context);
}

void run_tracked(uint64_t count, unsigned) {
  while (count--) tracked(&bench_context);
}

void run_connect(uint64_t count, unsigned) {
  while (count--) fresh.connect(bench_work).disconnect();
}

void run_connect_tracked(uint64_t count, unsigned) {
  while (count--) fresh.connect(tracking()).disconnect();
}

}  // namespace

void peer_calls() {
  for (auto &signal : plain) signal.connect(bench_work);
  tracked.connect(tracking());
  bench_add("boost::signals2", run_plain);
  bench_add("boost::signals2, tracked", run_tracked);
}

void peer_threads() {
  bench_add_threads("boost::signals2, one signal", run_plain);
  bench_add_threads("boost::signals2, two signals", run_two);
}

void peer_lifetimes() {
  bench_add("boost::signals2 connect + disconnect", run_connect);
  bench_add("boost::signals2 tracked connect + disconnect",
            run_connect_tracked);
}

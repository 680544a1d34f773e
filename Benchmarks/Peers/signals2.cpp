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

// Emissions to more than one.
Signal many[4], lively;

template <int index>
void run_many(uint64_t count, unsigned) {
  while (count--) many[index](&bench_context);
}

void run_lively(uint64_t count, unsigned) {
  while (count--) lively(&bench_context);
}

void churn(uint64_t count, unsigned) {
  while (count--) lively.connect(bench_work).disconnect();
}

}  // namespace

void peer_emissions() {
  const int handlers[] = {0, 1, 10, 1000};
  for (int each = 0; each < 4; each++)
    for (int one = 0; one < handlers[each]; one++)
      many[each].connect(bench_work);
  for (int one = 0; one < 10; one++) lively.connect(bench_work);
  bench_add("boost::signals2, emit to 0", run_many<0>);
  bench_add("boost::signals2, emit to 1", run_many<1>);
  bench_add("boost::signals2, emit to 10", run_many<2>);
  bench_add("boost::signals2, emit to 1 000", run_many<3>);
  bench_case beside{};
  beside.name = "boost::signals2, emit to 10, with churn";
  beside.run = run_lively;
  beside.busy = churn;
  bench_add_case(&beside);
}

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

// SPDX-License-Identifier: Apache-2.0
//
// sigc++: a signal and a trackable receiver. Not safe on two threads.
#include <sigc++/sigc++.h>

#include "../harness.h"

namespace {

struct Receiver : sigc::trackable {
  void receive(void *context) { bench_work(context); }
};

sigc::signal<void, void *> fired, fresh;
Receiver receiver;

void run_emit(uint64_t count, unsigned) {
  while (count--) fired.emit(&bench_context);
}

void run_connect(uint64_t count, unsigned) {
  while (count--) {
    sigc::connection connection =
        fresh.connect(sigc::mem_fun(receiver, &Receiver::receive));
    connection.disconnect();
  }
}

// Emissions to more than one.
sigc::signal<void, void *> many[4];

template <int index>
void run_many(uint64_t count, unsigned) {
  while (count--) many[index].emit(&bench_context);
}

}  // namespace

// Without churn: it is for one thread only.
void peer_emissions() {
  const int handlers[] = {0, 1, 10, 1000};
  for (int each = 0; each < 4; each++)
    for (int one = 0; one < handlers[each]; one++)
      many[each].connect(sigc::mem_fun(receiver, &Receiver::receive));
  bench_add("sigc++, emit to 0", run_many<0>);
  bench_add("sigc++, emit to 1", run_many<1>);
  bench_add("sigc++, emit to 10", run_many<2>);
  bench_add("sigc++, emit to 1 000", run_many<3>);
}

void peer_calls() {
  fired.connect(sigc::mem_fun(receiver, &Receiver::receive));
  bench_add("sigc++ emit, trackable (one thread only)", run_emit);
}

void peer_threads() {}

void peer_lifetimes() {
  bench_add("sigc++ connect + disconnect", run_connect);
}

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

}  // namespace

void peer_calls() {
  fired.connect(sigc::mem_fun(receiver, &Receiver::receive));
  bench_add("sigc++ emit, trackable (one thread only)", run_emit);
}

void peer_threads() {}

void peer_lifetimes() {
  bench_add("sigc++ connect + disconnect", run_connect);
}

// SPDX-License-Identifier: Apache-2.0
//
// Qt: a QPointer that is checked before a bare call, which guards one thread
// only, and a signal with a direct connection.
#include <QObject>
#include <QPointer>

#include "../harness.h"

class Sender : public QObject {
  Q_OBJECT
 signals:
  void fired(void *context);
};

namespace {

Sender *sender, *fresh;
QObject *receiver;
QPointer<QObject> known;

QMetaObject::Connection connect_to(Sender *from) {
  return QObject::connect(from, &Sender::fired, receiver, bench_work,
                          Qt::DirectConnection);
}

void run_pointer(uint64_t count, unsigned) {
  while (count--)
    if (known) bench_function(&bench_context);
}

void run_emit(uint64_t count, unsigned) {
  while (count--) emit sender->fired(&bench_context);
}

void run_connect(uint64_t count, unsigned) {
  while (count--) QObject::disconnect(connect_to(fresh));
}

// Emissions to more than one.
Sender *many[4], *lively;

template <int index>
void run_many(uint64_t count, unsigned) {
  while (count--) emit many[index]->fired(&bench_context);
}

void run_lively(uint64_t count, unsigned) {
  while (count--) emit lively->fired(&bench_context);
}

void churn(uint64_t count, unsigned) {
  while (count--) QObject::disconnect(connect_to(lively));
}

}  // namespace

void peer_emissions() {
  const int handlers[] = {0, 1, 10, 1000};
  for (int each = 0; each < 4; each++) {
    many[each] = new Sender;
    for (int one = 0; one < handlers[each]; one++) connect_to(many[each]);
  }
  lively = new Sender;
  for (int one = 0; one < 10; one++) connect_to(lively);
  bench_add("Qt, emit to 0", run_many<0>);
  bench_add("Qt, emit to 1", run_many<1>);
  bench_add("Qt, emit to 10", run_many<2>);
  bench_add("Qt, emit to 1 000", run_many<3>);
  bench_case beside{};
  beside.name = "Qt, emit to 10, with churn";
  beside.run = run_lively;
  beside.busy = churn;
  bench_add_case(&beside);
}

void peer_calls() {
  sender = new Sender;
  fresh = new Sender;
  receiver = new QObject;
  known = receiver;
  connect_to(sender);
  bench_add("QPointer check + call (one thread only)", run_pointer);
  bench_add("Qt signal, direct, one slot", run_emit);
}

void peer_threads() {}

void peer_lifetimes() {
  bench_add("Qt connect + disconnect", run_connect);
}

#include "qt.moc"

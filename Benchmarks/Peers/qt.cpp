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

}  // namespace

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

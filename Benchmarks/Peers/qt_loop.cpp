// SPDX-License-Identifier: Apache-2.0
//
// Qt: a queued connection to an object of another thread, which has an event
// loop.
#include <QCoreApplication>
#include <QObject>
#include <QThread>

#include "../queue.h"

class Poster : public QObject {
  Q_OBJECT
 signals:
  void posted(void *context);
};

namespace {

Poster *poster;

void run_post(uint64_t count, unsigned) {
  uint64_t before = queue_received();
  for (uint64_t each = 0; each < count; each++) emit poster->posted(nullptr);
  queue_await(before, count);
}

void run_round_trip(uint64_t count, unsigned thread) {
  while (count--) run_post(1, thread);
}

}  // namespace

// What is posted to is never freed: its thread runs until the program ends.
void peer_queue(void) {
  static int count = 1;
  static char name[] = "qt_loop", *words[] = {name, nullptr};
  new QCoreApplication(count, words);
  poster = new Poster;
  auto *thread = new QThread;
  auto *receiver = new QObject;
  receiver->moveToThread(thread);
  QObject::connect(poster, &Poster::posted, receiver,
                   [](void *) { queue_receive(); }, Qt::QueuedConnection);
  thread->start();
  queue_add_sustained("Qt, queued signal and its slot", run_post);
  bench_add("Qt, queued signal, round trip", run_round_trip);
}

#include "qt_loop.moc"

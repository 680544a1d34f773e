// SPDX-License-Identifier: Apache-2.0
//
// Direct connections. Only a whole object can be blocked.
#define QT_NO_KEYWORDS
#include <QObject>

#include "../emitter.h"

class Sender : public QObject {
  Q_OBJECT
 Q_SIGNALS:
  void fired();
};

namespace {

class qt_connection : public connection {
 public:
  explicit qt_connection(QMetaObject::Connection its) : it_(std::move(its)) {}
  answer disconnect() override {
    return QObject::disconnect(it_) ? answer::done : answer::was_gone;
  }

 private:
  QMetaObject::Connection it_;
};

class qt_emitter : public emitter {
 public:
  std::unique_ptr<connection> connect(const handler &call) override {
    return std::make_unique<qt_connection>(
        QObject::connect(&sender_, &Sender::fired, call));
  }
  void emit() override { Q_EMIT sender_.fired(); }

 private:
  Sender sender_;
};

}  // namespace

std::unique_ptr<emitter> make_emitter() {
  return std::make_unique<qt_emitter>();
}

std::string tear_down() { throw not_offered(); }

std::string peer_name() { return std::string("Qt ") + qVersion(); }

#include "qt.moc"

// SPDX-License-Identifier: Apache-2.0
#include <sigc++/sigc++.h>
#include <sigc++config.h>

#include "../emitter.h"

namespace {

class sigc_connection : public connection {
 public:
  explicit sigc_connection(const sigc::connection &its) : it_(its) {}
  answer disconnect() override {
    it_.disconnect();
    return answer::silent;
  }
  void block() override { it_.block(); }
  void unblock() override { it_.unblock(); }

 private:
  sigc::connection it_;
};

class sigc_emitter : public emitter {
 public:
  std::unique_ptr<connection> connect(const handler &call) override {
    return std::make_unique<sigc_connection>(
        signal_.connect(sigc::slot<void>(call)));
  }
  void emit() override { signal_.emit(); }

 private:
  sigc::signal<void> signal_;
};

}  // namespace

std::unique_ptr<emitter> make_emitter() {
  return std::make_unique<sigc_emitter>();
}

std::string tear_down() { throw not_offered(); }

std::string peer_name() {
  return "sigc++ " + std::to_string(SIGCXX_MAJOR_VERSION) + "." +
         std::to_string(SIGCXX_MINOR_VERSION) + "." +
         std::to_string(SIGCXX_MICRO_VERSION);
}

// SPDX-License-Identifier: Apache-2.0
#include <callback_registry.hpp>

#include "../emitter.h"

namespace {

cbr::registry &registry() {
  static cbr::registry it = [] {
    cbr::registry opened;
    cbr::check(opened.open());
    return opened;
  }();
  return it;
}

class our_connection : public connection {
 public:
  explicit our_connection(cbr::connection its) : it_(std::move(its)) {
    cbr::check(it_.status());
  }
  answer disconnect() override {
    const cbr_status status =
        cbr_invalidate_wait(it_, CBR_REASON_ENDED, CBR_FOREVER);
    return status == CBR_ALREADY ? answer::was_gone : answer::done;
  }
  void block() override { cbr::check(cbr_block(it_)); }
  void unblock() override { cbr::check(cbr_unblock(it_)); }

 private:
  cbr::connection it_;
};

class our_emitter : public emitter {
 public:
  our_emitter() { cbr::check(signal_.create(registry(), "signal")); }
  std::unique_ptr<connection> connect(const handler &call) override {
    return connect_at(0, call);
  }
  std::unique_ptr<connection> connect_at(int priority,
                                         const handler &call) override {
    return std::make_unique<our_connection>(
        signal_.connect("handler", call, priority));
  }
  std::unique_ptr<connection> connect_once(const handler &call) override {
    return std::make_unique<our_connection>(
        signal_.connect({"handler", CBR_NONE, CBR_ONE_SHOT}, call));
  }
  void emit() override { signal_.emit(); }

 private:
  cbr::signal<> signal_;
};

}  // namespace

std::unique_ptr<emitter> make_emitter() {
  return std::make_unique<our_emitter>();
}

std::string tear_down() {
  (void)registry().close();
  return cbr_last_error();
}

std::string peer_name() {
  return std::string("CallbackRegistry ") + cbr_version();
}

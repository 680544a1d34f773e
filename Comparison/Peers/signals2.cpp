// SPDX-License-Identifier: Apache-2.0
#include <boost/signals2.hpp>
#include <boost/version.hpp>
#include <vector>

#include "../emitter.h"

namespace signals2 = boost::signals2;

namespace {

class boost_connection : public connection {
 public:
  explicit boost_connection(signals2::connection its) : it_(std::move(its)) {}
  answer disconnect() override {
    it_.disconnect();
    return answer::silent;
  }
  void block() override { blocks_.emplace_back(it_); }
  void unblock() override { blocks_.pop_back(); }

 private:
  signals2::connection it_;
  std::vector<signals2::shared_connection_block> blocks_;
};

class boost_emitter : public emitter {
 public:
  std::unique_ptr<connection> connect(const handler &call) override {
    return std::make_unique<boost_connection>(signal_.connect(call));
  }
  std::unique_ptr<connection> connect_at(int priority,
                                         const handler &call) override {
    return std::make_unique<boost_connection>(
        signal_.connect(-priority, call));
  }
  void emit() override { signal_(); }

 private:
  signals2::signal<void()> signal_;
};

}  // namespace

std::unique_ptr<emitter> make_emitter() {
  return std::make_unique<boost_emitter>();
}

std::string tear_down() { throw not_offered(); }

std::string peer_name() {
  return "boost::signals2 " + std::to_string(BOOST_VERSION / 100000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000);
}

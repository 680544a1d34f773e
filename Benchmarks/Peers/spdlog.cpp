// SPDX-License-Identifier: Apache-2.0
//
// spdlog: an asynchronous logger that writes a file. It makes the text of a
// message where it is called, and stamps the wall clock's time.
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <thread>

#include "events.h"

namespace {

constexpr std::size_t queue_size = 65536;
std::shared_ptr<spdlog::logger> logger;

void run_log(std::uint64_t count, unsigned thread) {
  while (count--) logger->info("call of {:#018x} took {} ns", thread, count);
}

// As long as the writer of ours has to catch up.
void wait() {
  while (spdlog::thread_pool()->queue_size() > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace

void peer_events(const char *folder) {
  spdlog::init_thread_pool(queue_size, 1);
  logger = spdlog::basic_logger_mt<spdlog::async_factory>(
      "peer", std::string(folder) + "/spdlog.txt");
  spread_case what = {};
  what.group = "peer events";
  what.name = "spdlog, asynchronous, two numbers";
  what.run = run_log;
  what.after = wait;
  spread_measure(&what);
  std::size_t lost = spdlog::thread_pool()->overrun_counter();
  if (lost > 0) bench_note("peer events", "spdlog lost %zu events.", lost);
  logger.reset();
  spdlog::shutdown();
}

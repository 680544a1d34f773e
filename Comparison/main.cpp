// SPDX-License-Identifier: Apache-2.0
//
// Runs each row in a process of its own, with checks of memory, and prints
// what came of it, a line each:
//
//   row <tab> title <tab> expected <tab> verdict <tab> what happened
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emitter.h"
#include "rows.h"

// Of the address sanitizer.
extern "C" void __asan_on_error();
extern "C" const char *__asan_get_report_description();
extern "C" const char *__asan_default_options();

namespace {

constexpr unsigned seconds_per_row = 10;
int told = -1;

void tell(const std::string &text) {
  if (write(told, text.data(), text.size()) < 0) abort();
}

[[noreturn]] void run_here(const row &row) {
  alarm(seconds_per_row);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // What sanitizers and peers print is no part of the table.
  if (!getenv("MATRIX_VERBOSE"))
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
  try {
    const std::string happened = row.run();
    tell(happened.empty() ? "pass\t" : "fail\t" + happened);
  } catch (const not_offered &) {
    tell("none\tnot offered");
  } catch (...) {
    tell("fail\tan exception escapes");
  }
  _exit(0);
}

std::string run(const row &row) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    told = ends[1];
    run_here(row);
  }
  close(ends[1]);
  std::string text;
  char bytes[512];
  for (ssize_t count; (count = read(ends[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "fail\thangs";
  if (!text.empty()) return text;
  return std::string("fail\tcrashes: ") +
         (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exits");
}

}  // namespace

extern "C" void __asan_on_error() {
  tell(std::string("fail\tcrashes: ") + __asan_get_report_description());
}

// What is freed is filled, so that code which is not checked trips over it,
// too. Every cell has its own process: leaks are counted by the rows.
extern "C" const char *__asan_default_options() {
  return "detect_leaks=0:max_free_fill_size=4096:free_fill_byte=238:"
         "abort_on_error=0:use_sigaltstack=1";
}

int main() {
  std::printf("peer\t%s\n", peer_name().c_str());
  for (const row &row : rows)
    std::printf("row\t%s\t%s\t%s\n", row.title, row.expected,
                run(row).c_str());
}

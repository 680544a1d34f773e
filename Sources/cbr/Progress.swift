// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A line on a terminal that says how far long work has come.
///
/// It appears when the work has taken a second, or as many milliseconds as
/// CBR_PROGRESS_MILLISECONDS says, and is gone when the work is done.
struct Progress {
  private static var pause: Int { 250 }

  private var due: Int
  private var isShown = false

  init() {
    let setting = getenv("CBR_PROGRESS_MILLISECONDS").map {
      String(cString: $0)
    }
    due = Self.now + (setting.flatMap { Int($0) } ?? 1_000)
  }

  /// Whether anybody can see it.
  static var isPossible: Bool { isatty(STDERR_FILENO) == 1 }

  mutating func show(_ sentence: () -> String) {
    guard Self.isPossible, Self.now >= due else { return }
    due = Self.now + Self.pause
    isShown = true
    complain("\r\u{1B}[K\(sentence())")
  }

  mutating func end() {
    if isShown { complain("\r\u{1B}[K") }
    isShown = false
  }

  /// Milliseconds of a clock that only goes on.
  private static var now: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
  }
}

/// Writes to standard error, at once.
func complain(_ text: String) {
  _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
}

// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Signals that ask for an end.
enum Interruption {
  private static let flag = Atomic<Bool>(false)

  static var hasCome: Bool { flag.load(ordering: .relaxed) }

  /// From now on `hasCome` tells of them, instead of the process ending.
  static func expect() {
    _ = hasCome
    for number in [SIGINT, SIGTERM, SIGHUP] {
      signal(number) { _ in Interruption.flag.store(true, ordering: .relaxed) }
    }
  }

  /// From now on they, and a reader that has gone away, end the process, and
  /// all is well.
  static func isTheEnd() {
    for number in [SIGINT, SIGPIPE] { signal(number) { _ in _exit(0) } }
  }
}

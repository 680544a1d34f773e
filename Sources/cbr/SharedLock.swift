// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A reader's lock on a database, as SQLite's own readers have it.
///
/// While it is held nobody removes the log: so what was seen of the log still
/// holds when the database is opened. It belongs to an open file description:
/// unlike SQLite's it is not lost when another descriptor is closed. It must
/// be given up after the connection, whose locks would be lost with it.
struct SharedLock: ~Copyable {
  /// SQLite's bytes for readers: "The Database File Format", lock-byte page.
  private static var firstByte: off_t { 0x4000_0002 }
  private static var bytes: off_t { 510 }

  private let file: Int32

  /// Waits a while for somebody who is about to remove the log, and goes on
  /// without a lock if that takes long, or the file cannot be read.
  init(_ path: String) {
    file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    var tries = 0
    while file >= 0, !take(), tries < 200 {
      tries += 1
      usleep(10_000)
    }
  }

  deinit { if file >= 0 { close(file) } }

  private func take() -> Bool {
    var range = flock()
    range.l_type = Int16(F_RDLCK)
    range.l_whence = Int16(SEEK_SET)
    range.l_start = Self.firstByte
    range.l_len = Self.bytes
    return fcntl(file, CBR_OFD_SETLK, &range) == 0
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

// What keeps a history from growing: the write-ahead log is copied into the
// database here and nowhere else (SQLite up to 3.51.2 can lose a transaction
// when another connection does), and old calls in memory are dropped.
extension Writer {
  /// Pages of the log after which it is copied without waiting for quiet.
  private static var logLimit: UInt32 { 4096 }

  /// Whether the log has something that may not be in the database yet.
  var hasLog: Bool {
    history.pointee.logPages.load(ordering: .relaxed) > 0
  }

  /// Called after each batch, with the turn.
  mutating func keepBounds() {
    let pages = history.pointee.logPages.load(ordering: .relaxed)
    if pages < checkpointedPages { checkpointedPages = 0 }
    if pages &- checkpointedPages >= Self.logLimit {
      // It fails only for readers or a full disk; the next one may not.
      try? connection.checkpoint()
      checkpointedPages = pages
    }
    if history.pointee.path == nil { rotate() }
  }

  /// Copies the log when nothing else is to be done.
  mutating func checkpoint() {
    history.pointee.turn.takeAsWriter()
    try? connection.alone { () throws(DatabaseError) in
      try connection.checkpoint()
      Hook.logCopied.reached(0)
    }
    history.pointee.turn.give()
    checkpointedPages = 0
    history.pointee.logPages.store(0, ordering: .relaxed)
  }

  private mutating func rotate() {
    do throws(DatabaseError) {
      if segments.isLastFull {
        try segments.rotate(
          on: connection, run: run, time: cbr_monotonic_nanoseconds())
      }
    } catch {
      // Out of memory: the present segment goes on until it works.
    }
  }
}

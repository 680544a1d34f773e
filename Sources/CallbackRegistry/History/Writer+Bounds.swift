// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

// When the write-ahead log is copied into the database.
extension Writer {
  /// Pages of the log after which it is copied without waiting for quiet.
  private static var mostPages: UInt64 { 4_096 }
  private static var leastPages: UInt64 { 64 }
  /// A limit of bytes has so many times the room that the log may take.
  private static var perLimit: UInt64 { 16 * 8_192 }

  private var logLimit: UInt32 {
    let share = history.pointee.limits.bytes / Self.perLimit
    return UInt32(max(Self.leastPages, min(Self.mostPages, share)))
  }

  /// Whether the log has something that may not be in the database yet.
  var hasLog: Bool {
    history.pointee.logPages.load(ordering: .relaxed) > 0
  }

  /// Called after each batch, with the turn.
  mutating func keepBounds() {
    let pages = history.pointee.logPages.load(ordering: .relaxed)
    if pages < checkpointedPages { checkpointedPages = 0 }
    if pages &- checkpointedPages >= logLimit {
      // It fails only for readers or a full disk; the next one may not.
      try? connection.checkpoint()
      checkpointedPages = pages
    }
    keepLimits()
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
}

// SPDX-License-Identifier: Apache-2.0
//
// When the write-ahead log is copied into the database, so that it can be
// used again from its beginning. A reader that goes on for long keeps it from
// that: then the log grows, calls are counted instead of written, and it is
// written more seldom; at last nothing is written until the reader is done.

import CPlatform
import CSQLite
import Synchronization

extension Writer {
  /// Pages of the log after which it is copied without waiting for quiet.
  private static var mostPages: UInt64 { 2_048 }
  private static var leastPages: UInt64 { 64 }
  /// A limit of bytes has so many times the room that the log may take.
  private static var perLimit: UInt64 { 64 * 8_192 }

  private var logLimit: UInt32 {
    let share = history.pointee.limits.bytes / Self.perLimit
    return UInt32(max(Self.leastPages, min(Self.mostPages, share)))
  }

  /// Pages after which calls are counted, and after which nothing is written.
  private var pressedLimit: UInt32 { logLimit * 2 }
  private var lastLimit: UInt32 { logLimit * 8 }

  private var logPages: UInt32 {
    history.pointee.logPages.load(ordering: .relaxed)
  }

  /// Has the connection tell how long the log is.
  mutating func watchLog() {
    connection.onCommit(history) { history, _, _, pages in
      history?.assumingMemoryBound(to: History.self).pointee.logPages.store(
        UInt32(truncatingIfNeeded: pages), ordering: .relaxed)
      return 0
    }
    history.pointee.logPages.store(0, ordering: .relaxed)
    checkpointedPages = 0
    isLogPinned = false
  }

  /// Whether the log has something that may not be in the database yet.
  var hasLog: Bool { logPages > 0 }

  /// Whether calls are counted because the log has no room for them.
  var isPressed: Bool { isLogPinned && logPages >= pressedLimit }

  /// How long to rest while calls are counted: a quarter of a second, and the
  /// longer the less room is left, so that a reader that stays for a minute or
  /// for an hour leaves some for other events.
  var pressedRest: UInt64 {
    let room = UInt64(lastLimit - pressedLimit)
    let left = UInt64(lastLimit - min(logPages, lastLimit))
    return min(Self.longestPressedRest, 250_000_000 * room / max(left, 1))
  }
  private static var longestPressedRest: UInt64 { 16_000_000_000 }

  /// Called before each batch, with the turn: the log may have no room for it.
  mutating func keepLog() throws(DatabaseError) {
    guard isLogPinned, logPages >= lastLimit else { return }
    copyLog()
    if isLogPinned {
      fault.note(
        "a reader keeps the log from being copied", lost: recorder.lostEvents)
      throw DatabaseError(code: SQLITE_BUSY)
    }
  }

  /// Called after each batch, with the turn.
  mutating func keepBounds() {
    if logPages < checkpointedPages { checkpointedPages = 0 }
    if logPages &- checkpointedPages >= logLimit || isLogPinned { copyLog() }
    keepLimitsAfterBatch()
  }

  /// It fails only for a full disk; the next one may not.
  private mutating func copyLog() {
    isLogPinned = (try? connection.checkpoint()) != true
    checkpointedPages = logPages
  }

  /// Copies the log when nothing else is to be done.
  mutating func checkpoint() {
    history.pointee.turn.takeAsWriter()
    try? connection.alone { () throws(DatabaseError) in
      isLogPinned = try !connection.checkpoint()
      Hook.logCopied.reached(0)
    }
    history.pointee.turn.give()
    checkpointedPages = 0
    if !isLogPinned { history.pointee.logPages.store(0, ordering: .relaxed) }
  }

  // ------------------------------------------------------ A full disk --

  /// Bytes that are kept for when the disk is full: as many as it takes to
  /// copy the log.
  private var ballastBytes: UInt64 { UInt64(logLimit) * 8_192 }

  /// Makes room on a full disk: gives up the ballast, copies the log, and
  /// forgets the oldest calls.
  mutating func makeRoom() throws(DatabaseError) {
    history.dropBallast()
    copyLog()
    guard fault.failures > 1, !segments.isOnlyOne else { return }
    let rule: StaticString = "the disk is full"
    try segments.dropFirst(
      because: rule.characters, run: run, on: connection)
    copyLog()
  }

  /// A small database needs no ballast, and would look large with one.
  mutating func keepBallast() {
    let statement = statements[.measureUsage]
    guard (try? statement.step()) == true else { return }
    let bytes = statement.unsigned(2)
    statement.reset()
    if bytes > 4 * ballastBytes { history.keepBallast(bytes: ballastBytes) }
  }
}

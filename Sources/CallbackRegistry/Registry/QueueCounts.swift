// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What became of a queue's messages: those that were posted were delivered,
/// dropped or merged, or are still there.
package struct QueueCounts {
  package var posted: UInt64 = 0
  package var delivered: UInt64 = 0
  /// Their place was taken by a later one of the same token.
  package var merged: UInt64 = 0
  /// For a later one, where the queue was full.
  package var droppedFull: UInt64 = 0
  /// Their token was dead.
  package var droppedStale: UInt64 = 0
  /// Their token could not be called: on another thread, by another interface.
  package var droppedRefused: UInt64 = 0
  /// Their queue ended.
  package var droppedEnded: UInt64 = 0
  package var waiting: UInt64 = 0
  /// Taken to be delivered, and not yet counted above: 0 or 1.
  package var taken: UInt64 = 0
  package var waitingBytes: UInt64 = 0
  package var peakItems: UInt64 = 0
  package var peakBytes: UInt64 = 0
  package var blocked: UInt64 = 0

  package init() {}

  /// Grows with whatever becomes of a message.
  var progress: UInt64 {
    2 &* posted &+ merged &- waiting &- taken
  }
}

/// Messages in a row that were dropped for one reason, for one token.
struct DropRun {
  var token = Handle.none
  var status = Status.ok
  /// The first one of which nobody was told.
  var first: UInt64 = 0
  var untold: UInt64 = 0
  var told: UInt64 = 0

  /// Notes one more.
  ///
  /// Returns what the history is to be told, that of another run first. Of a
  /// run it hears at once, and again whenever that has doubled: so a crash
  /// hides no more than half of one.
  mutating func add(
    _ message: Message, _ status: Status
  ) -> (former: DropRun?, now: DropRun?) {
    var former: DropRun?
    if token != message.token || self.status != status {
      former = takeUntold()
      self = DropRun(token: message.token, status: status)
    }
    if untold == 0 { first = message.number }
    untold += 1
    return (former, untold >= told ? takeUntold() : nil)
  }

  mutating func takeUntold() -> DropRun? {
    guard untold > 0 else { return nil }
    let taken = self
    told += untold
    untold = 0
    return taken
  }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// The counts at this moment.
  ///
  /// The monitor is held.
  package func countsNow() -> QueueCounts {
    var counts = pointee.counts
    let stale = pointee.stale.load(ordering: .acquiring)
    let refused = pointee.refused.load(ordering: .acquiring)
    let delivered = pointee.delivered.load(ordering: .acquiring)
    let next = pointee.frontNext.load(ordering: .sequentiallyConsistent)
    let end = pointee.frontEnd.load(ordering: .relaxed)
    counts.delivered = delivered
    counts.droppedStale &+= stale
    counts.droppedRefused = refused
    counts.waiting = end &- next &+ pointee.ring.count
    // What is taken is one the delivering thread has; loaded later, it may be
    // a few more than what it has said of them.
    counts.taken = next &- pointee.stolen &- delivered &- stale &- refused
    counts.waitingBytes = waitingBytes
    counts.blocked = UInt64(pointee.blocked.load(ordering: .relaxed))
    return counts
  }
}

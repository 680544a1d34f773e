// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// How far one ring has been read.
///
/// The sequence numbers of a ring have no gaps but for events that found no
/// room, so that a gap is a loss, and always: sequence = rows + updates +
/// aggregated + lost.
struct Progress {
  /// The next record.
  var position: UInt64 = 0
  /// The next event's number.
  var sequence: UInt64 = 0
  /// Events that became rows, that changed rows, and that were counted.
  var rows: UInt64 = 0
  var updates: UInt64 = 0
  var aggregated: UInt64 = 0
  var lost: UInt64 = 0
  /// The row of the thread whose events these are; 0 unknown.
  var thread: Int64 = 0
  /// The row of the ring; 0 when there is none yet.
  var row: Int64 = 0
  /// When the last event was recorded, in ticks.
  var time: UInt64 = 0
}

/// A reader of one ring.
///
/// `working` goes ahead in a batch and becomes `committed` with it, or goes
/// back to it.
struct Cursor {
  let ring: RingPointer
  var committed = Progress()
  var working = Progress()
  /// The end of what this batch may read, and of what the one before might.
  var head: UInt64 = 0
  var earlierHead: UInt64 = 0
  /// A flush is over when everything below this is committed.
  var target: UInt64 = 0
  /// A part of the ring was not whole, of a process that has died.
  var isDamaged = false
  /// Who records here: what its thread has announced.
  var thread: Payload?
  /// What the producer noted about losses that are not written yet.
  var loss = Loss()

  init(ring: RingPointer) { self.ring = ring }

  var isDrained: Bool { working.position == head }

  /// Takes over what the producer has noted.
  ///
  /// Called with the recorder's lock.
  mutating func takeLoss() {
    loss.add(ring.pointee.loss)
    ring.pointee.loss = Loss()
  }

  /// When the next event was recorded: a call's end.
  @inline(__always)
  func nextTime() -> UInt64 {
    let record = ring.record(at: working.position)
    let head = record[0]
    guard EventLayout.kind(ofHead: head) == EventKind.call.rawValue else {
      return record[1]
    }
    let shift = UInt64(EventLayout.flags(ofHead: head))
    return record[1] &+ (record[3] &>> 32) &<< shift
  }

  mutating func commit() {
    committed = working
    if committed.sequence > loss.lastSequence { loss = Loss() }
    ring.pointee.tail.store(committed.position, ordering: .releasing)
  }

  mutating func revert() { working = committed }

  /// Goes on in another database, which knows nothing of this ring.
  mutating func beginAnew() {
    var progress = Progress()
    progress.position = committed.position
    progress.sequence = committed.sequence
    progress.time = committed.time
    committed = progress
    working = progress
  }

  /// Goes on where another process has come to.
  ///
  /// What follows is to be found whole before it is read: where the ring itself
  /// is not found any more, nothing is.
  mutating func resume(_ progress: Progress) {
    committed = progress
    working = progress
    ring.pointee.head.store(progress.position, ordering: .relaxed)
  }
}

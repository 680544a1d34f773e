// SPDX-License-Identifier: Apache-2.0
//
// Reads the rings into a batch, in the order of time.
//
// Events that happened one after the other get rows in that order, on
// whatever threads they were: a batch takes events up to its watermark only,
// a time stamp taken before the rings' ends are looked up. If an event was
// published before a second one took its stamp, and the second is in the
// batch, then the first was published before the watermark and is in it too,
// or in an earlier one. An event past the watermark is left for one batch;
// then it is taken whatever its time, so that a wrong stamp stops nothing.

import CPlatform
import Synchronization

extension Writer {
  /// Fills the batch with what is to be written now.
  mutating func gather() {
    batch.clear()
    budget.fill(now: cbr_monotonic_nanoseconds())
    batch.isUnderPressure = isPressed
    if isPressed { budget.exhaust() }
    merge.clear()
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      if let time = nextTime(of: cursor) {
        // Without memory the ring is left for the next batch.
        _ = merge.add(cursor: index, time: time)
      }
    }
    gatherAggregates()
    while batch.hasRoom, let first = merge.first {
      let cursor = cursors.pointer(to: first.cursor)
      let others = merge.secondTime
      var time: UInt64? = first.time
      repeat {
        take(from: cursor, number: UInt32(truncatingIfNeeded: first.cursor))
        time = nextTime(of: cursor)
      } while time != nil && time.unsafelyUnwrapped <= others && batch.hasRoom
      if let time {
        merge.advanceFirst(to: time)
      } else {
        merge.removeFirst()
      }
    }
    gatherLastLosses()
  }

  /// When the next event of this batch in a ring was recorded; nil: none.
  @inline(__always)
  private func nextTime(of cursor: UnsafeMutablePointer<Cursor>) -> UInt64? {
    let position = cursor.pointee.working.position
    if position == cursor.pointee.head { return nil }
    let time = cursor.pointee.nextTime()
    return time <= watermark || position < cursor.pointee.earlierHead
      ? time : nil
  }

  /// Takes one event.
  ///
  /// There is room for it in the batch.
  @inline(__always)
  private mutating func take(
    from cursor: UnsafeMutablePointer<Cursor>, number: UInt32
  ) {
    let position = cursor.pointee.working.position
    let record = cursor.pointee.ring.record(at: position)
    let head = record[0]
    let sequence = EventLayout.sequence(ofHead: head)
    if sequence > cursor.pointee.working.sequence {
      addLoss(of: cursor, number: number, before: sequence, at: record[1])
    }
    cursor.pointee.working.sequence = sequence &+ 1
    cursor.pointee.working.time = record[1]
    batch.events &+= 1
    if EventLayout.kind(ofHead: head) == EventKind.call.rawValue {
      takeCall(record, head: head, from: cursor, number: number)
      cursor.pointee.working.position = position &+ 1
    } else {
      takeControl(record, head: head, from: cursor, number: number)
      cursor.pointee.working.position =
        position &+ 1 &+ UInt64(EventLayout.flags(ofHead: head))
    }
  }

  @inline(__always)
  private mutating func takeCall(
    _ record: UnsafeMutablePointer<UInt64>, head: UInt64,
    from cursor: UnsafeMutablePointer<Cursor>, number: UInt32
  ) {
    let ticks = (record[3] &>> 32) &<< UInt64(EventLayout.flags(ofHead: head))
    let time = clock.nanoseconds(at: record[1])
    let duration = clock.nanoseconds(during: ticks)
    let index = batch.cells.index(of: record[2])
    let cell = batch.cells.pointer(to: index)
    cell.pointee.all.add(nanoseconds: duration, longest: duration)
    cell.pointee.lastTime = max(cell.pointee.lastTime, time)
    if budget.take() {
      cell.pointee.callRows &+= 1
      cursor.pointee.working.rows &+= 1
      batch.addCall(
        time: time, duration: duration, cell: index, cursor: number)
    } else {
      cell.pointee.overBudget.add(nanoseconds: duration, longest: duration)
      cell.pointee.firstAggregated = min(cell.pointee.firstAggregated, time)
      cursor.pointee.working.aggregated &+= 1
      batch.overBudget &+= 1
    }
  }

  /// Events between the last one and `sequence` found no room.
  private mutating func addLoss(
    of cursor: UnsafeMutablePointer<Cursor>, number: UInt32,
    before sequence: UInt64, at time: UInt64
  ) {
    let first = cursor.pointee.working.sequence
    let noted = cursor.pointee.loss
    // Where the producer's note is about just these, its times are exact;
    // else the events around are the bounds.
    let begins = noted.count > 0 && noted.firstSequence == first
    let ends = noted.count > 0 && noted.lastSequence == sequence &- 1
    batch.add(
      LossRow(
        cursor: number, first: first, count: sequence &- first,
        firstTime: clock.nanoseconds(
          at: begins ? noted.firstTime : cursor.pointee.working.time),
        lastTime: clock.nanoseconds(at: ends ? noted.lastTime : time),
        isDropped: noted.count > 0 && noted.areDropped))
    cursor.pointee.working.lost &+= sequence &- first
    cursor.pointee.working.sequence = sequence
  }

  /// Losses that no event follows yet.
  private mutating func gatherLastLosses() {
    for index in 0..<cursors.count where batch.lossCount < Batch.lossLimit {
      let cursor = cursors.pointer(to: index)
      let noted = cursor.pointee.loss
      guard cursor.pointee.isDrained, noted.count > 0,
        noted.lastSequence >= cursor.pointee.working.sequence
      else { continue }
      addLoss(
        of: cursor, number: UInt32(truncatingIfNeeded: index),
        before: noted.lastSequence &+ 1, at: noted.lastTime)
    }
    let withoutRing = withoutRing.working &- withoutRing.committed
    if withoutRing > 0, batch.lossCount < Batch.lossLimit {
      let now = clock.nanoseconds(at: watermark)
      batch.add(
        LossRow(
          cursor: LossRow.noCursor, first: 0, count: withoutRing,
          firstTime: now, lastTime: now))
    }
  }

  /// Takes calls that the engine counted because a ring was full.
  ///
  /// Known is only when they were taken over, and when the others before them
  /// were.
  private mutating func gatherAggregates() {
    while batch.hasRoom, let calls = aggregates.next() {
      let cell = batch.cells.pointer(to: batch.cells.index(of: calls.token))
      let total = clock.nanoseconds(during: calls.totalTicks)
      let longest = clock.nanoseconds(during: calls.longestTicks)
      cell.pointee.all.add(
        calls: calls.count, nanoseconds: total, longest: longest)
      cell.pointee.overRing.add(
        calls: calls.count, nanoseconds: total, longest: longest)
      cell.pointee.firstAggregated = min(
        cell.pointee.firstAggregated, clock.nanoseconds(at: aggregates.began))
      cell.pointee.lastTime = max(
        cell.pointee.lastTime, clock.nanoseconds(at: aggregates.ended))
      batch.events += 1
      batch.overRing &+= calls.count
    }
  }
}

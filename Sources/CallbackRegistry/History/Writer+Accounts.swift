// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension Writer {
  /// Writes what the batch adds up to, and how far it has come.
  mutating func writeAccounts(first: UInt64) throws(DatabaseError) {
    if batch.overBudget | batch.overRing != 0 {
      for index in 0..<batch.cells.count {
        let cell = batch.cells.pointer(to: index)
        try write(
          cell.pointee.overBudget, cause: batch.isUnderPressure ? 3 : 1,
          of: cell)
        try write(cell.pointee.overRing, cause: 2, of: cell)
      }
    }
    if batch.overRing > 0 {
      let statement = statements[.countRingFullCalls]
      statement.bind(1, run)
      statement.bind(2, batch.overRing)
      try statement.run()
    }
    for index in 0..<batch.lossCount { try write(batch.losses[index]) }
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      let hasMoved =
        cursor.pointee.working.position != cursor.pointee.committed.position
        || cursor.pointee.working.lost != cursor.pointee.committed.lost
      if hasMoved { try writePosition(of: cursor) }
    }
    if batch.callCount > 0 { try writeSegment(first: first) }
    try writeSync()
    try writeFault()
    try writeUnprotected()
  }

  private func write(
    _ sum: CallSum, cause: Int64, of cell: UnsafeMutablePointer<Cell>
  ) throws(DatabaseError) {
    if sum.calls == 0 { return }
    let statement = statements[.addAggregate]
    statement.bind(1, cell.pointee.handle)
    statement.bind(2, run)
    statement.bind(3, cause)
    statement.bind(4, sum.calls)
    statement.bind(5, sum.nanoseconds)
    statement.bind(6, sum.longest)
    statement.bind(7, cell.pointee.firstAggregated)
    statement.bind(8, cell.pointee.lastTime)
    try statement.run()
  }

  private func write(_ loss: LossRow) throws(DatabaseError) {
    let statement = statements[.addLoss]
    statement.bind(1, run)
    if loss.cursor == LossRow.noCursor {
      for index in Int32(2)...4 { statement.bindNull(index) }
      statement.bind(6, Int64(3))
    } else {
      let cursor = cursors.pointer(to: Int(loss.cursor))
      statement.bind(2, cursor.pointee.working.row)
      statement.bind(3, loss.first)
      statement.bind(4, loss.first &+ loss.count &- 1)
      let isFault = fault.isThere
      let cause =
        cursor.pointee.isDamaged ? 5 : loss.isDropped ? 6 : isFault ? 2 : 1
      statement.bind(6, Int64(cause))
    }
    statement.bind(5, loss.count)
    statement.bind(7, loss.firstTime)
    statement.bind(8, loss.lastTime)
    try statement.run()
  }

  private func writePosition(
    of cursor: UnsafeMutablePointer<Cursor>
  ) throws(DatabaseError) {
    let progress = cursor.pointee.working
    let statement = statements[.advanceRing]
    statement.bind(1, progress.row)
    statement.bind(2, progress.position)
    statement.bind(3, progress.sequence)
    statement.bind(4, progress.rows)
    statement.bind(5, progress.updates)
    statement.bind(6, progress.aggregated)
    statement.bind(7, progress.lost)
    try statement.run()
  }

  private func writeSegment(first: UInt64) throws(DatabaseError) {
    let statement = statements[.advanceSegment]
    statement.bind(1, segments.last)
    statement.bind(2, Int64(batch.callCount))
    statement.bind(3, first &+ UInt64(batch.calls[0].offset))
    statement.bind(
      4, first &+ UInt64(batch.calls[batch.callCount - 1].offset))
    statement.bind(5, batch.firstCallTime)
    statement.bind(6, batch.lastCallTime)
    statement.bind(7, run)
    try statement.run()
  }

  private mutating func writeSync() throws(DatabaseError) {
    guard let sync else { return }
    let offset = WallClock.offset
    let step = WallClock.step(from: wallClock.committed, to: offset)
    wallClock.working = offset
    let statement = statements[.addSync]
    statement.bind(1, run)
    statement.bind(2, sync.ticks)
    statement.bind(3, clock.nanoseconds(at: sync.ticks))
    statement.bind(4, sync.nanoseconds &+ offset)
    statement.bind(5, step)
    try statement.run()
  }

  /// The disk had no room for a ring: what is in it does not survive a crash.
  private mutating func writeUnprotected() throws(DatabaseError) {
    let count = recorder.pointee.unprotected.load(ordering: .relaxed)
    guard count > notedUnprotected.committed else { return }
    notedUnprotected.working = count
    try Run.noteProtection(of: run, "in part", on: connection)
    let cause: StaticString =
      "no room for a ring on the disk: a crash loses what is in it"
    try FaultRow(
      cause: cause.characters, beganAt: cbr_monotonic_nanoseconds(),
      failures: UInt64(count - notedUnprotected.committed)
    ).add(to: run, by: statements[.addFault])
  }

  /// A short lock of another program's that cost nothing is no fault.
  private func writeFault() throws(DatabaseError) {
    let lost = recorder.lostEvents
    guard fault.isSevere || fault.isThere && lost > fault.lostBefore else {
      return
    }
    try FaultRow(
      cause: fault.cause, code: fault.code,
      beganAt: fault.beganAt, failures: fault.failures,
      lost: lost &- fault.lostBefore
    ).add(to: run, by: statements[.addFault])
  }
}

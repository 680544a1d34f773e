// SPDX-License-Identifier: Apache-2.0

/// What cells say, as parameters of the statements for handles' rows.
extension Writer {
  /// Parameters 1 to 12: the handle, and how it came to life.
  mutating func bindRegistration(
    of cell: UnsafeMutablePointer<Cell>, to statement: Statement,
    first: UInt64
  ) {
    statement.bind(1, cell.pointee.handle)
    statement.bind(2, run)
    statement.bind(3, cell.pointee.handle >> 2 & 15)
    for index in Int32(4)...8 { statement.bind(index, Int64(0)) }
    for index in Int32(9)...12 { statement.bindNull(index) }
    guard cell.pointee.registered != 0 else { return }
    let row = batch.controls[Int(cell.pointee.registered - 1)]
    let cursor = cursors.pointer(to: Int(row.cursor))
    let payload = payload(at: row.position, of: cursor)
    if row.kind == EventKind.opened.rawValue {
      cell.pointee.callback = callbacks[row.argument]
      statement.bind(7, payload.first)
    } else {
      let label = UInt32(truncatingIfNeeded: payload.second >> 32)
      cell.pointee.callback = callbacks[label]
      let site = sites[UInt32(truncatingIfNeeded: payload.second)]
      statement.bind(5, payload.first)
      statement.bind(6, row.argument & 0xFFFF)
      statement.bind(7, row.argument >> 16)
      statement.bind(8, payload.third)
      if site != 0 { statement.bind(11, site) }
    }
    statement.bind(4, cell.pointee.callback)
    statement.bind(9, first &+ UInt64(row.offset))
    statement.bind(10, row.time)
    statement.bind(12, row.thread)
  }

  /// Thirteen parameters: refusals and the like, the engine's counts, and how
  /// the handle ended.
  func bindLife(
    of cell: UnsafeMutablePointer<Cell>, to statement: Statement,
    after index: Int32, first: UInt64
  ) {
    statement.bind(index + 1, cell.pointee.refusals)
    statement.bind(index + 2, cell.pointee.abandoned)
    statement.bind(index + 3, cell.pointee.leases)
    statement.bind(index + 4, cell.pointee.leasesEnded)
    for offset in Int32(5)...13 { statement.bindNull(index + offset) }
    if cell.pointee.isCounted {
      statement.bind(index + 5, cell.pointee.attempts)
      statement.bind(index + 6, cell.pointee.outstanding)
    }
    if cell.pointee.ended != 0 {
      let row = batch.controls[Int(cell.pointee.ended - 1)]
      let isClosing = row.kind == EventKind.closed.rawValue
      statement.bind(index + 7, first &+ UInt64(row.offset))
      statement.bind(index + 8, row.time)
      statement.bind(index + 9, row.thread)
      statement.bind(index + 10, isClosing ? Reason.ended : row.argument)
    }
    if cell.pointee.settled != 0 {
      let row = batch.controls[Int(cell.pointee.settled - 1)]
      let cursor = cursors.pointer(to: Int(row.cursor))
      let payload = payload(at: row.position, of: cursor)
      statement.bind(index + 11, first &+ UInt64(row.offset))
      statement.bind(index + 12, row.time)
      statement.bind(index + 13, payload.second)
    }
  }

  /// Six parameters: the sums of calls.
  func bindCalls(
    of cell: UnsafeMutablePointer<Cell>, to statement: Statement,
    after index: Int32
  ) {
    statement.bind(index + 1, cell.pointee.all.calls)
    statement.bind(index + 2, cell.pointee.callRows)
    statement.bind(index + 3, cell.pointee.aggregated)
    statement.bind(index + 4, cell.pointee.all.nanoseconds)
    statement.bind(index + 5, cell.pointee.all.longest)
    if cell.pointee.all.calls > 0 {
      statement.bind(index + 6, cell.pointee.lastTime)
    } else {
      statement.bindNull(index + 6)
    }
  }
}

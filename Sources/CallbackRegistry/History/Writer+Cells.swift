// SPDX-License-Identifier: Apache-2.0

extension Writer {
  /// Adds what the batch says about handles to their rows, and finds the
  /// callbacks that its rows name.
  mutating func writeCells(first: UInt64) throws(DatabaseError) {
    for index in 0..<batch.cells.count {
      let cell = batch.cells.pointer(to: index)
      if cell.pointee.registered != 0 {
        try writeRegistration(cell, first: first)
      } else if let known = try find(cell.pointee.handle) {
        cell.pointee.registration = known.registration
        cell.pointee.callback = known.callback
      } else if cell.pointee.exists {
        try writeUnknown(cell)
      }
      guard cell.pointee.registration != 0 else { continue }
      if cell.pointee.all.calls > 0 { try writeCalls(cell) }
      if cell.pointee.hasLife { try writeLife(cell, first: first) }
    }
  }

  private mutating func find(
    _ handle: UInt64
  ) throws(DatabaseError) -> TokenCache.Entry? {
    if let known = tokens.find(handle) { return known }
    let statement = statements[.findToken]
    statement.bind(1, handle)
    statement.bind(2, run)
    guard try statement.step() else { return nil }
    defer { statement.reset() }
    let entry = TokenCache.Entry(
      handle: handle, registration: statement.integer(0),
      callback: statement.integer(1))
    tokens.keep(entry)
    return entry
  }

  /// Adds the row of a handle that came to life in this batch.
  private mutating func writeRegistration(
    _ cell: UnsafeMutablePointer<Cell>, first: UInt64
  ) throws(DatabaseError) {
    let row = batch.controls + Int(cell.pointee.registered - 1)
    let cursor = cursors.pointer(to: Int(row.pointee.cursor))
    let payload = payload(at: row.pointee.position, of: cursor)
    let statement = statements[.addToken]
    statement.bind(1, cell.pointee.handle)
    statement.bind(2, run)
    statement.bind(3, cell.pointee.handle >> 2 & 15)
    if row.pointee.kind == EventKind.opened.rawValue {
      cell.pointee.callback = callbacks[row.pointee.argument]
      statement.bind(5, Int64(0))
      statement.bind(6, Int64(0))
      statement.bind(7, payload.first)
      statement.bind(8, Int64(0))
      statement.bindNull(11)
    } else {
      let label = UInt32(truncatingIfNeeded: payload.second >> 32)
      cell.pointee.callback = callbacks[label]
      let site = sites[UInt32(truncatingIfNeeded: payload.second)]
      statement.bind(5, payload.first)
      statement.bind(6, row.pointee.argument & 0xFFFF)
      statement.bind(7, row.pointee.argument >> 16)
      statement.bind(8, payload.third)
      if site == 0 { statement.bindNull(11) } else { statement.bind(11, site) }
    }
    statement.bind(4, cell.pointee.callback)
    statement.bind(9, first &+ UInt64(row.pointee.offset))
    statement.bind(10, row.pointee.time)
    statement.bind(12, row.pointee.thread)
    try runToAdd(statement, cell)
  }

  /// Adds the row of a handle whose registration was not recorded, or is yet
  /// to come.
  private mutating func writeUnknown(
    _ cell: UnsafeMutablePointer<Cell>
  ) throws(DatabaseError) {
    let statement = statements[.addToken]
    statement.bind(1, cell.pointee.handle)
    statement.bind(2, run)
    statement.bind(3, cell.pointee.handle >> 2 & 15)
    for index in Int32(4)...8 { statement.bind(index, Int64(0)) }
    for index in Int32(9)...12 { statement.bindNull(index) }
    try runToAdd(statement, cell)
  }

  private mutating func runToAdd(
    _ statement: Statement, _ cell: UnsafeMutablePointer<Cell>
  ) throws(DatabaseError) {
    guard try statement.step() else {
      // It was registered before: a fault that `violations` shows.
      let known = try find(cell.pointee.handle)
      cell.pointee.registration = known?.registration ?? 0
      cell.pointee.callback = known?.callback ?? 0
      return
    }
    cell.pointee.registration = statement.integer(0)
    // Insertion is complete with the first row.
    statement.reset()
    tokens.keep(
      TokenCache.Entry(
        handle: cell.pointee.handle, registration: cell.pointee.registration,
        callback: cell.pointee.callback))
  }

  private func writeCalls(
    _ cell: UnsafeMutablePointer<Cell>
  ) throws(DatabaseError) {
    let statement = statements[.addCalls]
    statement.bind(1, cell.pointee.registration)
    statement.bind(2, cell.pointee.all.calls)
    statement.bind(3, cell.pointee.callRows)
    statement.bind(4, cell.pointee.aggregated)
    statement.bind(5, cell.pointee.all.nanoseconds)
    statement.bind(6, cell.pointee.all.longest)
    statement.bind(7, cell.pointee.lastTime)
    try statement.run()
  }

  private func writeLife(
    _ cell: UnsafeMutablePointer<Cell>, first: UInt64
  ) throws(DatabaseError) {
    let statement = statements[.addLife]
    statement.bind(1, cell.pointee.registration)
    statement.bind(2, cell.pointee.refusals)
    statement.bind(3, cell.pointee.abandoned)
    statement.bind(4, cell.pointee.leases)
    statement.bind(5, cell.pointee.leasesEnded)
    for index in Int32(6)...14 { statement.bindNull(index) }
    if cell.pointee.isCounted {
      statement.bind(6, cell.pointee.attempts)
      statement.bind(7, cell.pointee.outstanding)
    }
    if cell.pointee.ended != 0 {
      let row = batch.controls[Int(cell.pointee.ended - 1)]
      let isClosing = row.kind == EventKind.closed.rawValue
      statement.bind(8, first &+ UInt64(row.offset))
      statement.bind(9, row.time)
      statement.bind(10, row.thread)
      statement.bind(11, isClosing ? Reason.ended : row.argument)
    }
    if cell.pointee.settled != 0 {
      let row = batch.controls[Int(cell.pointee.settled - 1)]
      let cursor = cursors.pointer(to: Int(row.cursor))
      statement.bind(12, first &+ UInt64(row.offset))
      statement.bind(13, row.time)
      statement.bind(14, payload(at: row.position, of: cursor).second)
    }
    try statement.run()
  }
}

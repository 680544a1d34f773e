// SPDX-License-Identifier: Apache-2.0

extension Writer {
  /// Adds what the batch says about handles to their rows, and finds the
  /// callbacks that its rows name.
  mutating func writeCells(first: UInt64) throws(DatabaseError) {
    for index in 0..<batch.cells.count {
      let cell = batch.cells.pointer(to: index)
      if cell.pointee.registered != 0 {
        if try add(cell, first: first) { continue }
        // Its calls were faster than its registration.
        let statement = statements[.addRegistration]
        bindRegistration(of: cell, to: statement, first: first)
        try statement.run()
        tokens.remove(cell.pointee.handle)
      }
      if let known = try find(cell.pointee.handle) {
        cell.pointee.registration = known.registration
        cell.pointee.callback = known.callback
        if cell.pointee.all.calls > 0 { try addCalls(of: cell) }
        if cell.pointee.hasLife { try addLife(of: cell, first: first) }
      } else if cell.pointee.exists {
        // Its registration was not recorded, or is yet to come.
        _ = try add(cell, first: first)
      }
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

  /// Adds the row of a handle, with all that the batch says about it.
  ///
  /// False: it has one.
  private mutating func add(
    _ cell: UnsafeMutablePointer<Cell>, first: UInt64
  ) throws(DatabaseError) -> Bool {
    let statement = statements[.addToken]
    bindRegistration(of: cell, to: statement, first: first)
    bindLife(of: cell, to: statement, after: 12, first: first)
    bindCalls(of: cell, to: statement, after: 25)
    try statement.run()
    guard connection.changes == 1 else { return false }
    cell.pointee.registration = connection.lastRow
    tokens.keep(
      TokenCache.Entry(
        handle: cell.pointee.handle, registration: cell.pointee.registration,
        callback: cell.pointee.callback))
    return true
  }

  private func addCalls(
    of cell: UnsafeMutablePointer<Cell>
  ) throws(DatabaseError) {
    let statement = statements[.addCalls]
    statement.bind(1, cell.pointee.registration)
    bindCalls(of: cell, to: statement, after: 1)
    try statement.run()
  }

  private func addLife(
    of cell: UnsafeMutablePointer<Cell>, first: UInt64
  ) throws(DatabaseError) {
    let statement = statements[.addLife]
    statement.bind(1, cell.pointee.registration)
    bindLife(of: cell, to: statement, after: 1, first: first)
    try statement.run()
  }
}

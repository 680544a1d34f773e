// SPDX-License-Identifier: Apache-2.0

extension Writer {
  /// Writes what the batch's rows refer to: labels, sites, rings, threads.
  mutating func writeIdentities(first: UInt64) throws(DatabaseError) {
    try writeCallbacks()
    try writeSites()
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      if cursor.pointee.working.row == 0 {
        try writeRing(cursor)
        // In another database than it began in.
        if cursor.pointee.committed.sequence > 0,
          let thread = cursor.pointee.thread
        {
          try write(
            thread, of: cursor, sequence: first,
            time: clock.nanoseconds(at: cursor.pointee.committed.time))
        }
      }
    }
    for index in 0..<batch.controlCount {
      let row = batch.controls + index
      let cursor = cursors.pointer(to: Int(row.pointee.cursor))
      if row.pointee.kind == EventKind.thread.rawValue {
        let thread = payload(at: row.pointee.position, of: cursor)
        try write(
          thread, of: cursor, sequence: first &+ UInt64(row.pointee.offset),
          time: row.pointee.time)
        cursor.pointee.thread = thread
      }
      row.pointee.thread = cursor.pointee.working.thread
    }
  }

  private mutating func writeCallbacks() throws(DatabaseError) {
    while let entry = entry(callbacks.count + 1, ofSites: false) {
      let statement = statements[.addCallback]
      statement.bind(1, entry.text, length: entry.length)
      let row = try row(of: statement)
      guard callbacks.add(row: row) else { throw .noMemory }
      try save(.callback, number: callbacks.count, row: row)
    }
  }

  private mutating func writeSites() throws(DatabaseError) {
    while let entry = entry(sites.count + 1, ofSites: true) {
      let statement = statements[.addSite]
      statement.bind(1, entry.text, length: entry.length)
      statement.bind(2, entry.line)
      let row = try row(of: statement)
      guard sites.add(row: row) else { throw .noMemory }
      try save(.site, number: sites.count, row: row)
    }
  }

  /// What a number of this run means, for whoever reads its rings after a
  /// crash.
  private func save(
    _ kind: NameKind, number: Int, row: Int64
  ) throws(DatabaseError) {
    guard recorder.pointee.file != nil else { return }
    let statement = statements[.addName]
    statement.bind(1, run)
    statement.bind(2, kind.rawValue)
    statement.bind(3, Int64(number))
    statement.bind(4, row)
    try statement.run()
  }

  /// The row that a statement has added or found.
  private func row(of statement: Statement) throws(DatabaseError) -> Int64 {
    guard try statement.step() else {
      throw .corrupt
    }
    defer { statement.reset() }
    return statement.integer(0)
  }

  private func entry(_ number: Int, ofSites: Bool) -> Dictionary.Entry? {
    let number = UInt32(truncatingIfNeeded: number)
    return recorder.pointee.monitor.locked {
      ofSites
        ? recorder.pointee.sites[number] : recorder.pointee.callbacks[number]
    }
  }

  private func writeRing(
    _ cursor: UnsafeMutablePointer<Cursor>
  ) throws(DatabaseError) {
    let statement = statements[.addRing]
    statement.bind(1, run)
    statement.bind(2, cursor.pointee.ring.pointee.number)
    statement.bind(3, cursor.pointee.ring.pointee.capacity)
    statement.bind(4, cursor.pointee.committed.sequence)
    try statement.run()
    cursor.pointee.working.row = connection.lastRow
  }

  private func write(
    _ thread: Payload, of cursor: UnsafeMutablePointer<Cursor>,
    sequence: UInt64, time: UInt64
  ) throws(DatabaseError) {
    var name = (thread.second, thread.third, UInt64(0))
    let statement = statements[.addThread]
    statement.bind(1, run)
    statement.bind(2, cursor.pointee.working.row)
    statement.bind(3, thread.first >> 32)
    statement.bind(4, thread.first & 0xFFFF_FFFF)
    statement.bind(6, sequence)
    statement.bind(7, time)
    // The name ends with a zero, here if nowhere before.
    try withUnsafeBytes(of: &name) { bytes throws(DatabaseError) in
      statement.bind(
        5, bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
      try statement.run()
    }
    cursor.pointee.working.thread = connection.lastRow
  }
}

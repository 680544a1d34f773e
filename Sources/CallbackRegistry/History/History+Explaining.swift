// SPDX-License-Identifier: Apache-2.0

extension UnsafeMutablePointer where Pointee == History {
  private static var flushPatience: UInt64 { 500_000_000 }
  static var turnPatience: UInt64 { 1_000_000_000 }
  private static var describingPatience: UInt64 { 100_000_000 }

  /// Tells a handle's life from the database, after a flush: who registered and
  /// ended it, its calls, and who called too late; also of an earlier run.
  ///
  /// False, and nothing said, if nothing is known.
  package func explain(_ handle: UInt64, into text: inout Text) -> Bool {
    flushBriefly()
    return read { connection throws(DatabaseError) in
      let isKnown = try Life.life(of: handle, connection, into: &text)
      if isKnown {
        try Life.calls(of: handle, connection, into: &text)
        return true
      }
      return try Life.lease(handle, connection, into: &text)
    }
  }

  /// Adds a handle's label, and when, by whom and why it ended, as far as that
  /// is written: it waits for no more than another's turn.
  ///
  /// False, and nothing said, if nothing is known.
  package func describe(_ handle: UInt64, into text: inout Text) -> Bool {
    read(patience: Self.describingPatience) {
      connection throws(DatabaseError) in
      try Life.end(of: handle, connection, into: &text)
    }
  }

  /// Tells of a handle's calls and late callers alone.
  package func explainCalls(
    of handle: UInt64, into text: inout Text
  ) -> Bool {
    flushBriefly()
    return read { connection throws(DatabaseError) in
      try Life.calls(of: handle, connection, into: &text)
    }
  }

  private func flushBriefly() {
    var achieved: UInt64 = 0
    _ = flush(
      level: 2, until: .after(Self.flushPatience), achieved: &achieved)
  }

  /// Reads between two batches.
  ///
  /// False when the body answers that, when it fails, and when the writer does
  /// not let go in time.
  func read(
    patience: UInt64 = turnPatience,
    _ body: (Connection) throws(DatabaseError) -> Bool
  ) -> Bool {
    let deadline = Deadline.after(patience)
    guard pointee.turn.takeAsReader(until: deadline) else { return false }
    defer { pointee.turn.give() }
    guard let database = pointee.database else { return false }
    do throws(DatabaseError) {
      return try body(database.connection)
    } catch {
      return false
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

/// The tables of calls.
///
/// In a file there is one; in memory the oldest of several is dropped when a
/// new one begins, so that the last million calls and some more are there.
/// Control events and the rows of handles stay.
struct Segments {
  /// In memory.
  static var rowsEach: Int64 { 125_000 }
  static var keptFull: Int64 { 8 }

  private(set) var first: Int64 = 1
  private(set) var last: Int64 = 1
  private(set) var rowsInLast: Int64 = 0

  init(of connection: Connection) throws(DatabaseError) {
    first = try connection.integer("SELECT min(segment) FROM segment") ?? 1
    last = try connection.integer("SELECT max(segment) FROM segment") ?? 1
    rowsInLast =
      try connection.integer(
        "SELECT rows FROM segment ORDER BY segment DESC LIMIT 1") ?? 0
  }

  /// What is there now, in a transaction.
  mutating func turn(to numbers: ClosedRange<Int64>, rowsInLast: Int64) {
    first = numbers.lowerBound
    last = numbers.upperBound
    self.rowsInLast = rowsInLast
  }

  mutating func commit(rows: Int64) { rowsInLast += rows }

  var isLastFull: Bool { rowsInLast >= Self.rowsEach }

  /// Begins a new segment and drops what is too old, in one transaction.
  mutating func rotate(
    on connection: Connection, run: Int64, time: UInt64
  ) throws(DatabaseError) {
    var kept = first
    try connection.transaction { () throws(DatabaseError) in
      try Schema.addSegment(last + 1, on: connection)
      while last + 1 - kept > Self.keptFull {
        try purge(kept, on: connection, run: run, time: time)
        kept += 1
      }
      try Schema.viewSegments(from: kept, through: last + 1, on: connection)
    }
    first = kept
    last += 1
    rowsInLast = 0
  }

  private func purge(
    _ segment: Int64, on connection: Connection, run: Int64, time: UInt64
  ) throws(DatabaseError) {
    let statement = try connection.prepare(
      """
      INSERT INTO purge (run, time_ns, rule, table_name, rows, first_sequence,
        last_sequence, first_time_ns, last_time_ns)
      SELECT ?2, ?3, 'in memory at least the last 1 000 000 calls are kept',
        table_name, rows, first_sequence, last_sequence, first_time_ns,
        last_time_ns
      FROM segment WHERE segment = ?1
      """)
    defer { statement.finalize() }
    statement.bind(1, segment)
    statement.bind(2, run)
    statement.bind(3, time)
    try statement.run()
    try Schema.dropSegment(segment, on: connection)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The tables of calls.
///
/// Calls go into the last one. When it is full, another one begins, so that
/// the oldest calls can be forgotten by dropping a table.
struct Segments {
  /// A limit of calls is kept with so many segments.
  private static var perLimit: UInt64 { 9 }
  private static var bytesOfCall: UInt64 { 48 }
  private static var leastRows: UInt64 { 1_024 }
  /// Dropping more at once would hold the database's lock for too long.
  private static var mostRows: UInt64 { 1_000_000 }
  /// SQLite's views have at most 500 parts.
  private static var mostSegments: Int64 { 256 }

  private(set) var first: Int64 = 1
  private(set) var last: Int64 = 1
  private(set) var rowsInLast: UInt64 = 0
  /// When the last one began, and other events of its time, as far as this
  /// process knows.
  private var lastBegan: UInt64 = 0
  private var eventsBeside: UInt64 = 0
  private let rowsEach: UInt64
  private let mostEventsBeside: UInt64
  private let longestLife: UInt64

  init(
    of connection: Connection, limits: HistoryLimits
  ) throws(DatabaseError) {
    rowsEach = max(
      Self.leastRows,
      min(
        Self.mostRows, limits.calls / Self.perLimit,
        limits.bytes / Self.perLimit / Self.bytesOfCall))
    mostEventsBeside = limits.events / Self.perLimit
    longestLife = limits.callAge / Self.perLimit
    let first = try connection.integer("SELECT min(segment) FROM segment")
    let last = try connection.integer("SELECT max(segment) FROM segment")
    let rows = try connection.integer(
      "SELECT rows FROM segment ORDER BY segment DESC LIMIT 1")
    turn(to: (first ?? 1)...(last ?? 1), rowsInLast: UInt64(rows ?? 0))
  }

  /// What is there now, in a transaction: other processes change it, too.
  mutating func turn(to numbers: ClosedRange<Int64>, rowsInLast: UInt64) {
    if numbers.upperBound != last || lastBegan == 0 {
      lastBegan = cbr_monotonic_nanoseconds()
      eventsBeside = 0
    }
    first = numbers.lowerBound
    last = numbers.upperBound
    self.rowsInLast = rowsInLast
  }

  mutating func commit(calls: Int, others: Int) {
    rowsInLast += UInt64(calls)
    eventsBeside += UInt64(others)
  }

  var isOnlyOne: Bool { first == last }

  /// Whether it is time for another one.
  var isLastFull: Bool {
    guard rowsInLast > 0, last - first < Self.mostSegments else {
      return false
    }
    return rowsInLast >= rowsEach || eventsBeside > mostEventsBeside
      || cbr_monotonic_nanoseconds() &- lastBegan > longestLife
  }

  /// Begins another one.
  mutating func add(on connection: Connection) throws(DatabaseError) {
    let next = last + 1
    try connection.transaction { () throws(DatabaseError) in
      guard try isLast(last, on: connection) else { return }
      try Schema.addSegment(next, on: connection)
      try Schema.viewSegments(from: first, through: next, on: connection)
      Hook.segmentAdded.reached(0)
    }
    turn(to: first...next, rowsInLast: 0)
  }

  /// Drops the oldest one, with its calls, because of a rule.
  mutating func dropFirst(
    because rule: UnsafePointer<CChar>, run: Int64, on connection: Connection
  ) throws(DatabaseError) {
    let dropped = first
    try connection.transaction { () throws(DatabaseError) in
      guard try isFirst(dropped, on: connection) else { return }
      let purge = Purge(
        run: run, rule: rule, connection: connection)
      try purge.note(segment: dropped)
      try Schema.dropSegment(dropped, on: connection)
      try Schema.viewSegments(
        from: dropped + 1, through: last, on: connection)
      Hook.rowsPurged.reached(0)
    }
    turn(to: (dropped + 1)...last, rowsInLast: rowsInLast)
  }

  /// Another process may have been faster; its change is seen with the next
  /// batch.
  private func isLast(
    _ number: Int64, on connection: Connection
  ) throws(DatabaseError) -> Bool {
    try connection.integer("SELECT max(segment) FROM segment") == number
  }

  private func isFirst(
    _ number: Int64, on connection: Connection
  ) throws(DatabaseError) -> Bool {
    let oldest = try connection.integer("SELECT min(segment) FROM segment")
    return try isLast(last, on: connection) && oldest == number
  }
}

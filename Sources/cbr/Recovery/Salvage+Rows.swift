// SPDX-License-Identifier: Apache-2.0

import CSQLite

/// A connection that goes around what it cannot read.
struct Salvage: ~Copyable {
  struct Entry {
    let type: String
    let name: String
    let sql: String
  }

  /// What a table's rows have.
  private struct Shape {
    let table: String
    var columns: [String] = []
    var keys: [String] = []

    var list: String { columns.joined(separator: ", ") }
  }

  private let path: String
  private let connection: OpaquePointer?

  init(_ path: String, _ flags: Int32) throws {
    self.path = path
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    connection = opened
    guard code == SQLITE_OK else { throw problem() }
    sqlite3_busy_timeout(opened, 2_000)
  }

  deinit { sqlite3_close(connection) }

  /// How everything was made that the database has.
  func schema() throws -> [Entry] {
    var entries: [Entry] = []
    let isWhole = visit(
      """
      SELECT type, name, sql FROM sqlite_schema
      WHERE sql LIKE 'CREATE %' AND name NOT LIKE 'sqlite_%' ORDER BY rowid
      """
    ) { row in
      entries.append(
        Entry(
          type: Self.text(row, 0), name: Self.text(row, 1),
          sql: Self.text(row, 2)))
    }
    guard isWhole, !entries.isEmpty else { throw problem() }
    return entries
  }

  /// Executes one statement: what follows it is not looked at.
  func execute(_ sql: String) throws {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard
      sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
    else { throw problem() }
    let code = sqlite3_step(statement)
    guard code == SQLITE_DONE || code == SQLITE_ROW else { throw problem() }
  }

  /// The number that a question is answered with; nil: it cannot be.
  func number(_ sql: String) -> Int64? {
    var number: Int64?
    let isWhole = visit(sql) { number = sqlite3_column_int64($0, 0) }
    return isWhole ? number : nil
  }

  /// Copies the rows of a table, as many as can be read.
  func copyRows(
    of table: String, to target: borrowing Salvage
  ) throws -> SalvagedTable {
    let shape = shape(of: table)
    let insertion = try target.insertion(shape)
    defer { sqlite3_finalize(insertion) }
    var result = SalvagedTable(name: table)
    let other = target.connection
    func copy(_ row: OpaquePointer?) {
      for column in 0..<Int32(shape.columns.count) {
        sqlite3_bind_value(
          insertion, column + 1, sqlite3_column_value(row, column + 1))
      }
      sqlite3_step(insertion)
      guard sqlite3_reset(insertion) == SQLITE_OK else { return }
      result.rows += Int(sqlite3_changes(other))
    }
    result.gaps =
      canPrepare("SELECT rowid FROM \(shape.table)")
      ? visitByNumber(shape, copy) : visitByKey(shape, copy)
    return result
  }

  private func shape(of table: String) -> Shape {
    var shape = Shape(table: Self.quoted(table))
    _ = visit(
      """
      SELECT name, pk FROM pragma_table_xinfo(\(Self.quoted(table, "'")))
      WHERE hidden = 0 ORDER BY cid
      """
    ) { row in
      let name = Self.quoted(Self.text(row, 0))
      shape.columns.append(name)
      if sqlite3_column_int64(row, 1) > 0 { shape.keys.append(name) }
    }
    return shape
  }

  /// Visits rows in the order of their numbers; returns how many stretches
  /// could not be read.
  ///
  /// Every turn begins beyond the one before it, wherever the pages of a
  /// damaged table lead: so there is an end.
  private func visitByNumber(
    _ shape: Shape, _ body: (OpaquePointer?) -> Void
  ) -> Int {
    var first = Int64.min
    var gaps = 0
    while true {
      var last: Int64?
      let isWhole = visit(
        """
        SELECT rowid, \(shape.list) FROM \(shape.table)
        WHERE rowid >= \(first) ORDER BY rowid
        """
      ) { row in
        let number = sqlite3_column_int64(row, 0)
        if number >= last ?? first { last = number }
        body(row)
      }
      if isWhole { return gaps }
      gaps += 1
      if let last {
        guard last < Int64.max else { return gaps }
        first = last + 1
      }
      guard let found = readable(in: shape.table, from: first) else {
        return gaps
      }
      // A row that is found and cannot be read is passed over.
      guard last != nil || found > first else {
        guard found < Int64.max else { return gaps }
        first = found + 1
        continue
      }
      first = found
    }
  }

  /// Visits rows from both ends: what neither can reach is one stretch.
  private func visitByKey(
    _ shape: Shape, _ body: (OpaquePointer?) -> Void
  ) -> Int {
    let rows = "SELECT 0, \(shape.list) FROM \(shape.table) ORDER BY "
    if visit(rows + shape.keys.joined(separator: ", "), body) { return 0 }
    let back = shape.keys.map { $0 + " DESC" }.joined(separator: ", ")
    _ = visit(rows + back, body)
    return 1
  }

  /// The number of the first row from `first` on that can be found again;
  /// nil: there is none.
  private func readable(in table: String, from first: Int64) -> Int64? {
    var found: Int64?
    // Also where it says that there are no more.
    func canRead(_ number: Int64) -> Bool {
      found = nil
      let isWhole = visit(
        "SELECT rowid FROM \(table) WHERE rowid >= \(number) LIMIT 1"
      ) { found = sqlite3_column_int64($0, 0) }
      return isWhole && found ?? number >= number
    }
    // Numbers begin at 1 in a history.
    var bad = max(first, 1) - 1
    var step: Int64 = 1
    if bad > Int64.max >> 1 { return nil }
    while !canRead(bad + step) {
      bad += step
      step *= 2
      if step > 1 << 48 { return nil }
    }
    var good = bad + step
    while good - bad > 1 {
      let middle = bad + (good - bad) / 2
      if canRead(middle) { good = middle } else { bad = middle }
    }
    return canRead(good) ? found : nil
  }

  private func insertion(_ shape: Shape) throws -> OpaquePointer? {
    let places = shape.columns.map { _ in "?" }.joined(separator: ", ")
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v2(
      connection,
      """
      INSERT OR IGNORE INTO \(shape.table) (\(shape.list)) VALUES (\(places))
      """, -1, &statement, nil)
    guard code == SQLITE_OK else { throw problem() }
    return statement
  }

  private func canPrepare(_ sql: String) -> Bool {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    return sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
  }

  /// Visits the rows of a question; false: not all could be read.
  private func visit(_ sql: String, _ body: (OpaquePointer?) -> Void) -> Bool {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard
      sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
    else { return false }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: body(statement)
      case SQLITE_DONE: return true
      default: return false
      }
    }
  }

  private static func text(_ row: OpaquePointer?, _ column: Int32) -> String {
    sqlite3_column_text(row, column).map { String(cString: $0) } ?? ""
  }

  /// A name as a part of a statement, whatever is in it.
  private static func quoted(
    _ name: String, _ mark: Unicode.Scalar = "\""
  ) -> String {
    var result = String(mark)
    for character in name.unicodeScalars {
      result.unicodeScalars.append(character)
      if character == mark { result.unicodeScalars.append(mark) }
    }
    return result + String(mark)
  }

  private func problem() -> Problem {
    let reason =
      sqlite3_errmsg(connection).map { String(cString: $0) } ?? "no memory"
    return Problem(sentence: "history \(path): \(reason)", ending: .failed)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CSQLite
import CallbackRegistry
import Glibc

/// A history that is only read.
struct Reader: ~Copyable {
  private let path: String
  private let connection: OpaquePointer?

  /// Nothing but a history is accepted.
  init(_ path: String) throws {
    self.path = path
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READONLY, nil)
    connection = opened
    guard code == SQLITE_OK else { throw problem() }
    sqlite3_busy_timeout(opened, 2_000)
    guard
      try rows("PRAGMA application_id").first?.first
        == "\(Schema.applicationIdentifier)"
    else {
      throw Problem(
        sentence: "history \(path): it is no history", ending: .failed)
    }
  }

  deinit { sqlite3_close(connection) }

  /// The rows of a question, each column as text.
  func rows(_ sql: String) throws -> [[String]] {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard
      sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
    else { throw problem() }
    var rows: [[String]] = []
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW:
        rows.append(
          (0..<sqlite3_column_count(statement)).map {
            sqlite3_column_text(statement, $0).map { String(cString: $0) } ?? ""
          })
      case SQLITE_DONE: return rows
      default: throw problem()
      }
    }
  }

  /// Visits the rows of a question, one by one.
  func visit(_ sql: String, _ body: (Row) throws -> Void) throws {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard
      sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK,
      let statement
    else { throw problem() }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: try body(Row(statement: statement))
      case SQLITE_DONE: return
      default: throw problem()
      }
    }
  }

  /// How many rows of a table have such rowids.
  func count(_ table: String, from first: Int64, to last: Int64) throws -> Int64
  {
    var count: Int64 = 0
    try visit(
      "SELECT count(*) FROM \(table) WHERE rowid BETWEEN \(first) AND \(last)"
    ) { count = $0.integer(0) }
    return count
  }

  /// Copies everything into a new file without a log beside it.
  func copy(to other: String) throws {
    guard access(other, F_OK) != 0 else {
      throw Problem(
        sentence: "\(other) exists and was left as it is; name another file",
        ending: .failed)
    }
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard
      sqlite3_prepare_v2(connection, "VACUUM INTO ?1", -1, &statement, nil)
        == SQLITE_OK,
      sqlite3_bind_text(
        statement, 1, other, -1,
        unsafeBitCast(-1, to: sqlite3_destructor_type.self)) == SQLITE_OK,
      sqlite3_step(statement) == SQLITE_DONE
    else { throw problem() }
  }

  private func problem() -> Problem {
    let reason =
      sqlite3_errmsg(connection).map { String(cString: $0) } ?? "no memory"
    return Problem(sentence: "history \(path): \(reason)", ending: .failed)
  }
}

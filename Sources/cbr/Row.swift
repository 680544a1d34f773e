// SPDX-License-Identifier: Apache-2.0

import CSQLite
import CallbackRegistry

/// A row that a question has found, until it goes on to the next.
struct Row {
  let statement: OpaquePointer

  func integer(_ column: Int32) -> Int64 {
    sqlite3_column_int64(statement, column)
  }

  func text(_ column: Int32) -> String {
    sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
  }

  /// Nil: the column is no hash.
  func digest(_ column: Int32) -> Digest? {
    guard sqlite3_column_bytes(statement, column) == Int32(Digest.bytes),
      let bytes = sqlite3_column_blob(statement, column)
    else { return nil }
    return Digest(bytes)
  }

  /// Adds all columns to a hash.
  func add(to hash: Hash) {
    hash.appendRow()
    for column in 0..<sqlite3_column_count(statement) {
      switch sqlite3_column_type(statement, column) {
      case SQLITE_INTEGER: hash.append(integer(column))
      case SQLITE_NULL: hash.appendNull()
      default:
        let length = Int(sqlite3_column_bytes(statement, column))
        sqlite3_column_text(statement, column)?.withMemoryRebound(
          to: CChar.self, capacity: length
        ) { hash.append(text: $0, length: length) }
      }
    }
  }
}

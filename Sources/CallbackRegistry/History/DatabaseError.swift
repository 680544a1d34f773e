// SPDX-License-Identifier: Apache-2.0

import CSQLite

/// What SQLite answered when it did not do what it was asked.
struct DatabaseError: Error {
  /// An extended result code; its lower byte is the primary one.
  let code: Int32

  var primary: Int32 { code & 0xFF }

  /// Someone else holds the lock.
  ///
  /// This passes, and nothing is wrong.
  var isBusy: Bool { primary == SQLITE_BUSY }

  /// The file is not, or no longer, what this library made.
  var isDamage: Bool {
    primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB
  }

  /// The disk has no room.
  var isFull: Bool { primary == SQLITE_FULL }

  /// SQLite's own words for the code.
  var text: UnsafePointer<CChar>? { sqlite3_errstr(code) }

  /// The file is not what this library made.
  static var corrupt: DatabaseError { DatabaseError(code: SQLITE_CORRUPT) }

  static var noMemory: DatabaseError { DatabaseError(code: SQLITE_NOMEM) }
}

/// Throws what is not success.
@inline(__always)
func check(_ code: Int32) throws(DatabaseError) {
  if code != SQLITE_OK { throw DatabaseError(code: code) }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite

/// Why a history could not be opened.
enum OpeningError: Error {
  case database(DatabaseError)
  /// It is a history, but cannot be read as one.
  case damaged(DatabaseError)
  case readOnly
  case notAHistory(application: Int64)
  case newer(format: Int64)
  /// What SQLite would take for an empty database, or wait for.
  case obstacle(Int32)
  case noLog

  /// Another process has a lock, which it may soon give up.
  var isBusy: Bool {
    if case .database(let error) = self { return error.isBusy }
    return false
  }

  /// What SQLite would have said.
  var code: Int32 {
    switch self {
    case .database(let error), .damaged(let error): error.code
    case .readOnly: SQLITE_READONLY
    case .notAHistory, .newer, .obstacle: SQLITE_NOTADB
    case .noLog: SQLITE_NOLFS
    }
  }

  var status: Status {
    if case .database(let error) = self, error.primary == SQLITE_NOMEM {
      return .noMemory
    }
    return .audit
  }
}

// Each sentence names the file, what is wrong, and what can be done.
extension Text {
  mutating func append(_ error: OpeningError, path: UnsafePointer<CChar>) {
    append("history ")
    append(shortened: path)
    append(": ")
    switch error {
    case .readOnly:
      append(
        Self.sentence(for: cbr_path_obstacle(path)) ?? Self.readOnlyFile)
    case .obstacle(let obstacle):
      append(Self.sentence(for: obstacle) ?? Self.noDatabase)
    case .notAHistory(let application):
      append("it is a database of another program")
      if application != 0 {
        append(" (application_id ")
        append(application)
        append(")")
      }
      append(" and was left as it is; name another path")
    case .newer(let format):
      append("its format is ")
      append(format)
      append(", and this library knows formats up to ")
      append(Schema.format)
      append("; use a newer library, or name another path")
    case .noLog:
      append(
        "no write-ahead log is possible there; name a path on a local file")
      append(" system")
    case .database(let error), .damaged(let error): append(error, path: path)
    }
  }

  /// Of a path that would leave no room for the reason, its end.
  mutating func append(shortened path: UnsafePointer<CChar>) {
    var length = 0
    while path[length] != 0 { length += 1 }
    if length > Self.longestPath { append("...") }
    append(path + max(0, length - Self.longestPath))
  }

  private static var longestPath: Int { 400 }

  private mutating func append(
    _ error: DatabaseError, path: UnsafePointer<CChar>
  ) {
    switch error.primary {
    case SQLITE_NOTADB: append(Self.noDatabase)
    case SQLITE_BUSY, SQLITE_LOCKED:
      append("another program has locked it; end that program's transaction")
    case SQLITE_FULL: append("its file system is full; make room there")
    case SQLITE_CORRUPT:
      append("it is damaged; move it away together with its -wal file")
    default:
      if let obstacle = Self.sentence(for: cbr_path_obstacle(path)) {
        append(obstacle)
      } else if error.primary == SQLITE_CANTOPEN {
        append(
          "no file can be made or opened there; see whether its directory is")
        append(" writable, or name another path")
      } else {
        append(error.text)
        append(" (SQLite error ")
        append(Int64(error.code))
        append("); name another path")
      }
    }
  }

  private static var noDatabase: StaticString {
    """
    it is not an SQLite database and was left as it is; move it away, or name \
    another path
    """
  }

  private static var readOnlyFile: StaticString {
    "it is read-only; make it writable, or name another path"
  }

  /// What is in the way of a path, and what can be done; nil: nothing is.
  private static func sentence(for obstacle: Int32) -> StaticString? {
    switch obstacle {
    case Int32(CBR_PATH_IS_DIRECTORY):
      "it is a directory; name a file in it"
    case Int32(CBR_PATH_IS_NO_FILE):
      "it is a device or the like; name a file"
    case Int32(CBR_PATH_IS_ONE_BYTE): noDatabase
    case Int32(CBR_PATH_READ_ONLY): readOnlyFile
    case Int32(CBR_PATH_TOO_LONG):
      """
      its name is too long for the files beside it, whose names are longer; \
      shorten it
      """
    case Int32(CBR_PATH_IS_REMOTE):
      """
      it is on a network file system, where a write-ahead log is not safe; \
      name a path on a local one
      """
    case Int32(CBR_PATH_NO_DIRECTORY):
      "its directory does not exist; make it, or name another path"
    case Int32(CBR_PATH_DIRECTORY_READ_ONLY):
      """
      its directory is not writable, and a database needs files beside it; \
      make the directory writable, or name another path
      """
    case Int32(CBR_PATH_FILE_SYSTEM_READ_ONLY):
      "its file system is read-only; name a path on another one"
    default: nil
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CSQLite
import CallbackRegistry
import Glibc

/// A history that is only read.
///
/// SQLite makes a log and its index beside a database even for somebody who
/// only reads it, and leaves them there. This one opens what is there and makes
/// nothing: a history with a log by the index of the log, which is not written
/// either, and one without a log as a file that does not change.
struct Reader: ~Copyable {
  private let path: String
  private let connection: OpaquePointer?
  /// What SQLite said when it was opened.
  private let code: Int32
  /// Nobody had the history open, as far as one could see.
  private let isAlone: Bool
  private let lock: SharedLock

  /// Reads from a history; again, where a program has begun to write it
  /// meanwhile and nobody could know.
  static func reading<Result>(
    _ path: String, _ body: (borrowing Reader) throws -> Result
  ) throws -> Result {
    for _ in 0..<3 {
      let reader = try open(path)
      let result = Swift.Result { try body(reader) }
      if !reader.wasDisturbed { return try result.get() }
    }
    throw Problem(
      sentence: "history \(path): it is opened and closed all the time; "
        + "try again", ending: .failed)
  }

  /// Nothing but a history is accepted.
  ///
  /// What is read means something if `checkSteady` says so afterwards.
  static func open(_ path: String) throws -> Reader {
    try checkFile(path)
    let lock = SharedLock(path)
    let isAlone = !hasLog(path)
    guard isAlone || access(path + "-shm", F_OK) == 0 else {
      throw Problem(
        sentence: """
          history \(path): its log lies beside it without its index; \
          "cbr recover \(path)" makes one
          """, ending: .failed)
    }
    let reader = Reader(path, isAlone: isAlone, lock: lock)
    try reader.checkContent()
    return reader
  }

  private init(_ path: String, isAlone: Bool, lock: consuming SharedLock) {
    self.path = path
    self.isAlone = isAlone
    self.lock = lock
    var opened: OpaquePointer?
    code = sqlite3_open_v2(
      Self.address(path) + (isAlone ? "?immutable=1" : "?readonly_shm=1"),
      &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nil)
    connection = opened
    sqlite3_busy_timeout(opened, 2_000)
  }

  deinit { sqlite3_close(connection) }

  func checkSteady() throws {
    guard wasDisturbed else { return }
    throw Problem(
      sentence: "history \(path): it was opened meanwhile; try again",
      ending: .failed)
  }

  private var wasDisturbed: Bool {
    isAlone && Self.hasLog(path)
  }

  private static func hasLog(_ path: String) -> Bool {
    var log = stat()
    guard stat(path + "-wal", &log) == 0 else { return false }
    return log.st_size > 0 || access(path + "-shm", F_OK) == 0
  }

  private static func checkFile(_ path: String) throws {
    var file = stat()
    var reason: String?
    if stat(path, &file) != 0 {
      reason = String(cString: strerror(errno))
    } else if file.st_mode & S_IFMT == S_IFDIR {
      reason = "it is a directory; name a file in it"
    } else if file.st_mode & S_IFMT != S_IFREG {
      reason = "it is a device or the like; name a file"
    }
    if let reason {
      throw Problem(sentence: "history \(path): \(reason)", ending: .failed)
    }
  }

  private func checkContent() throws {
    guard code == SQLITE_OK else { throw problem() }
    _ = try rows("PRAGMA temp_store = MEMORY")
    let kind = try rows("PRAGMA application_id").first?.first
    guard kind == "\(Schema.applicationIdentifier)" else {
      throw Problem(
        sentence: "history \(path): it is no history", ending: .failed)
    }
    let format = Int64(try rows("PRAGMA user_version").first?.first ?? "") ?? 0
    guard format <= Schema.format else {
      throw Problem(
        sentence: """
          history \(path): its format is \(format), and this command knows \
          formats up to \(Schema.format); use a newer one
          """, ending: .failed)
    }
  }

  /// The path as a URI, in which nothing of it means anything else.
  private static func address(_ path: String) -> String {
    var result = path.hasPrefix("/") ? "file://" : "file:./"
    for byte in path.utf8 {
      let isPlain = byte < 0x80 && !"?#%".utf8.contains(byte)
      result +=
        isPlain
        ? String(Unicode.Scalar(byte)) : "%" + String(byte, radix: 16)
    }
    return result
  }

  /// The rows of a question, each column as text.
  func rows(_ sql: String) throws -> [[String]] {
    try optionalRows(sql).map { row in row.map { $0 ?? "" } }
  }

  /// The same, with nil for NULL.
  func optionalRows(_ sql: String) throws -> [[String?]] {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard
      sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
    else { throw problem() }
    var rows: [[String?]] = []
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW:
        rows.append(
          (0..<sqlite3_column_count(statement)).map {
            sqlite3_column_text(statement, $0).map { String(cString: $0) }
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

  /// The only number that a question has for an answer.
  func number(_ sql: String) throws -> Int64 {
    Int64(try rows(sql).first?.first ?? "") ?? 0
  }

  /// Copies everything into an empty file, without a log beside it.
  ///
  /// `isOn` is asked now and then; false gives up.
  func copy(to other: String, while isOn: @escaping () -> Bool) throws {
    var isOn = isOn
    try withUnsafeMutablePointer(to: &isOn) { question in
      sqlite3_progress_handler(
        connection, 100_000,
        { question in
          let isOn = question!.assumingMemoryBound(to: (() -> Bool).self)
          return isOn.pointee() ? 0 : 1
        }, question)
      defer { sqlite3_progress_handler(connection, 0, nil, nil) }
      try vacuum(into: other)
    }
  }

  private func vacuum(into other: String) throws {
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

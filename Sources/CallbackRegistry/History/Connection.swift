// SPDX-License-Identifier: Apache-2.0

import CSQLite

/// A connection to a database.
///
/// A copy names the same one. SQLite is told not to lock it: whoever uses it
/// has its turn (`Turn`). What changes the database is done by `alone` or
/// `transaction`, which also keep other processes from it.
struct Connection {
  private let raw: OpaquePointer
  /// None in memory.
  private(set) var lease: FileLeasePointer?

  /// Opens a database file, made when it is missing, or one in memory.
  static func open(
    _ path: UnsafePointer<CChar>?
  ) throws(DatabaseError) -> Connection {
    let name: StaticString = ":memory:"
    return try open(
      path ?? name.characters, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
  }

  /// Opens a database file that exists, and changes nothing in it.
  static func openToRead(
    _ path: UnsafePointer<CChar>
  ) throws(DatabaseError) -> Connection {
    try open(path, SQLITE_OPEN_READONLY)
  }

  private static func open(
    _ path: UnsafePointer<CChar>, _ mode: Int32
  ) throws(DatabaseError) -> Connection {
    var raw: OpaquePointer?
    let flags = mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &raw, flags, nil)
    guard code == SQLITE_OK, let raw else {
      sqlite3_close(raw)
      throw DatabaseError(code: code == SQLITE_OK ? SQLITE_NOMEM : code)
    }
    return Connection(raw: raw)
  }

  /// Makes writing a matter of one process at a time.
  mutating func share(
    _ path: UnsafePointer<CChar>
  ) throws(DatabaseError) {
    lease = try FileLease.make(of: path)
  }

  /// Every statement must have been finalized.
  ///
  /// The last connection of all copies the log.
  func close() {
    let hasLease = (try? lease?.pointee.take()) != nil
    sqlite3_close(raw)
    guard let lease else { return }
    if hasLease {
      lease.pointee.remove()
      lease.pointee.give()
    }
    lease.deinitialize(count: 1)
    Memory.release(lease)
  }

  /// Does something that changes the database or its log.
  func alone<Result>(
    _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try lease?.pointee.take()
    defer { lease?.pointee.give() }
    return try body()
  }

  /// Changes the database as a whole or not at all.
  func transaction<Result>(
    _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try alone { () throws(DatabaseError) in
      do throws(DatabaseError) {
        try execute("BEGIN IMMEDIATE")
        let result = try body()
        try execute("COMMIT")
        return result
      } catch {
        rollBack()
        throw error
      }
    }
  }

  func execute(_ sql: StaticString) throws(DatabaseError) {
    try execute(sql.characters)
  }

  func execute(_ sql: UnsafePointer<CChar>) throws(DatabaseError) {
    try check(sqlite3_exec(raw, sql, nil, nil, nil))
  }

  /// Prepares a statement that is used again and again.
  func prepare(_ sql: StaticString) throws(DatabaseError) -> Statement {
    try prepare(sql.characters, length: sql.utf8CodeUnitCount)
  }

  func prepare(
    _ sql: UnsafePointer<CChar>, length: Int
  ) throws(DatabaseError) -> Statement {
    var statement: OpaquePointer?
    // The length counts the ending zero, so that SQLite need not copy.
    try check(
      sqlite3_prepare_v3(
        raw, sql, Int32(length + 1), UInt32(SQLITE_PREPARE_PERSISTENT),
        &statement, nil))
    guard let statement else { throw DatabaseError(code: SQLITE_MISUSE) }
    return Statement(raw: statement)
  }

  /// The first column of the only row; nil without one.
  func integer(_ sql: StaticString) throws(DatabaseError) -> Int64? {
    let statement = try prepare(sql)
    defer { statement.finalize() }
    guard try statement.step() else { return nil }
    return statement.integer(0)
  }

  /// The rows that the last statement has changed.
  var changes: Int32 { sqlite3_changes(raw) }

  var lastRow: Int64 { sqlite3_last_insert_rowid(raw) }

  var isReadOnly: Bool {
    let main: StaticString = "main"
    return sqlite3_db_readonly(raw, main.characters) == 1
  }

  /// What SQLite says about the last thing that failed.
  var message: UnsafePointer<CChar>? { sqlite3_errmsg(raw) }

  /// Switches to a write-ahead log; false where none is possible.
  func switchToLog() throws(DatabaseError) -> Bool {
    let statement = try prepare("PRAGMA journal_mode = WAL")
    defer { statement.finalize() }
    guard try statement.step(), let mode = statement.text(0) else {
      return false
    }
    let log: StaticString = "wal"
    return areEqual(mode, log.characters, length: 4)
  }

  /// How long a statement waits for another program's lock.
  func waitForLocks(milliseconds: Int32) {
    sqlite3_busy_timeout(raw, milliseconds)
  }

  /// Calls `note` with the length of the write-ahead log after each commit,
  /// instead of SQLite's own checkpoints.
  func onCommit(
    _ argument: UnsafeMutableRawPointer?,
    _ note:
      @escaping @convention(c) (
        UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, Int32
      ) -> Int32
  ) {
    sqlite3_wal_hook(raw, note, argument)
  }

  /// Makes what is committed survive a loss of power.
  ///
  /// The log is synced itself. A transaction with synchronous = FULL would do
  /// so too, but only if it changed something: SQLite writes no page whose
  /// content stays the same.
  func sync() throws(DatabaseError) {
    var log: UnsafeMutablePointer<sqlite3_file>?
    let main: StaticString = "main"
    try check(
      sqlite3_file_control(
        raw, main.characters, SQLITE_FCNTL_JOURNAL_POINTER, &log))
    // In memory there is none.
    guard let log, let methods = log.pointee.pMethods else { return }
    guard let sync = methods.pointee.xSync else {
      throw DatabaseError(code: SQLITE_MISUSE)
    }
    try check(sync(log, SQLITE_SYNC_NORMAL))
  }

  /// Ends a transaction that failed, unless SQLite has done so itself.
  ///
  /// False: it goes on, for want of memory.
  @discardableResult
  func rollBack() -> Bool {
    if sqlite3_get_autocommit(raw) == 0 { try? execute("ROLLBACK") }
    return sqlite3_get_autocommit(raw) != 0
  }

  /// Copies the write-ahead log into the database as far as readers allow.
  ///
  /// Returns whether that was all of it.
  @discardableResult
  func checkpoint(truncating: Bool = false) throws(DatabaseError) -> Bool {
    let mode =
      truncating ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
    return try alone { () throws(DatabaseError) in
      var pages: Int32 = 0
      var copied: Int32 = 0
      try check(sqlite3_wal_checkpoint_v2(raw, nil, mode, &pages, &copied))
      return pages == copied
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite

/// An open database, and the row of this process's run in it.
struct Database {
  let connection: Connection
  let run: Int64

  /// How long one statement waits for another program's lock.
  ///
  /// The writer tries again; whoever opens a history is told.
  private static var lockMilliseconds: Int32 { 100 }
  private static var openingMilliseconds: Int32 { 2_000 }

  /// Opens the database of a history, made when it is missing; in memory
  /// without a path.
  ///
  /// Nothing is changed in a file that is not a history.
  ///
  /// Without a run of its own: for somebody who only looks after what others
  /// have left.
  static func open(
    _ path: UnsafePointer<CChar>?, run: RunIdentity?
  ) throws(OpeningError) -> Database {
    let deadline = Deadline.after(UInt64(openingMilliseconds) * 1_000_000)
    while true {
      do throws(OpeningError) {
        return try openOnce(path, run: run)
      } catch {
        // SQLite does not wait for everybody: where several processes switch a
        // new file to a write-ahead log, all but one are told at once.
        guard error.isBusy, !deadline.hasPassed else { throw error }
        cbr_pause(1_000_000)
      }
    }
  }

  private static func openOnce(
    _ path: UnsafePointer<CChar>?, run: RunIdentity?
  ) throws(OpeningError) -> Database {
    if let path {
      try Admission.check(path)
      do throws(DatabaseError) {
        try setAsideLogWithoutDatabase(path)
      } catch { throw .database(error) }
    }
    var connection: Connection
    do throws(DatabaseError) {
      connection = try Connection.open(path)
    } catch { throw .database(error) }
    do throws(OpeningError) {
      connection.waitForLocks(milliseconds: openingMilliseconds)
      let isNew = path == nil ? true : try Admission.check(connection)
      if let path {
        do throws(DatabaseError) {
          try connection.share(path)
        } catch { throw .database(error) }
      }
      return try set(
        up: connection, isNew: isNew, isFile: path != nil, run: run)
    } catch {
      connection.close()
      throw error
    }
  }

  /// SQLite would delete it.
  ///
  /// With the lease: whoever makes this history just now has made a database
  /// before its log.
  private static func setAsideLogWithoutDatabase(
    _ path: UnsafePointer<CChar>
  ) throws(DatabaseError) {
    guard cbr_path_bytes(path) == 0, SetAside.hasLog(path) else { return }
    Hook.logFound.reached(0)
    let name = try SetAside.name(for: path)
    try FileLease.held(of: path) {
      if cbr_path_bytes(path) == 0 {
        _ = SetAside.log(of: path, to: name.start)
      }
    }
  }

  private static func set(
    up connection: Connection, isNew: Bool, isFile: Bool, run: RunIdentity?
  ) throws(OpeningError) -> Database {
    do throws(DatabaseError) {
      if isFile {
        try connection.execute(
          "PRAGMA page_size = 8192; PRAGMA synchronous = NORMAL")
        guard try connection.alone(connection.switchToLog) else { throw noLog }
      }
      try connection.execute(
        """
        PRAGMA trusted_schema = OFF; PRAGMA secure_delete = FAST;
        PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
        PRAGMA cache_size = -8192
        """)
      let number =
        if let run { try begin(run, on: connection, isNew: isNew) } else {
          try connection.integer("SELECT max(run) FROM run") ?? 0
        }
      connection.waitForLocks(milliseconds: lockMilliseconds)
      return Database(connection: connection, run: number)
    } catch {
      if error.code == noLog.code { throw .noLog }
      throw error.isDamage && !isNew ? .damaged(error) : .database(error)
    }
  }

  /// A code that SQLite itself does not use here.
  private static var noLog: DatabaseError {
    DatabaseError(code: SQLITE_NOLFS)
  }

  /// Makes the schema and the run's row in one transaction.
  private static func begin(
    _ run: RunIdentity, on connection: Connection, isNew: Bool
  ) throws(DatabaseError) -> Int64 {
    try connection.transaction { () throws(DatabaseError) in
      // Another process may have been faster.
      let tables = try connection.integer("SELECT count(*) FROM sqlite_schema")
      if isNew, tables == 0 { try Schema.create(on: connection) }
      return try Run.begin(run, on: connection)
    }
  }
}

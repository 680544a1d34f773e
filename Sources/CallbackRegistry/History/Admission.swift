// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite

/// Whether a file may be used as a history.
///
/// Only reads.
enum Admission {
  /// Refuses what SQLite would open, but is no file, or is not empty: it takes
  /// a file of one byte for an empty database.
  static func check(_ path: UnsafePointer<CChar>) throws(OpeningError) {
    let obstacle = cbr_path_obstacle(path)
    switch obstacle {
    case Int32(CBR_PATH_IS_DIRECTORY), Int32(CBR_PATH_IS_NO_FILE),
      Int32(CBR_PATH_IS_ONE_BYTE), Int32(CBR_PATH_TOO_LONG),
      Int32(CBR_PATH_IS_REMOTE):
      throw .obstacle(obstacle)
    default: break
    }
  }

  /// Returns whether the database is empty, and a history is to be made.
  static func check(_ connection: Connection) throws(OpeningError) -> Bool {
    if connection.isReadOnly { throw .readOnly }
    return try isEmpty(connection)
  }

  /// Refuses what is another program's, or of a newer format.
  static func isEmpty(_ connection: Connection) throws(OpeningError) -> Bool {
    var application: Int64 = 0
    let format: Int64
    let tables: Int64
    do throws(DatabaseError) {
      // At one moment: another process may be making a history of it.
      try connection.execute("BEGIN")
      application = try connection.integer("PRAGMA application_id") ?? 0
      format = try connection.integer("PRAGMA user_version") ?? 0
      tables =
        try connection.integer("SELECT count(*) FROM sqlite_schema") ?? 0
      guard connection.rollBack() else { throw .noMemory }
    } catch {
      let isOurs = application == Schema.applicationIdentifier
      throw isOurs && error.isDamage ? .damaged(error) : .database(error)
    }
    if application == Schema.applicationIdentifier {
      if format > Schema.format { throw .newer(format: format) }
      return tables == 0
    }
    if tables > 0 || application != 0 || format != 0 {
      throw .notAHistory(application: application)
    }
    return true
  }
}

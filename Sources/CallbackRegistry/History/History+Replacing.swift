// SPDX-License-Identifier: Apache-2.0

import CPlatform

extension UnsafeMutablePointer where Pointee == History {
  /// Sets a damaged database aside, and opens another one that names it.
  ///
  /// `found` is the file that is damaged: another process may have been
  /// faster.
  func openInstead(
    of found: FileIdentity
  ) throws(OpeningError) -> Database {
    guard let path = pointee.path else { throw .database(.corrupt) }
    do throws(DatabaseError) {
      let name = try SetAside.name(for: path)
      try FileLease.held(of: path) {
        if FileIdentity(of: path) == found {
          _ = SetAside.database(path, to: name.start)
        }
      }
      var run = pointee.runIdentity
      run.predecessor = UnsafePointer(name.start)
      do throws(OpeningError) {
        let database = try Database.open(path, run: run)
        Recovery.note(
          "the database was damaged: it is set aside, and another one made",
          code: 0, database: database)
        return database
      } catch { throw DatabaseError(code: error.code) }
    } catch { throw .database(error) }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A history that the calling process does not record in.
package enum HistoryFile {
  /// Takes over what dead processes left beside a history that exists.
  ///
  /// Nil: `status` and a sentence in `problem` say why.
  package static func recover(
    _ path: UnsafePointer<CChar>, status: inout Status, problem: inout Text
  ) -> RecoveryReport? {
    open(path, status: &status, problem: &problem) { absolute, database in
      guard let directory = try? Scratch(bytes: 8_192),
        Recovery.putDirectory(of: absolute, into: directory)
      else { return nil }
      let report = Recovery.recoverAll(of: absolute, database: database)
      cbr_directory_remove(directory.start)
      return report
    }
  }

  /// Tells a handle's life: see `Life`.
  ///
  /// False when nothing is known of it; then, or when `status` is not OK,
  /// nothing is said.
  package static func explain(
    _ handle: UInt64, in path: UnsafePointer<CChar>, into text: inout Text,
    status: inout Status, problem: inout Text
  ) -> Bool {
    let isKnown = open(path, status: &status, problem: &problem) {
      _, database -> Bool? in
      let connection = database.connection
      do throws(DatabaseError) {
        guard try Life.life(of: handle, connection, into: &text) else {
          return try Life.lease(handle, connection, into: &text)
        }
        try Life.calls(of: handle, connection, into: &text)
        return true
      } catch { return nil }
    }
    return isKnown ?? false
  }

  static func open<Result>(
    _ path: UnsafePointer<CChar>, status: inout Status, problem: inout Text,
    _ body: (UnsafePointer<CChar>, Database) -> Result?
  ) -> Result? {
    status = .ok
    guard let absolute = cbr_absolute_path(path) else {
      status = .audit
      problem.append(.obstacle(Int32(CBR_PATH_NO_DIRECTORY)), path: path)
      return nil
    }
    defer { Memory.release(absolute) }
    do throws(OpeningError) {
      let database = try Database.open(absolute, run: nil)
      defer { database.connection.close() }
      let result = body(absolute, database)
      if result == nil { status = .noMemory }
      return result
    } catch {
      status = error.status
      problem.append(error, path: path)
      return nil
    }
  }
}

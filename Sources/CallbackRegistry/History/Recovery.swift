// SPDX-License-Identifier: Apache-2.0
//
// Taking over what processes that have died left in their rings.
//
// For each file of rings that nobody locks: read on where the dead writer had
// come to (the consumed position of each ring was committed together with the
// rows), write the rest, and say how the run ended; make that durable; remove
// the file. Every transaction holds the new positions, so being killed at any
// step and doing it again comes to the same; the lock keeps two processes from
// doing it at once. What fails leaves the file for the next time; what cannot
// be read is set aside under another name.

import CPlatform
import Synchronization

/// How the process of a run has ended it, as the header of its rings says.
enum RunEnding: UInt64 {
  case unknown = 0
  case closed = 1
  case exit = 2

  /// `run.ended`, when the rings were left behind.
  var name: StaticString {
    switch self {
    case .unknown: "crash"
    case .closed: "closed"
    case .exit: "exit"
    }
  }
}

/// What became of the files of rings beside a history.
package struct RecoveryReport {
  /// Processes that have died and whose rings are in the database now.
  package var recovered = 0
  /// Files of processes that are there.
  package var inUse = 0
  /// Files that cannot be read, and bear another name now.
  package var setAside = 0
  /// Files that are left for the next time.
  package var failed = 0
}

enum Recovery {
  /// Names the directory of files of rings beside a history; false when its
  /// name is too long.
  static func putDirectory(
    of path: UnsafePointer<CChar>, into scratch: borrowing Scratch
  ) -> Bool {
    var text = scratch.text
    text.append(path)
    text.append(".rings")
    return !text.isCut
  }

  /// Recovers all that is beside a history, and wherever runs have noted that
  /// their rings are.
  ///
  /// Failures are noted in `fault`, and stop nothing. What has been missed once
  /// is looked for only when `missed`.
  @discardableResult
  static func recoverAll(
    of path: UnsafePointer<CChar>, missed: Bool = true, database: Database
  ) -> RecoveryReport {
    var report = RecoveryReport()
    if let directory = try? Scratch(bytes: 8_192),
      putDirectory(of: path, into: directory)
    {
      recoverFiles(in: directory.start, database: database, report: &report)
    }
    var last: Int64 = 0
    while let place = RingPlace.next(
      after: last, missed: missed, of: path, on: database.connection)
    {
      last = place.run
      recover(place, of: path, database: database, report: &report)
    }
    return report
  }

  private static func recover(
    _ place: borrowing RingPlace, of path: UnsafePointer<CChar>,
    database: Database, report: inout RecoveryReport
  ) {
    let before = report.setAside
    recover(place.file, owner: path, database: database, report: &report)
    if report.setAside > before {
      RingPlace.forget(place.run, on: database.connection)
    } else if cbr_path_is_missing(place.file) {
      place.settle(database: database)
    }
  }

  /// Recovers all that is in a directory.
  static func recoverFiles(
    in directory: UnsafePointer<CChar>, database: Database,
    report: inout RecoveryReport
  ) {
    guard let listing = cbr_directory_open(directory) else { return }
    defer { cbr_directory_close(listing) }
    while let name = cbr_directory_next(listing) {
      guard isRingFile(name), let path = try? Scratch(bytes: 8_192) else {
        continue
      }
      var text = path.text
      text.append(directory)
      text.append("/")
      text.append(name)
      if text.isCut { continue }
      recover(path.start, database: database, report: &report)
    }
  }

  private static func isRingFile(_ name: UnsafePointer<CChar>) -> Bool {
    let ending: StaticString = ".ring"
    let length = length(of: name, limit: 256)
    return length > 5
      && areEqual(name + length - 5, ending.characters, length: 5)
  }

  /// Recovers one file, if its process is gone.
  ///
  /// Where others may make files too, it must belong to this process's user or
  /// to that of `owner`.
  private static func recover(
    _ path: UnsafePointer<CChar>, owner: UnsafePointer<CChar>? = nil,
    database: Database, report: inout RecoveryReport
  ) {
    let file = cbr_file_open(path)
    guard file >= 0 else {
      if file == CBR_FILE_IN_USE { report.inUse += 1 }
      return
    }
    defer { cbr_file_close(file) }
    if let owner, !cbr_file_is_own(file, owner) { return }
    do throws(DeadRings.Problem) {
      var rings = try DeadRings.read(file)
      do throws(DatabaseError) {
        let identity = RunIdentity(rings.header.pointee.identity.run)
        let run = try Run.find(identity, on: database.connection)
        guard let run else {
          report.setAside += 1
          setAside(path, "rings of an unknown run", database: database)
          return
        }
        Hook.ringsRead.reached(0)
        try write(
          &rings, as: Database(connection: database.connection, run: run))
        _ = cbr_file_remove(path)
        report.recovered += 1
        Hook.ringsRemoved.reached(0)
      } catch {
        report.failed += 1
        note(
          "rings of a dead process could not be written", code: error.code,
          database: database)
      }
    } catch {
      guard error == .unreadable else {
        report.failed += 1
        return
      }
      report.setAside += 1
      setAside(path, "unreadable rings of a dead process", database: database)
    }
  }

  private static func write(
    _ rings: inout DeadRings, as database: Database
  ) throws(DatabaseError) {
    guard let history = HistoryPointer.makeForRecovery() else {
      throw .noMemory
    }
    defer { history.destroy() }
    let connection = database.connection
    let header = rings.header
    let callbacks = try Writer.savedNames(
      .callback, of: database.run, on: connection)
    let sites = try Writer.savedNames(.site, of: database.run, on: connection)
    history.recorder.pointee.callbacks = Dictionary(after: callbacks.count)
    history.recorder.pointee.sites = Dictionary(after: sites.count)
    takeNames(from: header, recorder: history.recorder)
    rings.hand(to: history.recorder)
    guard let clock = TickClock(of: header, isSameBoot: isOfThisBoot(header))
    else { throw .noMemory }
    var writer = try Writer(history, database: database, recovering: clock)
    writer.callbacks = callbacks
    writer.sites = sites
    try writer.resume()
    writer.publishWhole(rings.areas)
    try writer.writeAll()
    try connection.alone { () throws(DatabaseError) in
      try finish(header, database: database) { () throws(DatabaseError) in
        try writer.write(rings.calls)
        try writer.writeLastBlock()
      }
      writer.commitSeal()
    }
    try connection.sync()
    Hook.ringsCommitted.reached(0)
  }

  /// Names that were in no database yet, in the order of their numbers.
  private static func takeNames(
    from header: RingFileHeaderPointer, recorder: RecorderPointer
  ) {
    header.visitNames { name in
      let known =
        name.kind == .callback
        ? recorder.pointee.callbacks.count : recorder.pointee.sites.count
      guard Int(name.number) == known + 1 else { return }
      _ = recorder.intern(
        name.kind, name.text, length: name.length, line: name.line)
    }
  }

  private static func isOfThisBoot(_ header: RingFileHeaderPointer) -> Bool {
    let boot = RingFileIdentity.presentBoot
    let found = header.pointee.identity.boot
    return boot.0 == found.0 && boot.1 == found.1 && boot.2 == found.2
      && boot.3 == found.3 && boot.4 == found.4
  }

  /// Says how the run ended, what was in flight, and what was counted and
  /// never written.
  private static func finish(
    _ header: RingFileHeaderPointer, database: Database,
    writeCalls: () throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    let connection = database.connection
    try connection.transaction { () throws(DatabaseError) in
      try countMissingCalls(header, database: database)
      try writeCalls()
      try end(header, database: database)
      Hook.ringsEnded.reached(0)
    }
  }

  private static func end(
    _ header: RingFileHeaderPointer, database: Database
  ) throws(DatabaseError) {
    let ending =
      RunEnding(
        rawValue: header.pointee.ending.load(ordering: .relaxed)) ?? .unknown
    let statement = try database.connection.prepare(
      """
      UPDATE run SET ended = coalesce(ended, ?2),
        ended_time_ns = coalesce(ended_time_ns,
          (SELECT max(e.time_ns) FROM control_event e JOIN ring r
           ON r.ring = e.ring WHERE r.run = ?1), began_time_ns)
      WHERE run = ?1
      """)
    defer { statement.finalize() }
    statement.bind(1, database.run)
    statement.bind(2, ending.name)
    try statement.run()
  }

  /// Calls that were counted because a ring was full, and whose sums died with
  /// the process.
  private static func countMissingCalls(
    _ header: RingFileHeaderPointer, database: Database
  ) throws(DatabaseError) {
    let statement = try database.connection.prepare(
      """
      INSERT INTO loss (run, events, cause, first_time_ns, last_time_ns)
      SELECT run, ?2 - ring_full_calls, 4, began_time_ns, began_time_ns
      FROM run WHERE run = ?1 AND ended IS NULL AND ?2 > ring_full_calls
      """)
    defer { statement.finalize() }
    statement.bind(1, database.run)
    statement.bind(2, header.pointee.aggregated.load(ordering: .relaxed))
    try statement.run()
  }

  /// Gives a file a name under which nobody looks for rings.
  private static func setAside(
    _ path: UnsafePointer<CChar>, _ cause: StaticString, database: Database
  ) {
    guard let scratch = try? Scratch(bytes: 8_192) else { return }
    var text = scratch.text
    text.append(path)
    text.append(".set-aside")
    guard !text.isCut, cbr_file_rename(path, scratch.start) else { return }
    note(cause, code: 0, database: database)
  }

  /// Adds a row to `fault`, if that is possible.
  static func note(
    _ cause: StaticString, code: Int32, database: Database
  ) {
    note(cause.characters, code: code, database: database)
  }

  static func note(
    _ cause: UnsafePointer<CChar>, code: Int32, database: Database
  ) {
    guard
      let statement = try? database.connection.prepare(Sentence.addFault.sql)
    else { return }
    defer { statement.finalize() }
    try? database.connection.alone { () throws(DatabaseError) in
      try FaultRow(
        cause: cause, code: code,
        beganAt: cbr_monotonic_nanoseconds()
      ).add(to: database.run, by: statement)
    }
  }
}

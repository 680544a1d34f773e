// SPDX-License-Identifier: Apache-2.0
//
// What the writer does when its database is not there any more, or cannot be
// written: it opens it anew, or another one in its place. Events wait in their
// rings meanwhile. Everything here is called with the turn.

import CPlatform
import CSQLite
import Synchronization

extension Writer {
  /// Sees to it that what is written goes into the file that bears the
  /// history's name.
  mutating func keepFile() throws(DatabaseError) {
    guard let path = history.pointee.path else { return }
    let present = FileIdentity(of: path)
    let presentLog = FileIdentity(of: logName.start)
    if present != history.pointee.file {
      try followName(to: present, path: path, presentLog: presentLog)
    } else if let log, presentLog != log {
      fault.note(
        "the database's log was removed while it was open",
        lost: recorder.lostEvents)
      // What is in it can still be read here.
      try connection.checkpoint()
      try reopen(instead: nil)
    } else {
      log = presentLog
    }
  }

  /// The file was removed, or another one has taken its name.
  private mutating func followName(
    to present: FileIdentity?, path: UnsafePointer<CChar>,
    presentLog: FileIdentity?
  ) throws(DatabaseError) {
    let cause: StaticString =
      present == nil
      ? "the database was removed while it was open: another one is made"
      : "another file has taken the place of the database: it is used"
    fault.note(cause, lost: recorder.lostEvents)
    // A log that is still there would be taken for that of the new database.
    if present == nil || presentLog != nil && presentLog == log {
      let name = try SetAside.name(for: path)
      _ = SetAside.log(of: path, to: name.start)
    }
    try reopen(instead: cause.characters)
  }

  /// Does what can be done about a failure, so that the next try may succeed.
  mutating func mend(_ error: DatabaseError) {
    guard history.pointee.path != nil, !error.isBusy else { return }
    do throws(DatabaseError) {
      if error.isFull {
        if fault.failures <= 2 { try makeRoom() }
      } else if error.isDamage, fault.failures > 1 {
        try replaceDamaged()
      } else if error.mayBeOfConnection {
        try reopen(instead: nil)
      }
    } catch {
      // It is tried again after the next failure.
    }
  }

  /// Damage that is still there on a new connection is in the file.
  private mutating func replaceDamaged() throws(DatabaseError) {
    guard let path = history.pointee.path else { return }
    let name = try SetAside.name(for: path)
    let found = history.pointee.file
    try connection.alone {
      if FileIdentity(of: path) == found {
        _ = SetAside.database(path, to: name.start)
      }
    }
    fault.note(
      "the database was damaged: it is set aside, and another one made",
      lost: recorder.lostEvents)
    try reopen(instead: name.start)
  }

  /// Opens what bears the history's name now.
  ///
  /// `former` says what the run began in, if that is another file.
  private mutating func reopen(
    instead former: UnsafePointer<CChar>?
  ) throws(DatabaseError) {
    guard let path = history.pointee.path else { return }
    var identity = history.pointee.runIdentity
    identity.predecessor = former
    let database: Database
    do throws(OpeningError) {
      database = try Database.open(path, run: identity)
    } catch { throw DatabaseError(code: error.code) }
    do throws(DatabaseError) {
      try turn(to: database, file: FileIdentity(of: path))
    } catch {
      database.connection.close()
      throw error
    }
  }

  private mutating func turn(
    to database: Database, file: FileIdentity?
  ) throws(DatabaseError) {
    let segments = try Segments(
      of: database.connection, limits: history.pointee.limits)
    let statements = try Statements.prepare(
      on: database.connection, segment: segments.last)
    if file != history.pointee.file {
      if recorder.pointee.file != nil {
        try history.notePlace(in: database)
      }
      try Run.noteEvidence(
        of: database.run, chain.isOn ? "on" : BlockChain.missing,
        on: database.connection)
      beginAnew()
    }
    let former = connection
    self.segments = segments
    self.statements = statements
    connection = database.connection
    run = database.run
    history.pointee.database = database
    history.pointee.file = file
    log = nil
    watchLog()
    // Its statements are finalized.
    former.close()
  }

  /// Nothing that was written is in the file: names, rings and threads are
  /// written again.
  private mutating func beginAnew() {
    revertRings()
    callbacks = Names()
    sites = Names()
    tokens.clear()
    refusals.clear()
    notedUnprotected = Ahead(0)
    sealing.noted = Ahead(nil)
    for index in 0..<cursors.count {
      cursors.pointer(to: index).pointee.beginAnew()
    }
  }
}

extension DatabaseError {
  /// Another connection may do better.
  fileprivate var mayBeOfConnection: Bool {
    switch primary {
    case SQLITE_NOMEM, SQLITE_CONSTRAINT, SQLITE_FULL, SQLITE_INTERRUPT: false
    default: true
    }
  }
}

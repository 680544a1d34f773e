// SPDX-License-Identifier: Apache-2.0
//
// The file of rings of a history that is in a file: made when the history is
// opened, removed when all of it is in the database.

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == History {
  /// Recovers what dead processes left beside the history, and makes the file
  /// in which this one's rings will survive it.
  func prepareRings(_ database: Database) {
    guard let path = pointee.path, let beside = try? Scratch(bytes: 8_192),
      putDirectory(into: beside)
    else { return }
    Recovery.recoverAll(of: path, database: database)
    if let directory = pointee.ringDirectory {
      cbr_directory_remove(beside.start)
      placeRings(in: directory, database)
    } else if makeRings(beside: beside.start) {
      try? Run.noteProtection(of: database.run, "on", on: database.connection)
    } else {
      Recovery.note(
        """
        no file can be made beside the history: a crash loses what is recorded
        """,
        code: 0, database: database)
    }
  }

  private func makeRings(beside directory: UnsafePointer<CChar>) -> Bool {
    // Another process that closes may remove the directory in between.
    for _ in 0..<10 {
      if cbr_directory_make(directory), makeRingFile(in: directory) {
        return true
      }
    }
    cbr_directory_remove(directory)
    return false
  }

  /// Makes the file of rings, and only then says where it is: others take a
  /// file that is not there for lost.
  private func placeRings(
    in directory: UnsafePointer<CChar>, _ database: Database
  ) {
    if makeRingFile(in: directory) {
      if notePlacePatiently(in: database) { return }
      recorder.pointee.file.take()?.close()
      _ = pointee.ringPath.map { cbr_file_remove($0) }
      Memory.release(pointee.ringPath)
      pointee.ringPath = nil
    }
    Recovery.note(
      """
      no file can be made in the directory for rings: a crash loses what is \
      recorded
      """,
      code: 0, database: database)
  }

  /// Waits for somebody else's transaction as long as opening the database
  /// does.
  private func notePlacePatiently(in database: Database) -> Bool {
    let deadline = Deadline.after(2_000_000_000)
    while true {
      do throws(DatabaseError) {
        try notePlace(in: database)
        return true
      } catch {
        guard error.isBusy, !deadline.hasPassed else { return false }
        cbr_pause(1_000_000)
      }
    }
  }

  /// Says in a database that the run's rings survive a crash, and where they
  /// are if that is not beside it.
  func notePlace(in database: Database) throws(DatabaseError) {
    let connection = database.connection
    try connection.transaction { () throws(DatabaseError) in
      if let directory = pointee.ringDirectory, let path = pointee.path {
        try RingPlace.note(
          database.run, in: directory, of: path, on: connection)
      }
      try Run.noteProtection(of: database.run, "on", on: connection)
    }
  }

  /// Recovers what processes have left that died meanwhile; with the turn.
  func recoverDead() {
    guard pointee.ringPath != nil, let path = pointee.path,
      let database = pointee.database
    else { return }
    Recovery.recoverAll(of: path, missed: false, database: database)
  }

  /// The size of the log, and of the rings of all processes.
  func measureBeside() -> UInt64 {
    guard let path = pointee.path, let name = try? Scratch(bytes: 8_192)
    else { return 0 }
    var text = name.text
    text.append(path)
    text.append("-wal")
    var bytes = text.isCut ? 0 : cbr_path_bytes(name.start)
    if putDirectory(into: name) { bytes += cbr_directory_bytes(name.start) }
    guard let connection = pointee.database?.connection else { return bytes }
    var last: Int64 = 0
    while let place = RingPlace.next(
      after: last, missed: false, of: path, on: connection)
    {
      last = place.run
      bytes += cbr_path_bytes(place.file)
    }
    return bytes
  }

  /// Names the directory of files of rings; false in memory, or when its name
  /// is too long.
  private func putDirectory(into scratch: borrowing Scratch) -> Bool {
    guard let path = pointee.path else { return false }
    return Recovery.putDirectory(of: path, into: scratch)
  }

  /// Makes the file under another name, so that nobody takes it for that of a
  /// dead process before it is locked.
  private func makeRingFile(in directory: UnsafePointer<CChar>) -> Bool {
    guard let scratch = try? Scratch(bytes: 8_192) else { return false }
    let identifier = pointee.runIdentity.identifier
    let identity = RingFileIdentity(
      ringRecords: recorder.pointee.ringRecords,
      openedTicks: pointee.openedAt.ticks,
      openedNanoseconds: pointee.openedAt.nanoseconds, run: identifier,
      boot: RingFileIdentity.presentBoot)
    var text = scratch.text
    text.append(directory)
    // The name of one that was named has it already.
    if pointee.ringDirectory == nil { text.append("/") }
    withUnsafeBytes(of: identifier) { bytes in
      text.append(
        bytes.baseAddress!.assumingMemoryBound(to: CChar.self),
        length: RingFileIdentity.textBytes)
    }
    text.append(".ring")
    guard !text.isCut,
      let name = Memory.copy(scratch.start, length: text.length)
    else { return false }
    text.append(".new")
    guard !text.isCut,
      let file = RingFile(at: scratch.start, identity: identity)
    else {
      Memory.release(name)
      return false
    }
    guard cbr_file_rename(scratch.start, name) else {
      file.close()
      _ = cbr_file_remove(scratch.start)
      Memory.release(name)
      return false
    }
    recorder.pointee.file = consume file
    pointee.ringPath = name
    return true
  }

  /// Says in the file of rings how the process ends the history: what is left
  /// in it was not left by a crash.
  func noteEnding(_ ending: RunEnding) {
    recorder.fileHeader?.pointee.ending.store(
      ending.rawValue, ordering: .releasing)
  }

  /// Reserves disk that is given up when the disk is full; any process may
  /// have done so.
  func keepBallast(bytes: UInt64) {
    withBallast { name in
      if cbr_path_bytes(name) > 0 { return }
      // It is the history's disk that becomes full, wherever the rings are.
      if pointee.ringDirectory != nil, let beside = try? Scratch(bytes: 8_192),
        putDirectory(into: beside)
      {
        _ = cbr_directory_make(beside.start)
      }
      _ = cbr_file_reserve(name, bytes)
    }
  }

  func dropBallast() {
    withBallast { name in _ = cbr_file_remove(name) }
  }

  private func withBallast(_ body: (UnsafePointer<CChar>) -> Void) {
    guard pointee.ringPath != nil, let path = pointee.path,
      let name = try? Scratch(bytes: 8_192)
    else { return }
    var text = name.text
    text.append(path)
    text.append(".rings/ballast")
    if !text.isCut { body(name.start) }
  }

  /// Removes the file of rings, all of which is in the database.
  func removeRings() {
    guard let name = pointee.ringPath else { return }
    _ = cbr_file_remove(name)
    if pointee.ringDirectory != nil, let database = pointee.database {
      RingPlace.forget(database.run, on: database.connection)
    }
    // Other processes reserve another one.
    dropBallast()
    guard let directory = try? Scratch(bytes: 8_192),
      putDirectory(into: directory)
    else { return }
    cbr_directory_remove(directory.start)
  }
}

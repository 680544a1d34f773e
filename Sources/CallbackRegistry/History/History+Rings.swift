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
    guard let directory = try? Scratch(bytes: 8_192),
      putDirectory(into: directory)
    else { return }
    Recovery.recoverAll(in: directory.start, database: database)
    // Another process that closes may remove the directory in between.
    var tries = 0
    while !cbr_directory_make(directory.start)
      || !makeRingFile(in: directory.start)
    {
      tries += 1
      if tries < 10 { continue }
      Recovery.note(
        """
        no file can be made beside the history: a crash loses what is recorded
        """,
        code: 0, database: database)
      cbr_directory_remove(directory.start)
      return
    }
    try? Run.noteProtection(of: database.run, "on", on: database.connection)
  }

  /// Recovers what processes have left that died meanwhile; with the turn.
  func recoverDead() {
    guard pointee.ringPath != nil, let directory = try? Scratch(bytes: 8_192),
      putDirectory(into: directory), let database = pointee.database
    else { return }
    Recovery.recoverAll(in: directory.start, database: database)
  }

  /// The size of the log, and of the rings of all processes.
  func measureBeside() -> UInt64 {
    guard let path = pointee.path, let name = try? Scratch(bytes: 8_192)
    else { return 0 }
    var text = name.text
    text.append(path)
    text.append("-wal")
    let log = text.isCut ? 0 : cbr_path_bytes(name.start)
    let isNamed = putDirectory(into: name)
    return log + (isNamed ? cbr_directory_bytes(name.start) : 0)
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
    text.append("/")
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
      if cbr_path_bytes(name) == 0 { _ = cbr_file_reserve(name, bytes) }
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
    // Other processes reserve another one.
    dropBallast()
    guard let directory = try? Scratch(bytes: 8_192),
      putDirectory(into: directory)
    else { return }
    cbr_directory_remove(directory.start)
  }
}

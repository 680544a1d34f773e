// SPDX-License-Identifier: Apache-2.0
//
// One process at a time writes a database or copies its log.
//
// SQLite's own locks keep transactions apart. But up to 3.51.2 a checkpoint on
// one connection can lose what another commits at that moment
// (sqlite.org/wal.html, "The WAL-Reset Bug"): so both are done with the lease
// only. It is a lock on a file beside the history, which the kernel gives up
// when its process dies, and which is held for one transaction: no process
// waits for another that has nothing to write, or has stopped.
//
// The file is removed by whoever closes the history, with the lease. Others
// find out when they take it next, and make a new one.

import CPlatform
import CSQLite

struct FileLease: ~Copyable {
  /// How long a transaction waits for another process's.
  private static var patience: UInt64 { 100_000_000 }
  private static var pause: UInt64 { 500_000 }

  private let path: UnsafeMutablePointer<CChar>
  private var file: Int32
  /// Takings that are not given back: one may be inside another.
  private var depth = 0

  /// Makes the lease of the history at a path.
  static func make(
    of history: UnsafePointer<CChar>
  ) throws(DatabaseError) -> FileLeasePointer {
    guard let lease = Memory.allocate(FileLease.self) else { throw .noMemory }
    do throws(DatabaseError) {
      lease.initialize(to: try FileLease(of: history))
      return lease
    } catch {
      Memory.release(lease)
      throw error
    }
  }

  /// Does something with the lease of a history that is not open.
  static func held(
    of history: UnsafePointer<CChar>, _ body: () -> Void
  ) throws(DatabaseError) {
    let lease = try make(of: history)
    defer {
      lease.deinitialize(count: 1)
      Memory.release(lease)
    }
    try lease.pointee.take()
    body()
    lease.pointee.remove()
    lease.pointee.give()
  }

  private init(of history: UnsafePointer<CChar>) throws(DatabaseError) {
    let length = length(of: history, limit: 65_536)
    let scratch = try Scratch(bytes: length + 16)
    var text = scratch.text
    text.append(history)
    text.append(".lease")
    guard let path = Memory.copy(scratch.start, length: text.length) else {
      throw .noMemory
    }
    let file = cbr_lock_open(path)
    if file == CBR_FILE_FAILED {
      Memory.release(path)
      throw DatabaseError(code: SQLITE_CANTOPEN)
    }
    self.path = path
    self.file = file
  }

  deinit {
    closeFile()
    Memory.release(path)
  }

  /// In a forked child: only the descriptor, a copy of which would keep the
  /// lease after its parent's death.
  func closeFile() {
    if file >= 0 { cbr_file_close(file) }
  }

  /// Takes the lease; busy when another process has it for long.
  mutating func take() throws(DatabaseError) {
    if depth == 0 { try takeFile(until: .after(Self.patience)) }
    depth += 1
  }

  private mutating func takeFile(
    until deadline: Deadline
  ) throws(DatabaseError) {
    while true {
      switch file < 0 ? Int32(CBR_FILE_GONE) : cbr_lock_take(file) {
      case Int32(CBR_FILE_GONE):
        let former = file
        file = -1
        if former >= 0 { cbr_file_close(former) }
        file = cbr_lock_open(path)
        if file < 0 { throw DatabaseError(code: SQLITE_CANTOPEN) }
      case Int32(CBR_FILE_FAILED):
        throw DatabaseError(code: SQLITE_IOERR)
      case Int32(CBR_FILE_IN_USE):
        if deadline.hasPassed { throw DatabaseError(code: SQLITE_BUSY) }
        cbr_pause(Self.pause)
      default: return
      }
    }
  }

  mutating func give() {
    depth -= 1
    if depth == 0 { cbr_lock_give(file) }
  }

  /// Appends the path of the history.
  func appendHistory(to text: inout Text) {
    text.append(path, length: length(of: path, limit: 65_536) - 6)
  }

  /// Removes the file, with the lease.
  func remove() { _ = cbr_file_remove(path) }
}

typealias FileLeasePointer = UnsafeMutablePointer<FileLease>

// SPDX-License-Identifier: Apache-2.0
//
// Counting calls without writing to shared memory: each thread has a small
// table of cells, found by a token's index, in which it counts the calls of
// the tokens that it called last.
//
// Shared variables
//   token, attempts, finished   of a cell: its thread stores (relaxed, plain
//             moves); others load. A cell changes its token only under the
//             record's `cellLock`
//   inFlight    of a cell: the thread's alone
//   slot.attempts, link         receive the counts of a cell that is given up,
//             under the lock of that cell's thread
//
// Exactness: a token's counts are what its slot says plus all its cells. Who
// settles a token takes its counts out of every cell, under each thread's
// lock, after the last call has left (the pin's clear orders the counts before
// the scan). Until then no one else may free the slot, so a thread that gives
// a cell up adds to the right slot: the token in the cell says that its
// settling has not yet come by.
// Tried to break by: Tests/C (stress.c, recorded.c, process.c), Swift's
// HistoryCountTests.

import Synchronization

package struct CallCell: ~Copyable {
  static let count = 64

  package let token = Atomic<UInt64>(0)
  package let attempts = Atomic<UInt64>(0)
  package let finished = Atomic<UInt64>(0)
  /// Where calls of the token are told while they run, if that is to survive a
  /// crash.
  var inFlight: InFlightPointer?
}

package typealias CallCellPointer = UnsafeMutablePointer<CallCell>

extension UnsafeMutablePointer where Pointee == CallCell {
  /// Adds one to a counter that only the calling thread stores to.
  @inline(__always)
  package func countAttempt() {
    pointee.attempts.store(
      pointee.attempts.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  @inline(__always)
  package func countFinished() {
    pointee.finished.store(
      pointee.finished.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  /// Tells that a call has begun.
  @inline(__always)
  package func begin(at depth: UInt32, token: UInt64, began: UInt64) {
    pointee.inFlight?.begin(at: depth, token: token, began: began)
  }

  /// Tells that it is over.
  @inline(__always)
  package func end(at depth: UInt32) { pointee.inFlight?.end(at: depth) }

  /// Takes back an attempt that turned out to be none.
  ///
  /// It may have been counted in another cell: sums are of 64 bits that wrap.
  @inline(__always)
  package func uncountAttempt() {
    pointee.attempts.store(
      pointee.attempts.load(ordering: .relaxed) &- 1, ordering: .relaxed)
  }

  /// Moves the counts into the slot of the cell's token, and empties the cell.
  ///
  /// The lock of the cell's thread is held.
  fileprivate func giveUp() {
    let token = pointee.token.load(ordering: .relaxed)
    guard token != 0 else { return }
    let attempts = pointee.attempts.load(ordering: .relaxed)
    let finished = pointee.finished.load(ordering: .relaxed)
    let index = Handle.index(of: token)
    let detail = Table.knownDetail(at: index)
    detail.pointee.attempts.wrappingAdd(attempts, ordering: .relaxed)
    // A token's link counts attempts that have not finished, from noIndex.
    detail.pointee.link.wrappingAdd(
      UInt32(truncatingIfNeeded: attempts &- finished), ordering: .relaxed)
    pointee.token.store(0, ordering: .relaxed)
    pointee.attempts.store(0, ordering: .relaxed)
    pointee.finished.store(0, ordering: .relaxed)
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  @inline(__always)
  package func cell(of token: UInt64) -> CallCellPointer {
    cell(at: Int(truncatingIfNeeded: token >> 6) & (CallCell.count &- 1))
  }

  @inline(__always)
  private func cell(at index: Int) -> CallCellPointer {
    (UnsafeMutableRawPointer(self) + ThreadRecord.cellsOffset)
      .assumingMemoryBound(to: CallCell.self) + index
  }

  func initializeCells() {
    for index in 0..<CallCell.count {
      cell(at: index).initialize(to: CallCell())
    }
  }

  private func lockCells() {
    while pointee.cellLock.exchange(true, ordering: .acquiring) {}
  }

  private func unlockCells() {
    pointee.cellLock.store(false, ordering: .releasing)
  }

  /// Makes the cell the token's, which the calling thread is inside.
  package func changeCell(_ cell: CallCellPointer, to token: UInt64) {
    cell.pointee.inFlight = inFlight(of: token)
    lockCells()
    defer { unlockCells() }
    cell.giveUp()
    cell.pointee.token.store(token, ordering: .relaxed)
  }

  private func inFlight(of token: UInt64) -> InFlightPointer? {
    let chunk = Table.chunk(at: Handle.index(of: token)).unsafelyUnwrapped
    guard let recorder = chunk.pointee.recorder,
      recorder.pointee.file != nil
    else { return nil }
    return ring(of: recorder)?.inFlight
  }

  /// Empties a thread's cell of one token.
  ///
  /// Any thread may ask.
  fileprivate func giveUpCell(of token: UInt64) {
    let cell = cell(of: token)
    guard cell.pointee.token.load(ordering: .acquiring) == token else {
      return
    }
    lockCells()
    defer { unlockCells() }
    if cell.pointee.token.load(ordering: .relaxed) == token { cell.giveUp() }
  }

  /// Empties all cells of the calling thread, which is about to end.
  package func giveUpCells() {
    lockCells()
    defer { unlockCells() }
    for index in 0..<CallCell.count { cell(at: index).giveUp() }
  }
}

/// The calls of one token.
package struct CallCounts {
  package var attempts: UInt64 = 0
  /// Attempts that have not finished: in flight, or abandoned.
  package var unfinished: UInt64 = 0

  package init() {}
}

package enum CallCells {
  /// Takes the counts of a token that is about to be freed out of all cells.
  package static func settle(_ token: UInt64) -> CallCounts {
    var thread = ThreadPointer.first
    while let each = thread {
      each.giveUpCell(of: token)
      thread = each.next
    }
    return countsInSlot(of: token)
  }

  /// The counts of a token at this moment.
  ///
  /// Calls in flight make it a moment's view; cells are left as they are.
  package static func count(_ token: UInt64) -> CallCounts {
    var counts = countsInSlot(of: token)
    var thread = ThreadPointer.first
    while let each = thread {
      let cell = each.cell(of: token)
      if cell.pointee.token.load(ordering: .acquiring) == token {
        let attempts = cell.pointee.attempts.load(ordering: .relaxed)
        counts.attempts &+= attempts
        counts.unfinished &+=
          attempts &- cell.pointee.finished.load(ordering: .relaxed)
      }
      thread = each.next
    }
    return counts
  }

  private static func countsInSlot(of token: UInt64) -> CallCounts {
    let detail = Table.knownDetail(at: Handle.index(of: token))
    var counts = CallCounts()
    counts.attempts = detail.pointee.attempts.load(ordering: .relaxed)
    // Sign-extended: a thread may finish in one cell what it began in another.
    counts.unfinished = UInt64(
      bitPattern: Int64(
        Int32(
          bitPattern: detail.pointee.link.load(ordering: .relaxed)
            &- Slot.noIndex)))
    return counts
  }
}

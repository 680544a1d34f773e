// SPDX-License-Identifier: Apache-2.0
//
// The way of a plain handler in an emission: like the short path of a call
// (ShortPath.swift), but at the depth of its emission, in one cell that its
// handlers use one after the other. What a handler enters itself is above it.
// The stamp of the cell stays: no record of a call is about it.
// Tried to break by: Tests/C (emissions.c, churn.c).

import CPlatform
import Synchronization

/// How far the way of a plain handler came.
package enum PlainEntry {
  /// It is entered, in this mode.
  case entered(UInt32)
  /// It is for another way.
  case other
  /// It has died meanwhile, and is the thread's to finish.
  case claimed
}

// An outermost emission has its list in the first cell and its handlers in the
// second; without membarrier it goes the other way, like a call.

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  @inline(__always)
  package static var outermostHandlerCell: UInt32 { 1 }

  /// Pins the list of an outermost emission: `.untouched` where there is
  /// something below it, or fences are full; `.departed` when the list is dead,
  /// which then is pinned no more.
  @inline(__always)
  package func enterOutermostList(
    _ handle: UInt64, slot: SlotPointer
  ) -> ShortPath {
    guard pointee.depth.load(ordering: .relaxed) == 0 else {
      return .untouched
    }
    // Both cells.
    pointee.depth.store(2, ordering: .releasing)
    // Model: enter.pin
    inlineCell(0).pointee.store(handle, ordering: .releasing)
    Hook.enterPinned.reached(handle)
    cbr_compiler_fence()
    // Model: enter.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.enterChecked.reached(handle)
    guard word != handle else { return .done }
    clearOutermostList(handle)
    return .departed
  }

  /// Leaves it.
  @inline(__always)
  package func leaveOutermostList(_ handle: UInt64) -> Departure {
    clearOutermostList(handle)
    // Model: leave.check
    let slot = Table.knownSlot(of: handle)
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.leaveChecked.reached(handle)
    return word == handle
      ? .done : Protocol.departed(from: slot, handle: handle)
  }

  @inline(__always)
  private func clearOutermostList(_ handle: UInt64) {
    // Model: leave.clear
    inlineCell(0).pointee.store(0, ordering: .releasing)
    // Unless a handler has left something above it.
    if ownDepth <= 2 { pointee.depth.store(0, ordering: .releasing) }
    Hook.leaveCleared.reached(handle)
    cbr_compiler_fence()
  }

  /// The cell for the handlers of an emission that begins; nil: it is too deep
  /// for it.
  @inline(__always)
  package var handlerCell: UInt32? {
    let index = ownDepth
    return index &+ 1 &+ Pins.spareCount < Pins.inlineCount ? index : nil
  }

  /// Enters a handler that is live and plain.
  @inline(__always)
  package func enterPlainHandler(
    _ token: UInt64, slot: SlotPointer, cell index: UInt32
  ) -> PlainEntry {
    // A first look, so that others are not pinned in vain.
    guard Self.isPlain(slot.pointee.mode.load(ordering: .relaxed)) else {
      return .other
    }
    // Another way of entering may have lowered it past an empty cell.
    if ownDepth != index &+ 1 { setDepth(index &+ 1) }
    // Model: enter.pin
    inlineCell(index).pointee.store(token, ordering: .releasing)
    Hook.enterPinned.reached(token)
    cbr_light_fence()
    // Model: enter.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.enterChecked.reached(token)
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    guard word == token, Self.isPlain(mode) else {
      let departure = clearHandlerCell(token, slot: slot, cell: index)
      return departure == .claimed ? .claimed : .other
    }
    if mode & Mode.counted != 0 {
      let cell = countingCell(of: token)
      cell.countAttempt()
      cell.begin(at: index, token: token, began: 0)
    }
    return .entered(mode)
  }

  @inline(__always)
  private static func isPlain(_ mode: UInt32) -> Bool {
    mode & ~Mode.plain == Mode.connection
  }

  /// Leaves it.
  @inline(__always)
  package func leavePlainHandler(
    _ token: UInt64, slot: SlotPointer, cell index: UInt32, mode: UInt32
  ) -> Departure {
    if mode & Mode.counted != 0 {
      let cell = countingCell(of: token)
      cell.countFinished()
      cell.end(at: index)
    }
    return clearHandlerCell(token, slot: slot, cell: index)
  }

  /// Takes back the call of a handler that found nothing to work on; leaving it
  /// then counts nothing.
  @inline(never)
  package func takeBackHandler(
    _ token: UInt64, at index: UInt32, mode: inout UInt32
  ) {
    guard mode & Mode.counted != 0 else { return }
    let cell = countingCell(of: token)
    cell.uncountAttempt()
    cell.end(at: index)
    mode = 0
  }

  /// Clears the cell, and looks whether what was in it has died meanwhile.
  @inline(__always)
  private func clearHandlerCell(
    _ token: UInt64, slot: SlotPointer, cell index: UInt32
  ) -> Departure {
    // Model: leave.clear
    inlineCell(index).pointee.store(0, ordering: .releasing)
    Hook.leaveCleared.reached(token)
    cbr_light_fence()
    // Model: leave.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.leaveChecked.reached(token)
    return word == token
      ? .done : Protocol.departed(from: slot, handle: token)
  }

  /// Gives the cell back when the emission is over.
  @inline(__always)
  package func closeHandlerCell(_ index: UInt32) {
    if ownDepth == index &+ 1 { setDepth(index) }
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// The way that nearly every call takes: a plain function, few calls deep, not
// timed, and counted in the cell that it was counted in before. It takes part
// in the protocol step by step (Protocol.swift), and leaves everything else to
// a function that it ends with, so that it needs no stack frame.

import CPlatform
import Synchronization

/// How far the short path came.
package enum ShortPath {
  case done
  /// It changed nothing.
  case untouched
  /// It has pinned the token, and found it dead or changed: to be withdrawn.
  case pinned
  /// It has entered or is about to leave; the calls have to be counted in a
  /// cell that is another token's.
  case uncounted
  /// It has left, and the slot's word is not the token.
  case departed
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  @inline(__always)
  package func enterShort(
    _ token: UInt64, slot: SlotPointer, call: CallPointer
  ) -> ShortPath {
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let index = ownDepth
    guard mode & ~Mode.plain == 0, index < Pins.inlineCount else {
      return .untouched
    }
    pointee.depth.store(index &+ 1, ordering: .releasing)
    // Model: enter.pin
    inlineCell(index).pointee.store(token, ordering: .releasing)
    Hook.enterPinned.reached(token)
    cbr_light_fence()
    // Model: enter.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.enterChecked.reached(token)
    // Only now is the mode known to be this token's.
    guard word == token, slot.pointee.mode.load(ordering: .relaxed) == mode
    else { return .pinned }
    call.pointee.function = slot.pointee.function
    call.pointee.context = slot.pointee.context
    call.pointee.token = token
    call.pointee.disposition = 0
    call.pointee.pin = UInt64(index) | UInt64(mode & Mode.counted) << 32
    guard mode & Mode.counted != 0 else { return .done }
    let cell = cell(of: token)
    guard cell.pointee.token.load(ordering: .relaxed) == token else {
      return .uncounted
    }
    cell.countAttempt()
    return .done
  }

  @inline(__always)
  package func leaveShort(_ call: CallPointer) -> ShortPath {
    let token = call.pointee.token
    let index = call.pointee.depth
    // The call is the innermost, and the one below has not been left.
    guard index < Pins.inlineCount, index &+ 1 == ownDepth,
      inlineCell(index).pointee.load(ordering: .relaxed) == token,
      index == 0
        || inlineCell(index &- 1).pointee.load(ordering: .relaxed) != 0,
      call.pointee.mode & Mode.timed == 0, let slot = Table.slot(of: token)
    else { return .untouched }
    if call.pointee.mode != 0 {
      let cell = cell(of: token)
      guard cell.pointee.token.load(ordering: .relaxed) == token else {
        return .untouched
      }
      cell.countFinished()
    }
    call.pointee.token = Handle.none
    call.pointee.function = nil
    // Model: leave.clear
    inlineCell(index).pointee.store(0, ordering: .releasing)
    pointee.depth.store(index, ordering: .releasing)
    Hook.leaveCleared.reached(token)
    cbr_light_fence()
    // Model: leave.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.leaveChecked.reached(token)
    return word == token ? .done : .departed
  }
}

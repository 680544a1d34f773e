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
  // The outermost call of a thread has instructions of its own: its depths are
  // constants, so that a call need not wait for the memory of the one before.

  /// Enters a token that is not timed.
  @inline(__always)
  package func enterShort(
    _ token: UInt64, slot: SlotPointer, call: CallPointer
  ) -> ShortPath {
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let depth = ownDepth
    guard mode & ~Mode.plain == 0 else { return .untouched }
    if depth == 0 {
      return enter(token, slot: slot, checked: slot, call, at: 0, mode: mode)
    }
    guard depth < Pins.inlineCount else { return .untouched }
    return enter(
      token, slot: slot, checked: slot, call, at: depth, mode: mode)
  }

  /// Enters a token that has a type tag and is not timed.
  @inline(__always)
  package func enterShort(
    _ token: UInt64, tag: UInt64, slot: SlotPointer, call: CallPointer
  ) -> ShortPath {
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let depth = ownDepth
    guard mode & ~Mode.plain == Mode.tagged, depth < Pins.inlineCount else {
      return .untouched
    }
    return enter(
      token, slot: slot, checked: slot, call, at: depth, mode: mode, tag: tag)
  }

  /// Enters a token that is timed. The stamp is taken before the check (A2).
  @inline(__always)
  package func enterTimed(
    _ token: UInt64, slot: SlotPointer, call: CallPointer
  ) -> ShortPath {
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let depth = ownDepth
    guard mode & ~Mode.plain == Mode.timed, depth < Pins.inlineCount else {
      return .untouched
    }
    let began = Ticks.now
    call.pointee.began = began
    return enter(
      token, slot: slot, checked: slot.after(ticks: began), call, at: depth,
      mode: mode)
  }

  @inline(__always)
  private func enter(
    _ token: UInt64, slot: SlotPointer, checked: SlotPointer,
    _ call: CallPointer, at index: UInt32, mode: UInt32, tag: UInt64 = 0
  ) -> ShortPath {
    pointee.depth.store(index &+ 1, ordering: .releasing)
    // Model: enter.pin
    inlineCell(index).pointee.store(token, ordering: .releasing)
    Hook.enterPinned.reached(token)
    cbr_light_fence()
    // Model: enter.check
    let word = checked.pointee.word.load(ordering: .acquiring)
    Hook.enterChecked.reached(token)
    // Only now is the mode known to be this token's.
    guard word == token, slot.pointee.mode.load(ordering: .relaxed) == mode
    else { return .pinned }
    if tag != 0, slot.typeTag != tag { return .pinned }
    call.pointee.function = slot.pointee.function
    call.pointee.context = slot.pointee.context
    call.pointee.token = token
    call.pointee.disposition = 0
    guard mode & Mode.counted != 0 else {
      call.pointee.pin = UInt64(index)
      return .done
    }
    call.pointee.pin = UInt64(index) | UInt64(mode & Mode.levelMask) << 32
    let cell = cell(of: token)
    guard cell.pointee.token.load(ordering: .relaxed) == token else {
      return .uncounted
    }
    cell.countAttempt()
    return .done
  }

  @inline(__always)
  package func leaveShort(_ call: CallPointer) -> ShortPath {
    let pin = call.pointee.pin
    let depth = ownDepth
    if pin & ~(UInt64(Mode.counted) << 32) == 0, depth == 1 {
      return leaveShort(call, at: 0, isCounted: pin != 0)
    }
    // The call is the innermost, and the one below it has not been left.
    let index = call.pointee.depth
    guard index &- 1 < Pins.inlineCount &- 1, index &+ 1 == depth,
      inlineCell(index &- 1).pointee.load(ordering: .relaxed) != 0,
      call.pointee.mode & ~Mode.counted == 0
    else { return .untouched }
    return leaveShort(call, at: index, isCounted: call.pointee.mode != 0)
  }

  @inline(__always)
  private func leaveShort(
    _ call: CallPointer, at index: UInt32, isCounted: Bool
  ) -> ShortPath {
    let token = call.pointee.token
    guard inlineCell(index).pointee.load(ordering: .relaxed) == token,
      let slot = Table.slot(of: token)
    else { return .untouched }
    if isCounted {
      let cell = cell(of: token)
      guard cell.pointee.token.load(ordering: .relaxed) == token else {
        return .untouched
      }
      cell.countFinished()
    }
    call.pointee.token = Handle.none
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

// SPDX-License-Identifier: Apache-2.0
//
// The way that nearly every call takes: a plain function, outermost on its
// thread, not timed, and counted in the cell that it was counted in before. It
// takes part in the protocol step by step (Protocol.swift), and leaves all
// else to a function that it ends with, so that it needs no stack frame. Its
// depths are constants, so that a call need not wait for the stores of the one
// before; and without membarrier it is not taken at all.
// Tried to break by: Tests/C (pairs.c, fences.c, races.c).

import CPlatform
import Synchronization

/// How far the short path came.
package enum ShortPath {
  case done
  /// It changed nothing.
  case untouched
  /// It has pinned the token; the rest is to be decided.
  case pinned
  /// It has entered; the call is to be counted in a cell that is another's.
  case uncounted
  /// It has left, and the slot's word is not the token.
  case departed
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// Enters a function, with a type tag unless `tag` is 0.
  @inline(__always)
  package func enterShort(
    _ token: UInt64, tag: UInt64, slot: SlotPointer, call: CallPointer
  ) -> ShortPath {
    guard pointee.depth.load(ordering: .relaxed) == 0 else {
      return .untouched
    }
    pointee.depth.store(1, ordering: .releasing)
    // Model: enter.pin
    inlineCell(0).pointee.store(token, ordering: .releasing)
    Hook.enterPinned.reached(token)
    cbr_compiler_fence()
    // Model: enter.check
    guard slot.pointee.word.load(ordering: .acquiring) == token else {
      return .pinned
    }
    Hook.enterChecked.reached(token)
    // Only now is the mode known to be this token's.
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    guard mode & ~Mode.plain == (tag == 0 ? 0 : Mode.tagged),
      tag == 0 || slot.typeTag == tag
    else { return .pinned }
    call.pointee.function = slot.pointee.function
    call.pointee.context = slot.pointee.context
    call.pointee.token = token
    call.pointee.stamp = inlineStamp(0).pointee
    guard mode & Mode.counted != 0 else {
      call.pointee.pin = 0
      return .done
    }
    call.pointee.pin = CallRecord.outermostCounted
    let cell = cell(of: token)
    guard cell.pointee.token.load(ordering: .relaxed) == token else {
      return .uncounted
    }
    cell.countAttempt()
    cell.begin(at: 0, token: token, began: 0)
    return .done
  }

  /// Goes on where the short path has pinned a token: it may only have to be
  /// timed.
  ///
  /// The stamp is taken before the check that counts (A2).
  @inline(__always)
  package func enterTimed(
    _ token: UInt64, tag: UInt64, slot: SlotPointer, call: CallPointer
  ) -> Bool {
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let timed = tag == 0 ? Mode.timed : Mode.timed | Mode.tagged
    guard mode & ~Mode.plain == timed else { return false }
    let began = Ticks.now
    let word = slot.after(ticks: began).pointee.word.load(ordering: .acquiring)
    Hook.enterTimed.reached(token)
    guard word == token, slot.pointee.mode.load(ordering: .relaxed) == mode,
      tag == 0 || slot.typeTag == tag
    else { return false }
    begin(
      call, token: token, slot: slot, pin: ownDepth &- 1, mode: mode,
      began: began)
    return true
  }

  @inline(__always)
  package func leaveShort(_ call: CallPointer) -> ShortPath {
    let pin = call.pointee.pin
    guard pointee.depth.load(ordering: .relaxed) == 1,
      inlineStamp(0).pointee == call.pointee.stamp
    else { return .untouched }
    // The record is this call's: its token is the pin's.
    let token = inlineCell(0).pointee.load(ordering: .relaxed)
    if pin == 0 { return leaveOutermost(token, call) }
    guard pin == CallRecord.outermostCounted else { return .untouched }
    let cell = cell(of: token)
    guard cell.pointee.token.load(ordering: .relaxed) == token else {
      return .untouched
    }
    cell.countFinished()
    cell.end(at: 0)
    return leaveOutermost(token, call)
  }

  /// What is pinned has a slot.
  @inline(__always)
  private func leaveOutermost(
    _ token: UInt64, _ call: CallPointer
  ) -> ShortPath {
    let slot = Table.knownSlot(of: token)
    call.pointee.token = Handle.none
    // Model: leave.clear
    inlineCell(0).pointee.store(0, ordering: .releasing)
    pointee.depth.store(0, ordering: .releasing)
    inlineStamp(0).pointee &+= 1
    Hook.leaveCleared.reached(token)
    cbr_compiler_fence()
    // Model: leave.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.leaveChecked.reached(token)
    return word == token ? .done : .departed
  }
}

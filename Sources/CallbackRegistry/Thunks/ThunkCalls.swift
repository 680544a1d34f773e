// SPDX-License-Identifier: Apache-2.0
//
// A call that comes through a thunk's address, from whatever thread and however
// late. It pins the thunk as a call pins its token, and then enters the token:
// so whoever waits for the thunk waits for what runs through it. What is
// refused is recorded with the one that is dead: the thunk, or its token.

import CPlatform
import Synchronization

package enum ThunkCalls {
  /// Answers whether there is a function to call.
  static func begin(
    _ thunk: UInt64, _ call: UnsafeMutablePointer<cbr_thunk_call>?
  ) -> Bool {
    guard let call, let thread = Process.currentThread() else { return false }
    guard thunk != Handle.none else {
      // Its quarantine is over.
      _ = thread.fail(.stale) { text in
        text.append("a thunk that ended long ago was called")
      }
      return false
    }
    guard let slot = Table.slot(of: thunk) else {
      _ = thread.fail(Access.absent(thunk), about: thunk)
      return false
    }
    guard let pin = thread.pin(thunk) else {
      _ = thread.fail(.noMemory, about: thunk)
      return false
    }
    Hook.thunkPinned.reached(thunk)
    cbr_light_fence()
    guard slot.pointee.word.load(ordering: .acquiring) == thunk,
      let record = slot.thunkRecord
    else {
      Entering.withdraw(pin, thunk, thread: thread)
      _ = Entering.refuse(
        thunk, Entering.reason(of: thunk, slot), thread: thread)
      return false
    }
    let status = Entering.enter(
      record.pointee.token, tag: record.pointee.typeTag, call: call.record)
    guard status == Status.ok.rawValue else {
      Entering.withdraw(pin, thunk, thread: thread)
      return false
    }
    call.pointee.function = UnsafeMutableRawPointer(
      mutating: call.record.pointee.function)
    call.pointee.context = call.record.pointee.context
    call.pointee.pin = UInt64(pin)
    return true
  }

  /// The function has returned.
  ///
  /// What it was inside is not there any more where it has jumped out of its
  /// calls, or is another process by now.
  static func end(
    _ thunk: UInt64, _ call: UnsafeMutablePointer<cbr_thunk_call>?
  ) {
    guard let call else { return }
    _ = Leaving.leave(call.record)
    let pin = UInt32(truncatingIfNeeded: call.pointee.pin)
    guard let thread = ThreadPointer.current, thread.ownPin(pin) == thunk
    else { return }
    Entering.withdraw(pin, thunk, thread: thread)
  }

  /// The context of the thunk's call that the calling thread is inside of, the
  /// innermost one; nil where there is none.
  package static func currentContext() -> UnsafeMutableRawPointer? {
    guard let thread = ThreadPointer.current else { return nil }
    var depth = thread.ownDepth
    while depth > 0 {
      depth -= 1
      let pin = thread.ownPin(depth)
      guard Handle.isOf(.thunk, pin), let slot = Table.slot(of: pin),
        let record = slot.thunkRecord
      else { continue }
      // Until its token has been left.
      let token = record.pointee.token
      guard thread.isPinned(token), let own = Table.slot(of: token) else {
        return nil
      }
      return own.pointee.context
    }
    return nil
  }
}

extension UnsafeMutablePointer where Pointee == cbr_thunk_call {
  /// The call of the token, with which it begins.
  fileprivate var record: CallPointer {
    UnsafeMutableRawPointer(self).assumingMemoryBound(to: CallRecord.self)
  }
}

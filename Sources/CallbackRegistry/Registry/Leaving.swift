// SPDX-License-Identifier: Apache-2.0

import Synchronization

package enum Leaving {
  /// Ends a call, and answers with the raw status.
  @inline(__always)
  package static func leave(_ call: CallPointer) -> Int32 {
    guard let thread = ThreadPointer.current else {
      return notInside(call).rawValue
    }
    let token = call.pointee.token
    switch thread.leaveShort(call) {
    case .done: return Status.ok.rawValue
    case .departed: return depart(token, thread: thread)
    case .untouched, .pinned, .uncounted:
      return leaveFully(call, thread: thread)
    }
  }

  @inline(never)
  private static func leaveFully(
    _ call: CallPointer, thread: ThreadPointer
  ) -> Int32 {
    guard thread.isInside(call) else { return notInside(call).rawValue }
    let token = call.pointee.token
    if thread.leave(call) == .claimed {
      Finishing.finish(token, thread: thread)
    }
    return Status.ok.rawValue
  }

  @inline(never)
  private static func depart(_ token: UInt64, thread: ThreadPointer) -> Int32 {
    if let slot = Table.slot(of: token),
      Protocol.departed(from: slot, handle: token) == .claimed
    {
      Finishing.finish(token, thread: thread)
    }
    return Status.ok.rawValue
  }

  /// Ends a call whose function found that what it was to work on is gone: it
  /// was no call, but a refused attempt.
  @inline(never)
  package static func decline(_ call: CallPointer, _ status: Status) -> Status {
    guard let thread = ThreadPointer.current, thread.isInside(call) else {
      return notInside(call)
    }
    let token = call.pointee.token
    if call.pointee.mode & Mode.counted != 0 {
      let cell = thread.countingCell(of: token)
      cell.uncountAttempt()
      cell.end(at: call.pointee.depth)
    }
    call.pointee.token = Handle.none
    Entering.withdraw(call.pointee.depth, token, thread: thread)
    return Entering.refuse(token, status, thread: thread)
  }

  @inline(never)
  private static func notInside(_ call: CallPointer) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    let token = call.pointee.token
    if token != Handle.none, Table.isInherited(token) {
      return thread.fail(.forked, about: token)
    }
    return thread.fail(.invalid) { text in
      text.append("this thread is not inside such a call")
    }
  }

  /// Leaves every call above a mark, as abandoned.
  package static func unwind(to mark: Int) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    guard mark >= 0, mark <= Int(thread.ownDepth) else {
      return thread.fail(.invalid) { text in
        text.append("mark is ")
        text.append(UInt64(UInt(bitPattern: mark)))
        text.append("; the thread is inside ")
        text.append(UInt64(thread.ownDepth))
        text.append(" calls")
      }
    }
    unwind(thread, to: UInt32(mark), cause: AbandonCause.unwound)
    return .ok
  }

  /// The pins above a mark are of calls, of destroys, and of operations of the
  /// library that ran a user's function: the thread has jumped out of all.
  package static func unwind(
    _ thread: ThreadPointer, to mark: UInt32, cause: UInt32
  ) {
    while thread.ownDepth > mark {
      let depth = thread.ownDepth - 1
      let handle = thread.ownPin(depth)
      guard let slot = Table.slot(of: handle) else {
        thread.unpin(depth)
        continue
      }
      let word = slot.pointee.word.load(ordering: .acquiring)
      if word == Handle.destroying(handle) {
        thread.unpin(depth)
        Finishing.abandonDestroy(handle, thread: thread)
        continue
      }
      if Handle.kind(of: handle) == .list { thread.pointee.emissions -= 1 }
      if Handle.kind(of: handle) == .queue, let queue = slot.queueRecord {
        queue.abandonDelivery(
          handle, at: depth, cause: cause, thread: thread)
      }
      if Handle.kind(of: handle) == .token {
        if slot.isKnownToHistory {
          thread.countingCell(of: handle).end(at: depth)
        }
        recordAbandoned(handle, cause: cause, thread: thread)
      }
      // A thread inside it keeps its record.
      let step = slot.recordHeaderIfAny(of: handle)?.pointee.abandoned
      Ending.abandonStep(of: handle, thread: thread)
      Entering.withdraw(depth, handle, thread: thread)
      step?(handle)
    }
    Ending.resumeSteps(thread)
  }

  private static func recordAbandoned(
    _ token: UInt64, cause: UInt32, thread: ThreadPointer
  ) {
    guard let access = try? Access.of(token, thread: thread, bySpare: true)
    else { return }
    access.registry.pointee.abandoned.wrappingAdd(1, ordering: .relaxed)
    // The level may have been switched since the call began. What is recorded
    // though it was not counted explains itself; the reverse would not.
    if Table.knownSlot(at: Handle.index(of: token)).isKnownToHistory {
      access.registry.record(
        .abandoned, token, argument: cause, thread: thread)
    }
  }
}

/// Why a call was never left.
package enum AbandonCause {
  package static let threadEnded: UInt32 = 1
  package static let unwound: UInt32 = 2
}

extension Leaving {
  /// The calling thread's depth, for `unwind`.
  package static func mark() -> Int {
    guard let thread = ThreadPointer.current else { return 0 }
    return Int(thread.ownDepth)
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// An emission pins the list that the signal has when it begins, so the list
// stays, and calls those of its tokens that are live when their turn comes:
// each is pinned and checked like any call (Protocol.swift). It takes no lock,
// and writes no memory that another thread reads but its own pins. What is
// connected meanwhile is behind the count that it has read, or in another list.
//
// Whoever ends the signal ends its list and its connections, so an emission
// that goes on finds nothing more to call. What belongs to the signal is freed
// when the last emission has left the list.
// Tried to break by: Tests/C (emissions.c).

import CPlatform
import Synchronization

package typealias Handler =
  @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Int32

package typealias Combiner =
  @convention(c) (
    UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UInt64, Int32
  ) -> Int32

/// What an emission did.
package struct Emission {
  /// Handlers that were called.
  package var called: UInt64 = 0
  /// Handlers that were live and blocked.
  package var blocked: UInt64 = 0
  /// The handler that ended it.
  package var stoppedBy = Handle.none
  /// Handlers that are to be called on a queue.
  package var queued: UInt64 = 0
  /// Those whose queue has not taken the message.
  package var refused: UInt64 = 0

  package init() {}
}

package struct EmissionRequest {
  package let signal: UInt64
  package let argument: UnsafeMutableRawPointer?
  /// What is asked after each handler what its answer shall be.
  package let combine: Combiner?
  package let context: UnsafeMutableRawPointer?

  @inline(__always)
  package init(
    signal: UInt64, argument: UnsafeMutableRawPointer?,
    combine: Combiner? = nil, context: UnsafeMutableRawPointer? = nil
  ) {
    self.signal = signal
    self.argument = argument
    self.combine = combine
    self.context = context
  }
}

package enum Emitting {
  /// Calls a signal's handlers.
  package static func emit(
    _ what: EmissionRequest, result: inout Emission
  ) -> Status {
    guard let thread = ThreadPointer.current ?? Process.currentThread() else {
      return .noMemory
    }
    do throws(Status) {
      try HandleForm.check(what.signal, is: .signal)
      guard let list = try begin(what.signal, thread: thread) else {
        return .ok
      }
      let status = run(what, list, thread: thread, result: &result)
      if status == .forked { throw status }
      end(list, thread: thread)
      return status == .stopped ? thread.fail(.stopped) : status
    } catch {
      switch error {
      case .forked:
        return Process.currentThread()?.fail(error, about: what.signal)
          ?? .noMemory
      case .invalid, .kind, .noMemory:
        return thread.fail(error, about: what.signal)
      default: return Entering.refuse(what.signal, error, thread: thread)
      }
    }
  }

  /// A signal's connections, pinned.
  private struct PinnedList {
    let list: ConnectionListPointer
    let handle: UInt64
    let pin: UInt32
    let signal: SlotPointer
  }

  /// Pins the list that a signal has now; nil: it has nothing to call.
  private static func begin(
    _ signal: UInt64, thread: ThreadPointer
  ) throws(Status) -> PinnedList? {
    guard let slot = Table.slot(of: signal) else {
      throw Access.absent(signal)
    }
    let detail = Table.knownDetail(at: Handle.index(of: signal))
    while true {
      let handle = detail.currentList
      guard slot.pointee.word.load(ordering: .acquiring) == signal else {
        throw Access.absent(signal)
      }
      guard handle != Handle.none else { return nil }
      guard let pin = thread.pin(handle) else { throw .noMemory }
      cbr_light_fence()
      let listSlot = Table.knownSlot(of: handle)
      guard listSlot.pointee.word.load(ordering: .acquiring) == handle,
        let list = listSlot.connectionList
      else {
        // The signal has another list by now, or has ended.
        Entering.withdraw(pin, handle, thread: thread)
        continue
      }
      // From here on the signal's own record stays, too.
      let limit = slot.signalRecord?.pointee.emissionLimit ?? 0
      guard thread.pointee.emissions < limit else {
        Entering.withdraw(pin, handle, thread: thread)
        throw .depth
      }
      thread.pointee.emissions += 1
      return PinnedList(list: list, handle: handle, pin: pin, signal: slot)
    }
  }

  private static func end(_ list: PinnedList, thread: ThreadPointer) {
    thread.pointee.emissions -= 1
    Entering.withdraw(list.pin, list.handle, thread: thread)
  }

  private static func run(
    _ what: EmissionRequest, _ pinned: PinnedList, thread: ThreadPointer,
    result: inout Emission
  ) -> Status {
    let list = pinned.list
    let count = list.pointee.count.load(ordering: .acquiring)
    let mode = pinned.signal.pointee.mode.load(ordering: .relaxed)
    guard mode & Mode.blocked == 0 else {
      result.blocked = UInt64(count)
      return .ok
    }
    var gone = 0
    for index in 0..<count {
      let entry = list.pointee.entries[index]
      var call = CallRecord.empty
      switch thread.enterHandler(entry, call: &call) {
      case .ok: break
      case .stopped:
        result.blocked += 1
        continue
      case .noMemory: return thread.fail(.noMemory, about: entry.token)
      case .pending:
        let status = Queues.post(
          entry, argument: what.argument, thread: thread)
        guard ThreadPointer.current == thread else { return .forked }
        switch status {
        case .ok: result.queued += 1
        case .stale: gone += 1
        default: result.refused += 1
        }
        continue
      default:
        gone += 1
        continue
      }
      result.called += 1
      let function = unsafeBitCast(call.function, to: Handler?.self)
      var answer =
        function?(call.context, what.argument) ?? Disposition.goOn
      if let combine = what.combine {
        answer = combine(what.context, what.argument, entry.token, answer)
      }
      // A handler has forked: in the child nothing is the thread's any more.
      guard ThreadPointer.current == thread else { return .forked }
      if answer == Disposition.disconnect {
        _ = Ending.end(entry.token, reason: Reason.ended, waitingUntil: nil)
      }
      if thread.leave(&call) == .claimed {
        Finishing.finish(entry.token, thread: thread)
      }
      if answer != Disposition.goOn, answer != Disposition.disconnect {
        result.stoppedBy = entry.token
        return .stopped
      }
    }
    if gone >= 16, gone * 2 > count { Signals.tidy(what.signal, thread) }
    let word = pinned.signal.pointee.word.load(ordering: .acquiring)
    return word == what.signal ? .ok : .stopped
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// Enters a handler whose turn it is: `.stopped` when it is blocked, `.stale`
  /// when it is gone, of which nobody need know; `.pending` when it is to be
  /// called on a queue.
  @inline(__always)
  fileprivate func enterHandler(
    _ entry: ConnectionList.Entry, call: CallPointer
  ) -> Status {
    let mode = entry.slot.pointee.mode.load(ordering: .relaxed)
    let began = mode & Mode.timed != 0 ? Ticks.now : 0
    guard let pin = pin(entry.token) else { return .noMemory }
    Hook.enterPinned.reached(entry.token)
    cbr_light_fence()
    let checked = entry.slot.after(ticks: began)
    let word = checked.pointee.word.load(ordering: .acquiring)
    Hook.enterChecked.reached(entry.token)
    let now = entry.slot.pointee.mode.load(ordering: .relaxed)
    let plain = Mode.plain | Mode.timed | Mode.connection
    guard word == entry.token, now & ~plain == 0,
      (now ^ mode) & Mode.timed == 0
    else {
      return Entering.enterHandler(entry, pin: pin, thread: self, call: call)
    }
    begin(
      call, token: entry.token, slot: entry.slot, pin: pin, mode: now,
      began: began)
    return .ok
  }
}

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
package struct EmissionCounts {
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
  @inline(__always)
  package static func emit(
    _ what: EmissionRequest, result: inout EmissionCounts
  ) -> Status {
    guard let thread = ThreadPointer.current,
      let list = beginShort(what.signal, thread: thread)
    else { return emitFully(what, result: &result) }
    let status = run(
      what, list, thread: thread, cell: ThreadPointer.outermostHandlerCell,
      result: &result)
    guard status == .ok || status == .stopped else {
      return conclude(what.signal, status, list, thread: thread)
    }
    thread.pointee.emissions = 0
    if thread.leaveOutermostList(list.handle) == .claimed {
      Finishing.finish(list.handle, thread: thread)
    }
    return status == .ok ? .ok : thread.fail(.stopped)
  }

  /// Pins the list of a signal for an outermost emission; nil, and without a
  /// trace, where there is anything to heed.
  @inline(__always)
  private static func beginShort(
    _ signal: UInt64, thread: ThreadPointer
  ) -> PinnedList? {
    guard Handle.isOf(.signal, signal),
      let chunk = Table.chunk(at: Handle.index(of: signal))
    else { return nil }
    let slot = chunk.slot(of: signal)
    let handle = chunk.detail(of: signal).currentList
    guard slot.pointee.word.load(ordering: .acquiring) == signal,
      handle != Handle.none
    else { return nil }
    Hook.listRead.reached(signal)
    let listSlot = Table.knownSlot(of: handle)
    switch thread.enterOutermostList(handle, slot: listSlot) {
    case .done: break
    case .departed:
      if Protocol.departed(from: listSlot, handle: handle) == .claimed {
        Finishing.finish(handle, thread: thread)
      }
      return nil
    default: return nil
    }
    guard let list = listSlot.connectionList else { return nil }
    thread.pointee.emissions = 1
    return PinnedList(list: list, handle: handle, pin: 0, signal: slot)
  }

  @inline(never)
  private static func emitFully(
    _ what: EmissionRequest, result: inout EmissionCounts
  ) -> Status {
    guard let thread = ThreadPointer.current ?? Process.currentThread() else {
      return .noMemory
    }
    do throws(Status) {
      try HandleForm.check(what.signal, is: .signal)
      guard let list = try begin(what.signal, thread: thread) else {
        return .ok
      }
      let cell = thread.handlerCell
      let status = run(
        what, list, thread: thread, cell: cell, result: &result)
      if status != .forked, let cell { thread.closeHandlerCell(cell) }
      return conclude(what.signal, status, list, thread: thread)
    } catch {
      switch error {
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
      Hook.listRead.reached(signal)
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

  @inline(never)
  private static func conclude(
    _ signal: UInt64, _ status: Status, _ list: PinnedList,
    thread: ThreadPointer
  ) -> Status {
    // In the child nothing is the thread's any more.
    if status == .forked {
      return Process.currentThread()?.fail(status, about: signal) ?? .noMemory
    }
    thread.pointee.emissions -= 1
    Entering.withdraw(list.pin, list.handle, thread: thread)
    return status == .stopped ? thread.fail(.stopped) : status
  }

  @inline(__always)
  private static func run(
    _ what: EmissionRequest, _ pinned: PinnedList, thread: ThreadPointer,
    cell: UInt32?, result: inout EmissionCounts
  ) -> Status {
    let list = pinned.list
    let count = list.pointee.count.load(ordering: .acquiring)
    let mode = pinned.signal.pointee.mode.load(ordering: .relaxed)
    guard mode & Mode.blocked == 0 else {
      result.blocked = UInt64(list.countLive(ofFirst: count))
      return .ok
    }
    var gone = 0
    for index in 0..<count {
      let entry = list.pointee.entries[index]
      let turn = give(what, entry, thread: thread, cell: cell)
      switch turn {
      case .called: result.called += 1
      case .blocked: result.blocked += 1
      case .queued: result.queued += 1
      case .refused: result.refused += 1
      case .gone: gone += 1
      case .stopped:
        result.called += 1
        result.stoppedBy = entry.token
        return .stopped
      case .forked: return .forked
      case .noMemory: return thread.fail(.noMemory, about: entry.token)
      }
    }
    if gone >= 16, gone * 2 > count { Signals.tidy(what.signal, thread) }
    let word = pinned.signal.pointee.word.load(ordering: .acquiring)
    return word == what.signal ? .ok : .stopped
  }
}

/// What became of one handler's turn.
private enum HandlerTurn {
  case called
  case stopped
  case blocked
  case queued
  /// Its queue has not taken the message.
  case refused
  case gone
  case forked
  case noMemory
}

extension Emitting {
  @inline(__always)
  private static func give(
    _ what: EmissionRequest, _ entry: ConnectionList.Entry,
    thread: ThreadPointer, cell: UInt32?
  ) -> HandlerTurn {
    guard let cell else { return callFully(what, entry, thread: thread) }
    switch thread.enterPlainHandler(
      entry.token, slot: entry.slot, cell: cell)
    {
    case .entered(let mode):
      return callPlain(what, entry, mode, thread: thread, cell: cell)
    case .other: return callFully(what, entry, thread: thread)
    case .claimed:
      Finishing.finish(entry.token, thread: thread)
      return .gone
    }
  }

  /// Calls a handler that the short way has entered.
  @inline(__always)
  private static func callPlain(
    _ what: EmissionRequest, _ entry: ConnectionList.Entry, _ mode: UInt32,
    thread: ThreadPointer, cell: UInt32
  ) -> HandlerTurn {
    let turn = call(
      what, entry, entry.slot.pointee.function, entry.slot.pointee.context,
      thread: thread)
    guard turn != .forked else { return turn }
    var mode = mode
    if turn == .gone {
      thread.takeBackHandler(entry.token, at: cell, mode: &mode)
    }
    let departure = thread.leavePlainHandler(
      entry.token, slot: entry.slot, cell: cell, mode: mode)
    if departure == .claimed { Finishing.finish(entry.token, thread: thread) }
    return turn
  }

  /// Gives a turn to any handler.
  @inline(never)
  private static func callFully(
    _ what: EmissionRequest, _ entry: ConnectionList.Entry,
    thread: ThreadPointer
  ) -> HandlerTurn {
    var record = CallRecord.empty
    switch thread.enterHandler(entry, call: &record) {
    case .ok: break
    case .stopped: return .blocked
    case .pending: return post(what, entry, thread: thread)
    case .noMemory: return .noMemory
    default: return .gone
    }
    let turn = call(
      what, entry, record.function, record.context, thread: thread)
    guard turn != .forked else { return turn }
    if turn == .gone {
      var mode = record.mode
      thread.takeBackHandler(entry.token, at: record.depth, mode: &mode)
      record.pin = UInt64(record.depth) | UInt64(mode) << 32
    }
    if thread.leave(&record) == .claimed {
      Finishing.finish(entry.token, thread: thread)
    }
    return turn
  }

  /// Leaves the call to the handler's queue.
  private static func post(
    _ what: EmissionRequest, _ entry: ConnectionList.Entry,
    thread: ThreadPointer
  ) -> HandlerTurn {
    let status = Queues.post(entry, argument: what.argument, thread: thread)
    // Copying the argument may have forked.
    guard ThreadPointer.current == thread else { return .forked }
    switch status {
    case .ok: return .queued
    case .stale: return .gone
    default: return .refused
    }
  }

  @inline(__always)
  private static func call(
    _ what: EmissionRequest, _ entry: ConnectionList.Entry,
    _ function: UnsafeRawPointer?, _ context: UnsafeMutableRawPointer?,
    thread: ThreadPointer
  ) -> HandlerTurn {
    let handler = unsafeBitCast(function, to: Handler?.self)
    var answer = handler?(context, what.argument) ?? Disposition.goOn
    if let combine = what.combine, answer != Disposition.gone {
      answer = combine(what.context, what.argument, entry.token, answer)
    }
    // A handler has forked: in the child nothing is the thread's any more.
    guard ThreadPointer.current == thread else { return .forked }
    if answer == Disposition.goOn { return .called }
    if answer == Disposition.disconnect {
      _ = Ending.end(entry.token, reason: Reason.ended, waitingUntil: nil)
      return .called
    }
    return answer == Disposition.gone ? .gone : .stopped
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

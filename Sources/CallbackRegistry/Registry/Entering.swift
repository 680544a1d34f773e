// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What a caller asks of a token.
package enum Demand {
  case function
  case typed(UInt64)
  case method(InterfaceDescription, UInt32)
  /// That of a signal, whose turn has come on a queue.
  case handler
}

package enum Entering {
  /// Begins a call of a function, with a type tag unless `tag` is 0, and
  /// answers with the raw status.
  @inline(__always)
  package static func enter(
    _ token: UInt64, tag: UInt64 = 0, call: CallPointer
  ) -> Int32 {
    guard let thread = ThreadPointer.current,
      let slot = Table.slot(of: token)
    else { return enterFunction(token, tag, call: call) }
    switch thread.enterShort(token, tag: tag, slot: slot, call: call) {
    case .done: return Status.ok.rawValue
    case .pinned: return resume(token, tag, thread: thread, call: call)
    case .uncounted: return count(token, thread: thread)
    case .untouched, .departed: return enterFunction(token, tag, call: call)
    }
  }

  @inline(never)
  private static func enterFunction(
    _ token: UInt64, _ tag: UInt64, call: CallPointer
  ) -> Int32 {
    let demand = tag == 0 ? Demand.function : Demand.typed(tag)
    return enterFully(token, demand, call: call).rawValue
  }

  /// The short path has pinned something that is not plain and live.
  @inline(never)
  private static func resume(
    _ token: UInt64, _ tag: UInt64, thread: ThreadPointer, call: CallPointer
  ) -> Int32 {
    if let slot = Table.slot(of: token),
      thread.enterTimed(token, tag: tag, slot: slot, call: call)
    {
      return Status.ok.rawValue
    }
    withdraw(thread.ownDepth &- 1, token, thread: thread)
    return enterFunction(token, tag, call: call)
  }

  @inline(never)
  private static func count(_ token: UInt64, thread: ThreadPointer) -> Int32 {
    let cell = thread.countingCell(of: token)
    cell.countAttempt()
    cell.begin(at: 0, token: token, began: 0)
    return Status.ok.rawValue
  }

  /// Begins a call of any kind.
  @inline(never)
  package static func enterFully(
    _ token: UInt64, _ demand: Demand, call: CallPointer
  ) -> Status {
    call.pointee = .empty
    guard let thread = Process.currentThread() else { return .noMemory }
    let slot: SlotPointer
    do throws(Status) {
      slot = try self.slot(of: token)
    } catch {
      return thread.fail(error, about: token)
    }
    let status = attempt(token, demand, slot, thread: thread, call: call)
    return status == .ok ? .ok : refuse(token, status, thread: thread)
  }

  /// The same of a token whose slot is known; the caller tells of a failure.
  @inline(__always)
  static func attempt(
    _ token: UInt64, _ demand: Demand, _ slot: SlotPointer,
    thread: ThreadPointer, call: CallPointer
  ) -> Status {
    while true {
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      let began = mode & Mode.timed != 0 ? Ticks.now : 0
      guard let pin = thread.pin(token) else { return .noMemory }
      Hook.enterPinned.reached(token)
      cbr_light_fence()
      let checked = slot.after(ticks: began)
      let word = checked.pointee.word.load(ordering: .acquiring)
      Hook.enterChecked.reached(token)
      guard word == token else {
        withdraw(pin, token, thread: thread)
        return reason(of: token, slot)
      }
      // The mode is this token's only now. Its level may have been switched.
      let now = slot.pointee.mode.load(ordering: .relaxed)
      guard (now ^ mode) & Mode.timed == 0 else {
        withdraw(pin, token, thread: thread)
        continue
      }
      let entry = Entry(
        token: token, slot: slot, thread: thread, pin: pin, mode: now,
        began: began)
      return begin(entry, demand, call: call)
    }
  }

  /// A pinned live token.
  struct Entry {
    let token: UInt64
    let slot: SlotPointer
    let thread: ThreadPointer
    let pin: UInt32
    let mode: UInt32
    let began: UInt64
  }

  private static func begin(
    _ entry: Entry, _ demand: Demand, call: CallPointer
  ) -> Status {
    let thread = entry.thread
    var disposition: Int64 = 0
    var function = entry.slot.pointee.function
    var status = check(entry)
    if status == .ok {
      status = match(
        entry, demand, function: &function, disposition: &disposition)
    }
    if status == .ok, entry.mode & Mode.oneShot != 0 {
      status = consume(entry)
    }
    guard status == .ok else {
      withdraw(entry.pin, entry.token, thread: thread)
      call.pointee.disposition = disposition
      return status
    }
    thread.begin(
      call, token: entry.token, slot: entry.slot, pin: entry.pin,
      mode: entry.mode, began: entry.began)
    call.pointee.function = function
    return .ok
  }

  static func check(_ entry: Entry) -> Status {
    guard entry.mode & Mode.threadBound != 0 else { return .ok }
    let detail = Table.knownDetail(at: Handle.index(of: entry.token))
    let own = entry.thread.pointee.number.load(ordering: .relaxed)
    return detail.pointee.registeredThread == own ? .ok : .thread
  }

  /// Compares what is asked for with what was registered (G10).
  private static func match(
    _ entry: Entry, _ demand: Demand,
    function: inout UnsafeRawPointer?, disposition: inout Int64
  ) -> Status {
    let detail = Table.knownDetail(at: Handle.index(of: entry.token))
    switch demand {
    case .function:
      return entry.mode & (Mode.interface | Mode.tagged | Mode.connection) == 0
        ? .ok : .interface
    case .typed(let tag):
      return entry.mode & (Mode.interface | Mode.connection) == 0
        && detail.pointee.typeTag == tag
        ? .ok : .interface
    case .handler:
      guard entry.mode & Mode.connection != 0 else { return .interface }
      return entry.mode & Mode.blocked == 0 ? .ok : .stopped
    case .method(let description, let method):
      let found = entry.slot.method(
        description, method, mode: entry.mode, thread: entry.thread)
      function = found.function
      disposition = found.disposition
      return found.status
    }
  }

  /// Ends a one-shot for everybody but the calling thread, which is inside.
  static func consume(_ entry: Entry) -> Status {
    let access: Access
    do throws(Status) {
      access = try Access.of(
        entry.token, thread: entry.thread, bySpare: true)
    } catch {
      return error
    }
    let registry = access.registry
    let time = Ticks.now
    var chain = Chain()
    let isMine = registry.pointee.lock.locked {
      registry.mark(
        entry.token, slot: entry.slot, reason: Reason.consumed,
        thread: entry.thread, time: time, into: &chain)
    }
    guard isMine else { return reason(of: entry.token, entry.slot) }
    Hook.consumedMarked.reached(entry.token)
    registry.recordEnded(chain, thread: entry.thread)
    var cleared = chain.cleared.takeAll()
    defer { registry.tell(&cleared, thread: entry.thread) }
    if entry.slot.pointee.destroy == nil {
      Ending.park(chain, slot: entry.slot, access)
    } else {
      // The call's own pin drains it: whoever leaves last destroys.
      Ending.settle(chain, access)
    }
    return .ok
  }
}

extension Entering {
  /// Enters a signal's handler that the short way has pinned and not entered.
  ///
  /// One that is gone was not called late: that is no refusal.
  static func enterHandler(
    _ handler: ConnectionList.Entry, pin: UInt32, thread: ThreadPointer,
    call: CallPointer
  ) -> Status {
    let token = handler.token
    let slot = handler.slot
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let began = mode & Mode.timed != 0 ? Ticks.now : 0
    let word = slot.after(ticks: began).pointee.word.load(ordering: .acquiring)
    guard word == token, mode & (Mode.blocked | Mode.queued) == 0 else {
      withdraw(pin, token, thread: thread)
      guard word == token else { return .stale }
      return mode & Mode.blocked == 0 ? .pending : .stopped
    }
    let entry = Entry(
      token: token, slot: slot, thread: thread, pin: pin, mode: mode,
      began: began)
    var status = check(entry)
    let isForeign = status != .ok
    if status == .ok, mode & Mode.oneShot != 0 { status = consume(entry) }
    guard status == .ok else {
      withdraw(pin, token, thread: thread)
      return isForeign ? refuse(token, status, thread: thread) : .stale
    }
    thread.begin(
      call, token: token, slot: slot, pin: pin, mode: mode, began: began)
    return .ok
  }

  /// Clears a pin, and finishes what that makes the thread responsible for.
  @inline(__always)
  static func withdraw(
    _ pin: UInt32, _ handle: UInt64, thread: ThreadPointer
  ) {
    if thread.withdraw(pin, handle: handle) == .claimed {
      Finishing.finish(handle, thread: thread)
    }
  }

  /// Why a token cannot be entered.
  static func reason(of token: UInt64, _ slot: SlotPointer) -> Status {
    let reason = Table.knownDetail(at: Handle.index(of: token))
      .pointee.endReason.load(ordering: .relaxed)
    let word = slot.pointee.word.load(ordering: .acquiring)
    guard Handle.handle(ofWord: word) == token else {
      let status = Access.absent(token)
      // Remembered until the slot is used again.
      let isFresh =
        Handle.kind(of: word) == nil
        && Handle.generation(of: word)
          == Handle.generation(of: token) &+ 1
      return status == .stale && isFresh && reason == Reason.consumed
        ? .consumed : status
    }
    return reason == Reason.consumed ? .consumed : .stale
  }

  /// Records a refused attempt with the registry that the token was of.
  static func refuse(
    _ token: UInt64, _ status: Status, thread: ThreadPointer
  ) -> Status {
    if let access = Access.forRecording(token, thread: thread) {
      let registry = access.registry
      registry.pointee.refused.wrappingAdd(1, ordering: .relaxed)
      if registry.level != .off {
        registry.record(
          .refused, token, argument: UInt32(bitPattern: status.rawValue),
          thread: thread)
      }
    }
    return thread.fail(status, about: token)
  }
}

/// A method that was looked for.
struct FoundMethod {
  var status: Status
  var function: UnsafeRawPointer?
  var disposition: Int64 = 0
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Looks up a method of a pinned live token.
  func method(
    _ description: InterfaceDescription, _ index: UInt32, mode: UInt32,
    thread: ThreadPointer
  ) -> FoundMethod {
    guard mode & Mode.interface != 0, let body = pointee.body else {
      return FoundMethod(status: .interface)
    }
    let interface = body.assumingMemoryBound(to: Interface.self)
    guard interface.isSame(as: description) else {
      return FoundMethod(status: .interface)
    }
    let count = interface.pointee.count
    guard index < count else {
      let status = thread.invalid { text in
        text.append("method is ")
        text.append(index)
        text.append("; the interface has ")
        text.append(count)
      }
      return FoundMethod(status: status)
    }
    let table = pointee.function?.assumingMemoryBound(
      to: UnsafeRawPointer?.self)
    if let function = table?[Int(index)] {
      return FoundMethod(status: .ok, function: function)
    }
    return FoundMethod(
      status: .unimplemented,
      disposition: interface.pointee.methods[Int(index)].absentDisposition)
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// A completion is a reply that stands alone: a callback that is called exactly
// once, with what is sent or, when nothing ever is, with what was stated when
// it was made (G27). It is called by the step of its end, whatever ended it; so
// there is one place that calls it, and it is there once.
//
// `result` is written under the registry's lock by whoever sends, before the
// handle is marked, and read by the step.
// Tried to break by: Tests/C (completions.c).

import Synchronization

package typealias Completed =
  @convention(c) (
    UnsafeMutableRawPointer?, Int32, UnsafeMutableRawPointer?
  ) -> Void

struct CompletionRecord {
  var header: RecordHeader
  var error: Int32
  var value: UnsafeMutableRawPointer?
  /// Its timeout, if it was ever given one.
  var alarm: AlarmPointer?
}

typealias CompletionPointer = UnsafeMutablePointer<CompletionRecord>

package enum Completions {
  /// Makes a completion.
  ///
  /// On failure nothing is taken (G6).
  package static func create(
    in handle: UInt64, _ what: RegistrationRequest, defaultError: Int32,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      guard what.interface == nil, what.typeTag == 0, what.flags == 0 else {
        throw thread.invalid(
          "a completion has no interface, no type_tag and no flags")
      }
      try Registering.validate(what, thread: thread)
      let access = try Access.registry(handle, thread: thread)
      try create(what, defaultError, access, out: out)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func create(
    _ what: RegistrationRequest, _ defaultError: Int32,
    _ access: borrowing Access, out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let registry = access.registry
    let origin = try registry.internOrigin(
      label: what.label, file: what.file, line: what.line)
    guard let record = Memory.allocate(CompletionRecord.self) else {
      throw .noMemory
    }
    var new = NewSlot(
      kind: .reply, origin: origin, owner: what.owner,
      mode: Mode.notCallable | registry.level.mode, thread: access.thread)
    new.destroy(what)
    do throws(Status) {
      try registry.add(&new, access, out: out) { slot, _, handle in
        record.initialize(
          to: CompletionRecord(
            header: RecordHeader(
              handle: handle, ended: { Completions.ended($0) },
              abandoned: { _ in },
              free: {
                $0.assumingMemoryBound(to: CompletionRecord.self).destroy()
              }),
            error: defaultError, value: nil))
        slot.pointee.body = UnsafeMutableRawPointer(record)
        slot.pointee.function = what.function
        slot.pointee.context = what.context
        slot.pointee.destroy = what.destroy
      }
    } catch {
      Memory.release(record)
      throw error
    }
  }

  /// Completes: the first one counts.
  package static func send(
    _ handle: UInt64, error: Int32, value: UnsafeMutableRawPointer?
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .reply)
      let access = try Access.of(handle, thread: thread)
      try end(handle, access) { record in
        record.pointee.error = error
        record.pointee.value = value
        return Reason.consumed
      }
      return ThreadPointer.current == thread ? .ok : .forked
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Ends it for the reason that `fill` says, if it says one, and so calls it.
  private static func end(
    _ handle: UInt64, _ access: borrowing Access,
    _ fill: (CompletionPointer) -> UInt32?
  ) throws(Status) {
    try Ending.end(handle, access) { slot in
      guard let record = slot.completion else { return .failure(.kind) }
      guard let reason = fill(record) else { return .failure(.already) }
      return .success(reason)
    }
  }

  /// Says how long from now something may be sent; 0: for ever.
  package static func setTimeout(
    _ handle: UInt64, on queue: UInt64, nanoseconds: UInt64
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .reply)
      if nanoseconds == 0 {
        guard queue == Handle.none else {
          throw thread.invalid("queue is for a timeout that is not 0")
        }
      } else {
        guard queue != Handle.none else {
          throw thread.invalid("a timeout needs a queue")
        }
        try Registering.checkForm(ofQueue: queue, thread: thread)
      }
      let access = try Access.of(handle, thread: thread)
      try setTimeout(handle, on: queue, nanoseconds: nanoseconds, access)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func setTimeout(
    _ handle: UInt64, on queue: UInt64, nanoseconds: UInt64,
    _ access: borrowing Access
  ) throws(Status) {
    let registry = access.registry
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    let thread = access.thread
    var alarm: AlarmPointer?
    if nanoseconds > 0 {
      alarm = .make { Completions.timedOut($0) }
      if alarm == nil { throw .noMemory }
    }
    var known = Status.ok
    let status: Status? = registry.pointee.lock.locked {
      guard slot.pointee.word.load(ordering: .relaxed) == handle else {
        return nil
      }
      guard let record = slot.completion else { return .kind }
      known = registry.check(queue)
      guard known == .ok else { return .ok }
      let former = record.replace(alarm: alarm)
      _ = alarm?.set(for: handle, on: queue, afterNanoseconds: nanoseconds)
      alarm = former
      return .ok
    }
    // What is not used, or no longer.
    Memory.release(alarm)
    guard status == .ok else {
      throw status ?? Entering.reason(of: handle, slot)
    }
    guard known == .ok else {
      let status = known == .dying ? Status.stale : known
      throw thread.toThrow(thread.fail(status, about: queue))
    }
  }

  /// Its time is over, or the queue has ended that would have told.
  private static func timedOut(_ handle: UInt64) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    _ = try? end(handle, access) { record in
      // It may have been given another one meanwhile, or none.
      guard let alarm = record.pointee.alarm, !alarm.isWaiting else {
        return nil
      }
      return alarm.isOnLiveQueue ? Reason.timedOut : Reason.queueEnded
    }
  }

  /// The handle has ended: it is called, whether something was sent or not.
  private static func ended(_ handle: UInt64) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    // Who runs the step keeps the record.
    guard let record = slot.completion else { return }
    let function = unsafeBitCast(slot.pointee.function, to: Completed?.self)
    let error = access.registry.pointee.lock.locked { record.pointee.error }
    function?(slot.pointee.context, error, record.pointee.value)
  }
}

extension UnsafeMutablePointer where Pointee == CompletionRecord {
  /// Returns the former one, which is not set.
  ///
  /// The lock of the registry is held.
  fileprivate func replace(alarm: AlarmPointer?) -> AlarmPointer? {
    let former = pointee.alarm
    former?.takeBack()
    pointee.alarm = alarm
    return former
  }

  /// The lock of the registry is held.
  fileprivate func destroy() {
    pointee.alarm?.takeBack()
    Memory.release(pointee.alarm)
    Memory.release(self)
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a reply that stands alone; a task's has no function.
  fileprivate var completion: CompletionPointer? {
    guard pointee.function != nil else { return nil }
    return pointee.body?.assumingMemoryBound(to: CompletionRecord.self)
  }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What the handle of a task's reply stands for; guarded by the registry's lock.
private struct ReplyRecord {
  var header: RecordHeader
  /// It was sent, or its time was over: how the task goes on has been said.
  var isUsed = false
}

/// Replies: answers that a task waits for, each used once (G26, G27).
package enum Replies {
  /// Makes the reply to a task's response.
  static func create(
    for task: UInt64, _ access: borrowing Access,
    out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let registry = access.registry
    let detail = Table.knownDetail(at: Handle.index(of: task))
    guard let record = Memory.allocate(ReplyRecord.self) else {
      throw .noMemory
    }
    var new = NewSlot(
      kind: .reply,
      origin: Origin(
        callback: detail.pointee.callback, site: detail.pointee.site),
      owner: task, mode: Mode.notCallable | registry.level.mode,
      thread: access.thread)
    do throws(Status) {
      try registry.add(&new, access, out: out) { slot, detail, handle in
        detail.pointee.typeTag = task
        record.initialize(
          to: ReplyRecord(
            header: RecordHeader(
              handle: handle, ended: { Replies.ended($0) },
              abandoned: { _ in }, free: { Memory.release($0) })))
        slot.pointee.body = UnsafeMutableRawPointer(record)
      }
    } catch {
      Memory.release(record)
      throw error
    }
  }

  package static func send(
    _ handle: UInt64, _ disposition: Int32, successor: UInt64
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .reply)
      try check(disposition, successor, thread: thread)
      let access = try Access.of(handle, thread: thread)
      try send(handle, disposition, successor: successor, access)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func check(
    _ disposition: Int32, _ successor: UInt64, thread: ThreadPointer
  ) throws(Status) {
    switch disposition {
    case Disposition.allow, Disposition.cancel:
      guard successor == Handle.none else {
        throw thread.invalid("successor is for CBR_HAND_OVER")
      }
    case Disposition.handOver: break
    default:
      throw thread.invalid(
        "disposition is not CBR_ALLOW, CBR_CANCEL or CBR_HAND_OVER")
    }
  }

  private static func send(
    _ handle: UInt64, _ disposition: Int32, successor: UInt64,
    _ access: borrowing Access
  ) throws(Status) {
    let registry = access.registry
    var taken: HeldDelegate?
    var event: SessionEventPointer?
    if disposition == Disposition.handOver {
      let delegate = try HeldDelegate.take(successor, in: registry)
      event = .make(.handOver, of: nil)
      guard event != nil else {
        delegate.release()
        throw .noMemory
      }
      taken = delegate
    }
    do throws(Status) {
      let task = try end(handle, reason: Reason.consumed, access)
      _ = try Tasks.run(task, isLive: false, access) { task in
        guard task.pointee.stage == .answering else { return false }
        if disposition == Disposition.cancel { return task.cancel() }
        guard let delegate = taken, let told = event else {
          task.flow()
          return true
        }
        task.pointee.coming = delegate
        told.pointee.task = task
        task.pointee.session.pointee.events.append(told)
        taken = nil
        event = nil
        return true
      }
    } catch {
      Memory.release(event)
      taken?.release()
      throw error
    }
    Memory.release(event)
    taken?.release()
  }

  /// Nobody has sent a task's reply in time: what was stated for that is done.
  static func giveUp(of task: UInt64, _ access: borrowing Access) {
    let registry = access.registry
    let reply = registry.pointee.lock.locked {
      registry.task(task, isLive: false)?.pointee.reply ?? Handle.none
    }
    guard reply != Handle.none,
      (try? end(reply, reason: Reason.timedOut, access)) == task
    else { return }
    _ = try? Tasks.run(task, isLive: false, access) {
      $0.goOnUnanswered(error: TaskError.timedOut)
    }
  }

  /// The handle has ended: a live task whose reply can no longer be sent goes on
  /// as stated.
  private static func ended(_ handle: UInt64) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    let index = Handle.index(of: handle)
    let task = Table.knownDetail(at: index).pointee.typeTag
    let isUsed = access.registry.pointee.lock.locked {
      Table.knownSlot(at: index).reply?.pointee.isUsed ?? true
    }
    guard !isUsed else { return }
    _ = try? Tasks.run(task, isLive: true, access) {
      $0.goOnUnanswered(error: TaskError.cancelled)
    }
  }

  /// Ends a reply: it is used up, or its time is over.
  ///
  /// Returns the task that it is of.
  private static func end(
    _ handle: UInt64, reason: UInt32, _ access: borrowing Access
  ) throws(Status) -> UInt64 {
    let registry = access.registry
    var task = Handle.none
    try Ending.end(handle, access) { slot in
      task = Table.knownDetail(at: Handle.index(of: handle)).pointee.typeTag
      guard task != Handle.none else { return .failure(.kind) }
      // One that was cancelled goes unanswered.
      guard registry.task(task, isLive: false)?.pointee.completion != nil
      else { return .failure(.closed) }
      slot.reply?.pointee.isUsed = true
      return .success(reason)
    }
    return task
  }
}

extension UnsafeMutablePointer where Pointee == TaskRecord {
  /// Nobody says any more how the task goes on: what was stated for that is
  /// done.
  fileprivate func goOnUnanswered(error: Int32) -> Bool {
    guard pointee.stage == .answering else { return false }
    guard pointee.timeouts.allowsUnanswered else {
      return cancel(error: error)
    }
    flow()
    return true
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a task's reply.
  fileprivate var reply: UnsafeMutablePointer<ReplyRecord>? {
    pointee.body?.assumingMemoryBound(to: ReplyRecord.self)
  }
}

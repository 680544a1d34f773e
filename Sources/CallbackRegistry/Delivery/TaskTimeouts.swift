// SPDX-License-Identifier: Apache-2.0
//
// What ends a task that takes too long, and a reply that does not come. Both
// are alarms on the session's queue, whose memory is taken when the task begins.
// What is done then is done by who delivers there, as a step like any other: so
// it comes before or after what others do, and never besides it. When the queue
// ends there is no clock any more: the session is cancelled.
//
// The alarms are set under the registry's lock, and taken back and freed with
// the task. That of a reply which came in time finds nothing to do.
// Tried to break by: Tests/C (timeouts.c).

import Synchronization

struct TaskTimeouts {
  private let whole: AlarmPointer?
  private let reply: AlarmPointer?
  private let wholeNanoseconds: UInt64
  private let replyNanoseconds: UInt64
  /// What becomes of a task whose reply did not come: it goes on.
  let allowsUnanswered: Bool

  /// Nil without memory.
  init?(_ what: TaskRequest) {
    wholeNanoseconds = what.timeoutNanoseconds
    replyNanoseconds = what.replyTimeoutNanoseconds
    allowsUnanswered = what.unanswered == Disposition.allow
    whole = wholeNanoseconds > 0 ? .make { TaskTimeouts.endTask($0) } : nil
    reply = replyNanoseconds > 0 ? .make { TaskTimeouts.giveUpReply($0) } : nil
    guard wholeNanoseconds == 0 || whole != nil,
      replyNanoseconds == 0 || reply != nil
    else {
      destroy()
      return nil
    }
  }

  static func check(
    _ what: TaskRequest, thread: ThreadPointer
  ) throws(Status) {
    switch what.unanswered {
    case 0, Disposition.allow, Disposition.cancel: break
    default:
      throw thread.invalid("unanswered is not 0, CBR_ALLOW or CBR_CANCEL")
    }
  }

  /// A session that has no queue has no clock.
  static func check(
    _ what: TaskRequest, in session: UInt64, _ access: borrowing Access
  ) throws(Status) {
    let registry = access.registry
    guard what.timeoutNanoseconds > 0 || what.replyTimeoutNanoseconds > 0
    else { return }
    let queue = registry.pointee.lock.locked {
      registry.session(session, isLive: true)?.pointee.queue
    }
    if queue == Handle.none {
      throw access.thread.invalid("a timeout needs a session with a queue")
    }
  }

  /// Whether a task may begin on a session: one with a timeout needs a queue
  /// that has not ended.
  var isAllowed: (RegistryPointer, UInt64) -> Bool {
    whole == nil && reply == nil
      ? { $0.isOpen($1) } : { $0.isOpen($1) && $0.hasClock($1) }
  }

  /// The registry's lock is held, and the queue is live if there is a timeout.
  func begin(_ task: UInt64, on queue: UInt64) {
    _ = whole?.set(for: task, on: queue, afterNanoseconds: wholeNanoseconds)
  }

  var hasReplyTimeout: Bool { reply != nil }

  /// The delegate is about to be told of the response; false when its queue has
  /// ended.
  ///
  /// The registry's lock is held, and there is such a timeout.
  func beginReply(_ task: UInt64, on queue: UInt64) -> Bool {
    reply?.set(for: task, on: queue, afterNanoseconds: replyNanoseconds)
      ?? true
  }

  /// The registry's lock is held, if a task has begun with these.
  func destroy() {
    whole?.takeBack()
    reply?.takeBack()
    Memory.release(whole)
    Memory.release(reply)
  }

  private static func endTask(_ task: UInt64) {
    run(for: task) { access in
      _ = try? Tasks.run(task, isLive: false, access) {
        $0.cancel(error: TaskError.timedOut)
      }
    }
  }

  private static func giveUpReply(_ task: UInt64) {
    run(for: task) { access in Replies.giveUp(of: task, access) }
  }

  /// Does what there is to do when a time is over, unless it is the queue that
  /// has ended.
  private static func run(
    for task: UInt64, _ body: (borrowing Access) -> Void
  ) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(task, thread: thread, bySpare: true)
    else { return }
    let registry = access.registry
    var hasClock = false
    let session: UInt64? = registry.pointee.lock.locked {
      let session = registry.task(task, isLive: false)?.pointee.session
      guard let handle = session?.pointee.header.handle else { return nil }
      hasClock = registry.hasClock(handle)
      return handle
    }
    guard let session else { return }
    guard hasClock else {
      return Sessions.stop(session, reason: Reason.queueEnded)
    }
    body(access)
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Whether a session takes new tasks.
  ///
  /// The lock is held.
  fileprivate func isOpen(_ session: UInt64) -> Bool {
    self.session(session, isLive: true)?.pointee.stage == .open
  }

  /// Whether the queue is live on which a session delivers.
  ///
  /// The lock is held.
  fileprivate func hasClock(_ session: UInt64) -> Bool {
    guard let queue = self.session(session, isLive: false)?.pointee.queue
    else { return false }
    return queue != Handle.none && check(queue) == .ok
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension Queues {
  /// Delivers what waits, up to a limit; 0: all that is there now.
  ///
  /// One call at a time (G21): who comes second leaves it to the first.
  package static func run(
    _ handle: UInt64, limit: Int, ran: inout Int, byItsThread: Bool = false
  ) -> Status {
    ran = 0
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      let queue = try PinnedQueue(handle, thread: thread)
      guard queue.record.pointee.options.hasThread == byItsThread else {
        throw .thread
      }
      let status = queue.record.beginDelivering(thread, pin: queue.pin)
      guard status == .ok else { throw status }
      let limit = limit <= 0 ? UInt64.max : UInt64(limit)
      let delivered = deliver(queue, limit: limit, ran: &ran)
      guard delivered == .ok else { throw delivered }
      return .ok
    } catch {
      // Something has forked: in the child nothing is the thread's any more.
      if error == .forked {
        return Process.currentThread()?.fail(error, about: handle) ?? error
      }
      return thread.fail(error, about: handle)
    }
  }

  /// Delivers, as the only one; without memory nothing is lost.
  private static func deliver(
    _ queue: borrowing PinnedQueue, limit: UInt64, ran: inout Int
  ) -> Status {
    var limit = limit
    while true {
      let status = deliverSome(queue, limit: limit, ran: &ran)
      if status == .forked { return status }
      Hook.deliveryEnding.reached(queue.handle)
      queue.record.tellDrops(queue.handle, thread: queue.thread)
      switch queue.record.endDelivering(canGoOn: status == .ok) {
      case .done: return status
      case .again: limit = .max
      case .finished:
        _ = Ending.end(
          queue.handle, reason: Reason.ended, waitingUntil: nil)
        return status
      }
    }
  }

  private static func deliverSome(
    _ queue: borrowing PinnedQueue, limit: UInt64, ran: inout Int
  ) -> Status {
    let record = queue.record
    let slot = Table.knownSlot(at: Handle.index(of: queue.handle))
    guard runErrands(queue) else { return .forked }
    var left = record.pointee.monitor.locked {
      min(limit, record.waitingCount + (record.hasMessage ? 1 : 0))
    }
    while left > 0,
      slot.pointee.word.load(ordering: .acquiring) == queue.handle,
      record.takeNext(atMost: left)
    {
      Hook.messageTaken.reached(queue.handle)
      let status = deliverNext(queue)
      guard ThreadPointer.current == queue.thread else { return .forked }
      guard status != .noMemory else { return status }
      ran += 1
      left -= 1
    }
    return .ok
  }

  /// Destroys what was handed over, does what is due, and delivers for sessions;
  /// false in a forked child.
  private static func runErrands(_ queue: borrowing PinnedQueue) -> Bool {
    guard queue.record.hasErrands,
      let access = try? Access.of(
        queue.handle, thread: queue.thread, bySpare: true)
    else { return true }
    Finishing.finish(queue.record.takeErrands(), access)
    let now = cbr_monotonic_nanoseconds()
    while ThreadPointer.current == queue.thread,
      let (handle, step) = queue.record.takeAlarm(upTo: now)
    {
      Hook.alarmTaken.reached(handle)
      step(handle)
      // At once, so that it does not pile up.
      deliverForSessions(queue)
    }
    deliverForSessions(queue)
    return ThreadPointer.current == queue.thread
  }

  /// Each has one turn: one that always has more keeps nobody waiting for ever.
  private static func deliverForSessions(_ queue: borrowing PinnedQueue) {
    var left = queue.record.wantedCount
    while left > 0, ThreadPointer.current == queue.thread,
      let (handle, step) = queue.record.takeWanted()
    {
      step(handle)
      left -= 1
    }
  }

  /// Delivers the message that was taken, or drops it.
  private static func deliverNext(_ queue: borrowing PinnedQueue) -> Status {
    let record = queue.record
    let thread = queue.thread
    guard let message = record.pointee.delivery.message else { return .ok }
    let token = message.pointee.token
    var call = CallRecord.empty
    let status = Entering.attempt(
      token, message.pointee.demand, Table.knownSlot(of: token),
      thread: thread, call: &call)
    switch status {
    case .ok:
      record.countDelivered()
      message.pointee.call(call)
      guard ThreadPointer.current == thread else { return .forked }
      if thread.leave(&call) == .claimed {
        Finishing.finish(token, thread: thread)
      }
      record.pointee.delivery.message = nil
      message.pointee.freePayload()
    case .noMemory: break
    case .stale, .consumed, .closed:
      record.pointee.delivery.message = nil
      record.countStale()
      record.drop(message.pointee, status, queue.handle, thread: thread)
    default:
      record.pointee.delivery.message = nil
      record.countRefused()
      record.drop(message.pointee, status, queue.handle, thread: thread)
    }
    return status
  }
}

extension Message {
  @inline(__always)
  fileprivate func call(_ call: CallRecord) {
    if isHandler { return callHandler(call) }
    if let invoke { return invoke(call.function, call.context, payload) }
    typealias Plain =
      @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) ->
      Void
    unsafeBitCast(call.function, to: Plain?.self)?(call.context, payload)
  }

  /// There is no emission any more that it could end.
  private func callHandler(_ call: CallRecord) {
    let handler = unsafeBitCast(call.function, to: Handler?.self)
    guard handler?(call.context, payload) == Disposition.disconnect else {
      return
    }
    _ = Ending.end(token, reason: Reason.ended, waitingUntil: nil)
  }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Whether a message that could not be delivered is still to be.
  fileprivate var hasMessage: Bool { pointee.delivery.message != nil }

  fileprivate func beginDelivering(
    _ thread: ThreadPointer, pin: UInt32
  ) -> Status {
    pointee.monitor.locked {
      if let deliverer = pointee.deliverer {
        pointee.isWantedAgain = true
        return deliverer == thread ? .deferred : .pending
      }
      pointee.deliverer = thread
      pointee.delivererPin = pin
      return .ok
    }
  }

  /// Takes the next message; false when there is none.
  @inline(__always)
  fileprivate func takeNext(atMost limit: UInt64) -> Bool {
    if hasMessage { return true }
    guard let message = takeFromFront() ?? takeAfterFilling(atMost: limit)
    else { return false }
    pointee.delivery.message = message
    let bytes = message.pointee.bytes
    if bytes > 0 {
      let taken = pointee.takenBytes.load(ordering: .relaxed)
      pointee.takenBytes.store(
        taken &+ bytes, ordering: .sequentiallyConsistent)
    }
    makeRoom()
    return true
  }

  private func takeAfterFilling(
    atMost limit: UInt64
  ) -> UnsafeMutablePointer<Message>? {
    pointee.monitor.locked { refill(atMost: limit) }
    return takeFromFront()
  }

  /// Adds one to a count that is the delivering thread's.
  @inline(__always)
  fileprivate func countDelivered() {
    let count = pointee.delivered.load(ordering: .relaxed)
    pointee.delivered.store(count &+ 1, ordering: .releasing)
  }

  fileprivate func countStale() {
    let count = pointee.stale.load(ordering: .relaxed)
    pointee.stale.store(count &+ 1, ordering: .releasing)
  }

  fileprivate func countRefused() {
    let count = pointee.refused.load(ordering: .relaxed)
    pointee.refused.store(count &+ 1, ordering: .releasing)
  }
}

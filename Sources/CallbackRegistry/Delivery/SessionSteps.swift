// SPDX-License-Identifier: Apache-2.0
//
// The states of sessions and tasks. Each step is taken under the registry's
// lock and changes what is to be delivered; who has taken it then asks
// `beginDelivering`, and delivers outside of the lock if that says so.
//
//   task     open -> answering     it has responded; data waits for the reply
//            answering -> open     the reply allows, or the successor has it
//            and, once, completed or cancelled: nothing more is added
//   session  open -> finishing     no new task
//            any -> cancelling     every task is cancelled: once
//
// A task's completion is its last event: a cancelled one drops the others, and
// nothing is added behind it. A
// session's terminal event is added when it no longer is open and its last
// completion has been delivered: so it is the last of all (G24).

extension UnsafeMutablePointer where Pointee == SessionRecord {
  /// Whether the caller is to deliver what there is.
  func beginDelivering() -> Bool {
    guard !pointee.isDelivering, !pointee.events.isEmpty else {
      return false
    }
    pointee.isDelivering = true
    return true
  }

  /// The next event; nil: the caller no longer delivers.
  func takeEvent(by thread: ThreadPointer) -> SessionEventPointer? {
    let event = pointee.events.takeFirst()
    pointee.current = event
    pointee.deliverer = thread
    if event == nil { giveUpDelivering() }
    return event
  }

  /// Whoever delivers on its queue is to go on.
  func awaitTurn() {
    pointee.current = nil
    pointee.deliverer = nil
  }

  /// The caller has not delivered after all.
  func giveUpDelivering() {
    pointee.isDelivering = false
    pointee.deliverer = nil
  }

  /// False when it had begun to end before.
  func finish(reason: UInt32) -> Bool {
    guard pointee.stage == .open else { return false }
    pointee.stage = .finishing
    pointee.reason = reason
    endIfEmpty()
    return true
  }

  /// False when it was cancelled before, or nothing is left to cancel.
  func cancel(reason: UInt32) -> Bool {
    guard pointee.stage != .cancelling, pointee.terminal != nil else {
      return false
    }
    pointee.stage = .cancelling
    pointee.reason = reason
    var task = pointee.firstTask
    while let each = task {
      task = each.pointee.next
      _ = each.cancel()
    }
    endIfEmpty()
    return true
  }

  /// A task's completion has been delivered.
  func completed(_ task: TaskPointer) {
    remove(task)
    endIfEmpty()
  }

  private func endIfEmpty() {
    guard pointee.stage != .open, pointee.firstTask == nil,
      let terminal = pointee.terminal
    else { return }
    pointee.terminal = nil
    pointee.events.append(terminal)
  }
}

extension UnsafeMutablePointer where Pointee == TaskRecord {
  /// Asks for a reply: what follows is held back until it comes.
  func answer(with reply: UInt64, to response: SessionEventPointer) {
    pointee.reply = reply
    pointee.session.pointee.events.append(response)
  }

  func add(_ data: SessionEventPointer) {
    pointee.waitingBytes += data.pointee.size
    if pointee.stage == .answering {
      pointee.held.append(data)
    } else {
      pointee.session.pointee.events.append(data)
    }
  }

  /// Whether the caller is to deliver data at once, without a copy.
  func beginDelivering() -> Bool {
    let session = pointee.session
    guard pointee.stage == .open, !session.pointee.isDelivering,
      session.pointee.events.isEmpty,
      session.pointee.queue == Handle.none
    else { return false }
    session.pointee.isDelivering = true
    session.pointee.deliverer = ThreadPointer.current
    return true
  }

  /// The reply has come: what was held back flows.
  func flow() {
    guard pointee.stage == .answering else { return }
    pointee.stage = .open
    while let event = pointee.held.takeFirst() {
      pointee.session.pointee.events.append(event)
    }
    if pointee.isCompleted { end() }
  }

  /// False when it was complete before.
  func complete(error: Int32) -> Bool {
    guard !pointee.isCompleted else { return false }
    pointee.isCompleted = true
    pointee.error = error
    if pointee.stage == .open { end() }
    return true
  }

  /// Drops what has not been delivered; false when nothing could be dropped.
  func cancel(error: Int32 = TaskError.cancelled) -> Bool {
    guard pointee.completion != nil else { return false }
    pointee.isCompleted = true
    pointee.error = error
    pointee.stage = .open
    pointee.dropped += pointee.held.drop()
    pointee.dropped += pointee.session.pointee.events.drop(of: self)
    end()
    return true
  }

  private func end() {
    guard let completion = pointee.completion else { return }
    pointee.completion = nil
    pointee.session.pointee.events.append(completion)
  }
}

/// The errors of a completion that are the library's own.
package enum TaskError {
  package static let cancelled = Int32.min
  package static let delegateGone = Int32.min + 1
  package static let timedOut = Int32.min + 2

  /// Why a task has ended that was completed so.
  static func reason(of error: Int32) -> UInt32 {
    switch error {
    case cancelled: Reason.cancelled
    case timedOut: Reason.timedOut
    default: Reason.ended
    }
  }
}

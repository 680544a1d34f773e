// SPDX-License-Identifier: Apache-2.0
//
// Telling delegates. One thread at a time delivers for a session: who finds
// nobody doing so takes it on, and goes on until there is nothing left; the
// others leave their events to it. So events of one session never overlap, and
// what a delegate does about its own task comes after the event that it is in.
// Tried to break by: Tests/C (sessions.c).

import CPlatform
import Synchronization

private typealias DidReceiveResponse =
  @convention(c) (
    UnsafeMutableRawPointer?, UInt64, UnsafeRawPointer?, Int, UInt64
  ) -> Void
private typealias DidReceiveData =
  @convention(c) (
    UnsafeMutableRawPointer?, UInt64, UnsafeRawPointer?, Int
  ) -> Void
private typealias DidComplete =
  @convention(c) (UnsafeMutableRawPointer?, UInt64, Int32) -> Void
private typealias DidBecomeInvalid =
  @convention(c) (UnsafeMutableRawPointer?, UInt64, UInt32) -> Void
private typealias DidHandOver =
  @convention(c) (UnsafeMutableRawPointer?, UInt64, UInt64) -> Void

struct SessionDelivery {
  private let session: SessionPointer
  private let registry: RegistryPointer
  private let thread: ThreadPointer

  /// Sees to it that all is delivered that a session has: here, or on its
  /// queue.
  ///
  /// The caller has begun to deliver; when it returns the session may be gone.
  static func run(_ session: SessionPointer, _ access: borrowing Access) {
    let queue = session.pointee.queue
    guard queue == Handle.none || session.pointee.isMute else {
      return hand(session, to: queue, access)
    }
    SessionDelivery(session, access).deliverAll()
  }

  /// Tells of data at once, and then of all that there is.
  static func run(
    _ session: SessionPointer, _ access: borrowing Access,
    tellingFirst task: TaskPointer, _ bytes: UnsafeRawPointer, size: Int
  ) {
    let delivery = SessionDelivery(session, access)
    guard delivery.tellDirectly(task, bytes, size: size) != .forked else {
      return
    }
    delivery.deliverAll()
  }

  /// Delivers on the queue, by the thread that delivers there.
  static func runOnQueue(
    _ session: SessionPointer, _ access: borrowing Access
  ) {
    SessionDelivery(session, access).deliverTurn(access)
  }

  private static func hand(
    _ session: SessionPointer, to queue: UInt64, _ access: borrowing Access
  ) {
    if let pinned = try? PinnedQueue(queue, thread: access.thread) {
      access.registry.pointee.lock.locked { session.awaitTurn() }
      let record = UnsafeMutableRawPointer(session)
        .assumingMemoryBound(to: RecordHeader.self)
      return pinned.record.add(wanted: record)
    }
    mute(session, access.registry)
    SessionDelivery(session, access).deliverAll()
  }

  /// The queue has ended, and with it all that the session could tell.
  private static func mute(
    _ session: SessionPointer, _ registry: RegistryPointer
  ) {
    registry.pointee.lock.locked {
      session.pointee.isMute = true
      _ = session.cancel(reason: Reason.queueEnded)
    }
  }

  private init(_ session: SessionPointer, _ access: borrowing Access) {
    self.session = session
    registry = access.registry
    thread = access.thread
  }

  /// Goes on for a thread that has jumped out of what it was telling.
  static func resume(_ session: SessionPointer, _ access: borrowing Access) {
    let delivery = SessionDelivery(session, access)
    if let event = session.pointee.current {
      guard delivery.conclude(event, .ok) else { return }
    }
    delivery.deliverTurn(access)
  }

  /// Delivers what there is now, and a few that follow.
  ///
  /// A queue has others to serve: what comes after that has its turn after them.
  /// When the queue has ended nobody is told.
  private func deliverTurn(_ access: borrowing Access) {
    let queue = session.pointee.queue
    guard queue != Handle.none else { return deliverAll() }
    var left = registry.pointee.lock.locked {
      session.pointee.events.count + Self.eventsThatFollow
    }
    while Table.slot(of: queue)?.pointee.word.load(ordering: .acquiring)
      == queue, !session.pointee.isMute
    {
      if left <= 0, hasMore {
        return Self.hand(session, to: queue, access)
      }
      left -= 1
      guard deliverNext() else { return }
    }
    Self.mute(session, registry)
    deliverAll()
  }

  /// As many are delivered in one turn that came while it lasted.
  private static var eventsThatFollow: Int { 64 }

  private var hasMore: Bool {
    registry.pointee.lock.locked { !session.pointee.events.isEmpty }
  }

  private func deliverAll() {
    while deliverNext() {}
  }

  /// False when there is nothing more to deliver here.
  private func deliverNext() -> Bool {
    let event = registry.pointee.lock.locked {
      session.takeEvent(by: thread)
    }
    guard let event else { return false }
    let status = tell(event)
    return status != .forked && conclude(event, status)
  }

  private func tell(_ event: SessionEventPointer) -> Status {
    guard let task = event.pointee.task else { return tellInvalid() }
    switch event.pointee.kind {
    case .response: return tellResponse(task, event)
    case .data: return tellData(task, event.bytes, size: event.pointee.size)
    case .handOver: return tellHandOver(task)
    case .complete, .invalid: return tellComplete(task)
    }
  }

  /// Does what comes after an event; false when the session is gone.
  private func conclude(
    _ event: SessionEventPointer, _ status: Status
  ) -> Bool {
    defer { Memory.release(event) }
    guard let task = event.pointee.task else {
      inside(session.pointee.header.handle) { endSession() }
      return false
    }
    switch event.pointee.kind {
    case .response: concludeResponse(task, status)
    case .data:
      let size = event.pointee.size
      registry.pointee.lock.locked { task.pointee.waitingBytes -= size }
      concludeData(task, size: size, status)
    case .handOver:
      inside(task.pointee.header.handle) { concludeHandOver(task) }
    case .complete, .invalid:
      inside(session.pointee.header.handle) { endTask(task) }
    }
    return true
  }

  /// Lets go of delegates, at last: a destroy that runs here and waits for the
  /// handle finds itself inside of it, and a thread that jumps out of that
  /// destroy has left nothing undone.
  private func inside(_ handle: UInt64, _ body: () -> Void) {
    // It is not concluded again.
    session.pointee.current = nil
    let pin = thread.pinSpare(handle)
    body()
    if let pin { Entering.withdraw(pin, handle, thread: thread) }
  }

  /// Calls a method of a delegate, inside a handle, if that is possible.
  private func call(
    _ delegate: HeldDelegate, _ kind: SessionEventKind,
    inside handle: UInt64, _ body: (CallRecord) -> Void
  ) -> Status {
    guard !session.pointee.isMute else {
      recordUndelivered(kind, handle, delegate)
      return .closed
    }
    var call = CallRecord.empty
    // What a delegate need not have is not refused.
    if kind != .complete,
      Entering.responds(
        delegate.token, Sessions.interface, method: kind.method)
        == .unimplemented
    {
      return .unimplemented
    }
    let status = Entering.enterFully(
      delegate.token, .method(Sessions.interface, kind.method), call: &call)
    guard status == .ok else {
      if status != .unimplemented { recordUndelivered(kind, handle, delegate) }
      return status
    }
    let pin = thread.pinSpare(handle)
    body(call)
    // A delegate has forked: in the child nothing is the thread's any more.
    guard ThreadPointer.current == thread else { return .forked }
    if let pin { Entering.withdraw(pin, handle, thread: thread) }
    _ = Leaving.leave(&call)
    return status
  }

  private func recordUndelivered(
    _ kind: SessionEventKind, _ handle: UInt64, _ delegate: HeldDelegate,
    count: UInt64 = 1
  ) {
    guard registry.isRecorded(handle) else { return }
    registry.record(
      .undelivered, handle, argument: kind.rawValue,
      payload: Payload(delegate.token, count), thread: thread)
  }

  private func delegate(of task: TaskPointer) -> HeldDelegate {
    task.pointee.successor ?? session.pointee.delegate
  }

  private func tellResponse(
    _ task: TaskPointer, _ event: SessionEventPointer
  ) -> Status {
    let handle = task.pointee.header.handle
    let reply = task.pointee.reply
    if task.pointee.timeouts.hasReplyTimeout { beginReplyTimeout(of: task) }
    return call(delegate(of: task), .response, inside: handle) { call in
      unsafeBitCast(call.function, to: DidReceiveResponse.self)(
        call.context, handle,
        event.pointee.size > 0 ? UnsafeRawPointer(event.bytes) : nil,
        event.pointee.size, reply)
    }
  }

  private func beginReplyTimeout(of task: TaskPointer) {
    let isTimed = registry.pointee.lock.locked {
      task.pointee.timeouts.beginReply(
        task.pointee.header.handle, on: session.pointee.queue)
    }
    if !isTimed { Self.mute(session, registry) }
  }

  private func concludeResponse(_ task: TaskPointer, _ status: Status) {
    switch status {
    case .ok: break
    case .unimplemented:
      _ = Replies.send(
        task.pointee.reply, Disposition.allow, successor: Handle.none)
    default: cancel(task)
    }
  }

  /// Tells of data that has not been copied.
  private func tellDirectly(
    _ task: TaskPointer, _ bytes: UnsafeRawPointer, size: Int
  ) -> Status {
    let status = tellData(task, bytes, size: size)
    if status != .forked { concludeData(task, size: size, status) }
    return status
  }

  private func tellData(
    _ task: TaskPointer, _ bytes: UnsafeRawPointer, size: Int
  ) -> Status {
    let handle = task.pointee.header.handle
    return call(delegate(of: task), .data, inside: handle) { call in
      unsafeBitCast(call.function, to: DidReceiveData.self)(
        call.context, handle, bytes, size)
    }
  }

  private func concludeData(
    _ task: TaskPointer, size: Int, _ status: Status
  ) {
    guard status == .ok || status == .unimplemented else {
      return cancel(task)
    }
    task.pointee.pieces += 1
    task.pointee.bytes += UInt64(size)
  }

  /// Nobody is there to be told of more.
  private func cancel(_ task: TaskPointer) {
    registry.pointee.lock.locked {
      _ = task.cancel(error: TaskError.delegateGone)
    }
  }

  private func tellHandOver(_ task: TaskPointer) -> Status {
    let handle = task.pointee.header.handle
    let successor = task.pointee.coming?.token ?? Handle.none
    return call(delegate(of: task), .handOver, inside: handle) { call in
      unsafeBitCast(call.function, to: DidHandOver.self)(
        call.context, handle, successor)
    }
  }

  private func concludeHandOver(_ task: TaskPointer) {
    let former = task.pointee.successor
    registry.pointee.lock.locked {
      task.pointee.successor = task.pointee.coming
      task.pointee.coming = nil
      task.flow()
    }
    former?.release()
  }

  private func tellComplete(_ task: TaskPointer) -> Status {
    let handle = task.pointee.header.handle
    let error = task.pointee.error
    let told = delegate(of: task)
    if task.pointee.dropped > 0 {
      recordUndelivered(.data, handle, told, count: task.pointee.dropped)
    }
    return call(told, .complete, inside: handle) { call in
      unsafeBitCast(call.function, to: DidComplete.self)(
        call.context, handle, error)
    }
  }

  private func endTask(_ task: TaskPointer) {
    let handle = task.pointee.header.handle
    let error = task.pointee.error
    if registry.isRecorded(handle) {
      registry.record(
        .taskCompleted, handle, argument: UInt32(bitPattern: error),
        payload: Payload(task.pointee.pieces, task.pointee.bytes),
        thread: thread)
    }
    let successor = task.pointee.successor
    let coming = task.pointee.coming
    registry.pointee.lock.locked { session.completed(task) }
    _ = Ending.end(
      handle,
      reason: TaskError.reason(of: error), waitingUntil: nil)
    dropLease(handle)
    successor?.release()
    coming?.release()
  }

  private func tellInvalid() -> Status {
    let handle = session.pointee.header.handle
    let reason = session.pointee.reason
    return call(session.pointee.delegate, .invalid, inside: handle) { call in
      unsafeBitCast(call.function, to: DidBecomeInvalid.self)(
        call.context, handle, reason)
    }
  }

  /// After the last event nothing of the session is used any more.
  private func endSession() {
    let handle = session.pointee.header.handle
    let delegate = session.pointee.delegate
    let ownsDelegate = session.pointee.ownsDelegate
    registry.pointee.lock.locked {
      registry.letGo(Table.knownSlot(at: Handle.index(of: handle)))
    }
    _ = Ending.end(
      handle, reason: session.pointee.reason, waitingUntil: nil)
    dropLease(handle)
    if ownsDelegate {
      _ = Ending.end(delegate.token, reason: Reason.ended, waitingUntil: nil)
    }
    delegate.release()
  }

  private func dropLease(_ handle: UInt64) {
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    if Protocol.dropLease(slot, handle: handle) == .claimed {
      Finishing.finish(handle, thread: thread)
    }
  }
}

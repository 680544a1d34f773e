// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What a session is made of.
///
/// Pointers are borrowed for the call.
package struct SessionRequest {
  package var label: UnsafePointer<CChar>?
  package var owner: UInt64 = Handle.none
  package var delegate: UInt64 = Handle.none
  package var queue: UInt64 = Handle.none
  /// Whether the delegate is the session's alone, and ends with it.
  package var ownsDelegate = false
  package var file: UnsafePointer<CChar>?
  package var line: UInt32 = 0

  package init() {}
}

/// Sessions: work with one delegate and an end that is told last (G23, G24).
package enum Sessions {
  /// The interface that a delegate has.
  package static var interface: InterfaceDescription {
    let bytes = cbr_platform_session_interface()!
    return InterfaceDescription(
      name: bytes.load(fromByteOffset: 8, as: UnsafePointer<CChar>?.self),
      version: bytes.load(fromByteOffset: 16, as: UInt32.self),
      count: bytes.load(fromByteOffset: 20, as: UInt32.self),
      methods: bytes.load(
        fromByteOffset: 24, as: UnsafePointer<MethodDescription>?.self))
  }

  package static func create(
    in handle: UInt64, _ what: SessionRequest,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      try thread.checkText(what.label, "label", limit: TextLimit.label)
      try thread.checkText(
        what.file, "file", limit: TextLimit.file, rule: .path)
      try Registering.checkForm(ofOwner: what.owner, thread: thread)
      let access = try Access.registry(handle, thread: thread)
      try check(queue: what.queue, in: access.registry, thread: thread)
      let delegate = try HeldDelegate.take(
        what.delegate, in: access.registry)
      do throws(Status) {
        try create(what, delegate, access, out: out)
      } catch {
        delegate.release()
        throw error
      }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func create(
    _ what: SessionRequest, _ delegate: HeldDelegate,
    _ access: borrowing Access, out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let registry = access.registry
    let origin = try registry.internOrigin(
      label: what.label, file: what.file, line: what.line)
    let record = Memory.allocate(SessionRecord.self)
    let holder = Memory.allocate(Holder.self)
    let terminal = SessionEventPointer.make(.invalid, of: nil)
    guard let record, let holder, let terminal else {
      Memory.release(record)
      Memory.release(holder)
      Memory.release(terminal)
      throw .noMemory
    }
    var new = NewSlot(
      kind: .session, origin: origin, owner: what.owner,
      mode: Mode.notCallable | registry.level.mode, thread: access.thread)
    holder.initialize(
      to: Holder(token: delegate.token, step: { Sessions.delegateDied($0) }))
    new.holder = holder
    do throws(Status) {
      try registry.add(&new, access, out: out) { slot, detail, handle in
        // For the history.
        detail.pointee.typeTag = delegate.token
        record.initialize(
          to: SessionRecord(
            header: RecordHeader(
              handle: handle, ended: { Sessions.ended($0) },
              wanted: { Sessions.deliver($0) },
              abandoned: { Sessions.resume($0) },
              free: {
                $0.assumingMemoryBound(to: SessionRecord.self).destroy()
              }),
            delegate: delegate, ownsDelegate: what.ownsDelegate,
            queue: what.queue, terminal: terminal))
        slot.pointee.body = UnsafeMutableRawPointer(record)
        // Its own, until the terminal event has been delivered.
        Protocol.addLease(slot, handle: handle)
      }
    } catch {
      Memory.release(record)
      Memory.release(holder)
      Memory.release(terminal)
      throw error
    }
  }

  private static func check(
    queue: UInt64, in registry: RegistryPointer, thread: ThreadPointer
  ) throws(Status) {
    guard queue != Handle.none else { return }
    guard Handle.isWellFormed(queue) else {
      throw thread.invalid("queue is not a handle")
    }
    let status =
      Handle.kind(of: queue) == .queue
      ? registry.pointee.lock.locked { registry.check(queue) } : .kind
    guard status == .ok else {
      throw thread.toThrow(thread.fail(status, about: queue))
    }
  }

  /// Lets the tasks come to their end, then ends the session.
  package static func finish(_ handle: UInt64) -> Status {
    end(handle, argument: 1) { $0.finish(reason: Reason.ended) }
  }

  /// Cancels the tasks, then ends the session.
  package static func cancel(_ handle: UInt64) -> Status {
    end(handle, argument: 2) { $0.cancel(reason: Reason.cancelled) }
  }

  private static func end(
    _ handle: UInt64, argument: UInt32, _ step: (SessionPointer) -> Bool
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .session)
      let access = try Access.of(handle, thread: thread)
      let registry = access.registry
      var isFirst = false
      var isDeliverer = false
      let session: SessionPointer? = registry.pointee.lock.locked {
        guard let session = registry.session(handle, isLive: true) else {
          return nil
        }
        isFirst = step(session)
        isDeliverer = session.beginDelivering()
        return session
      }
      guard let session else { throw Access.absent(handle) }
      guard isFirst else { return thread.fail(.already, about: handle) }
      if registry.isRecorded(handle) {
        registry.record(
          .sessionEnding, handle, argument: argument, thread: thread)
      }
      if isDeliverer { SessionDelivery.run(session, access) }
      return .ok
    } catch {
      let isPast = error == .stale && Access.wasGivenOut(handle)
      return thread.fail(isPast ? .already : error, about: handle)
    }
  }

  /// The session's handle was ended: its tasks are cancelled.
  private static func ended(_ handle: UInt64) {
    stop(handle, reason: nil)
  }

  /// The session's turn has come on its queue, or that has ended.
  private static func deliver(_ handle: UInt64) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    let registry = access.registry
    let session = registry.pointee.lock.locked {
      registry.session(handle, isLive: false)
    }
    guard let session else { return }
    SessionDelivery.runOnQueue(session, access)
  }

  /// A thread has jumped out of what it told the delegate: it goes on with
  /// what comes after that.
  static func resume(_ handle: UInt64) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    let registry = access.registry
    let session: SessionPointer? = registry.pointee.lock.locked {
      let session =
        Handle.kind(of: handle) == .task
        ? registry.task(handle, isLive: false)?.pointee.session
        : registry.session(handle, isLive: false)
      return session?.pointee.deliverer == thread ? session : nil
    }
    if let session { SessionDelivery.resume(session, access) }
  }

  private static func delegateDied(_ handle: UInt64) {
    stop(handle, reason: Reason.delegateDied)
  }

  /// Cancels a session whose handle may be dead, for a reason; nil: that of its
  /// end.
  static func stop(_ handle: UInt64, reason: UInt32?) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    let registry = access.registry
    let detail = Table.knownDetail(at: Handle.index(of: handle))
    var isDeliverer = false
    let session: SessionPointer? = registry.pointee.lock.locked {
      guard let session = registry.session(handle, isLive: false) else {
        return nil
      }
      _ = session.cancel(
        reason: reason ?? detail.pointee.endReason.load(ordering: .relaxed))
      isDeliverer = session.beginDelivering()
      return session
    }
    if let session, isDeliverer { SessionDelivery.run(session, access) }
  }
}

extension HeldDelegate {
  /// Takes a lease on a token that has the interface of a delegate.
  static func take(
    _ token: UInt64, in registry: RegistryPointer
  ) throws(Status) -> HeldDelegate {
    guard let thread = ThreadPointer.current else { throw .noMemory }
    guard Handle.isWellFormed(token) else {
      throw thread.invalid("delegate is not a handle")
    }
    // Its one method that is required is there if the interface is the same.
    let status = Entering.responds(
      token, Sessions.interface, method: SessionEventKind.complete.method)
    guard status == .ok else { throw thread.toThrow(status) }
    let known = registry.pointee.lock.locked { registry.checkToken(token) }
    guard known == .ok else {
      throw thread.toThrow(thread.fail(known, about: token))
    }
    var lease = Handle.none
    let taken = Leasing.begin(token, out: &lease)
    guard taken == .ok else { throw thread.toThrow(taken) }
    return HeldDelegate(token: token, lease: lease)
  }

  func release() { _ = Leasing.end(lease) }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// The record of a session, which stays until its terminal event has been
  /// delivered.
  ///
  /// The lock is held.
  func session(_ handle: UInt64, isLive: Bool) -> SessionPointer? {
    record(handle, isLive: isLive)?.assumingMemoryBound(to: SessionRecord.self)
  }

  func task(_ handle: UInt64, isLive: Bool) -> TaskPointer? {
    record(handle, isLive: isLive)?.assumingMemoryBound(to: TaskRecord.self)
  }

  private func record(
    _ handle: UInt64, isLive: Bool
  ) -> UnsafeMutableRawPointer? {
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    let word = slot.pointee.word.load(ordering: .relaxed)
    let known = isLive ? word : Handle.handle(ofWord: word)
    return known == handle ? slot.pointee.body : nil
  }

  /// Whether the history knows a handle.
  func isRecorded(_ handle: UInt64) -> Bool {
    Table.knownSlot(at: Handle.index(of: handle)).isKnownToHistory
  }
}

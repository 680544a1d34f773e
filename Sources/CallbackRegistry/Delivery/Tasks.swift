// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a task is made of.
///
/// Pointers are borrowed for the call.
package struct TaskRequest {
  package var label: UnsafePointer<CChar>?
  package var context: UnsafeMutableRawPointer?
  package var destroy: Destroy?
  package var isGathering = false
  /// Bytes of data that may wait; 0: the default.
  package var waitingLimit = 0
  /// From its beginning to its completion; 0: as long as it takes.
  package var timeoutNanoseconds: UInt64 = 0
  /// From when the delegate is told of the response to its reply; 0: the same.
  package var replyTimeoutNanoseconds: UInt64 = 0
  /// What is done when the reply does not come in time; 0: the task is
  /// cancelled.
  package var unanswered: Int32 = 0
  package var file: UnsafePointer<CChar>?
  package var line: UInt32 = 0

  package init() {}

  static let defaultWaitingLimit = 1 << 20
}

/// Tasks: pieces of a session's work, each with one completion.
package enum Tasks {
  /// Begins a task.
  ///
  /// On failure nothing is taken (G6).
  package static func begin(
    in session: UInt64, _ what: TaskRequest,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(session, is: .session)
      try thread.checkText(what.label, "label", limit: TextLimit.label)
      try thread.checkText(
        what.file, "file", limit: TextLimit.file, rule: .path)
      try TaskTimeouts.check(what, thread: thread)
      let access = try Access.of(session, thread: thread)
      try begin(in: session, what, access, out: out)
      return .ok
    } catch {
      // It has begun to end, and may be gone by now (G25).
      let isOver =
        error == .stale && Access.wasGivenOut(session) || error == .dying
      return thread.fail(isOver ? .closed : error, about: session)
    }
  }

  private static func begin(
    in session: UInt64, _ what: TaskRequest, _ access: borrowing Access,
    out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let registry = access.registry
    try TaskTimeouts.check(what, in: session, access)
    let origin = try registry.internOrigin(
      label: what.label, file: what.file, line: what.line)
    guard let record = Memory.allocate(TaskRecord.self) else {
      throw .noMemory
    }
    guard let completion = SessionEventPointer.make(.complete, of: record)
    else {
      Memory.release(record)
      throw .noMemory
    }
    guard let timeouts = TaskTimeouts(what) else {
      Memory.release(record)
      Memory.release(completion)
      throw .noMemory
    }
    var new = NewSlot(
      kind: .task, origin: origin, owner: session,
      mode: Mode.notCallable | registry.level.mode, thread: access.thread)
    new.isAllowed = timeouts.isAllowed
    do throws(Status) {
      try registry.add(&new, access, out: out) { slot, _, handle in
        guard let owner = registry.session(session, isLive: true) else {
          return
        }
        record.initialize(
          to: TaskRecord(
            header: RecordHeader(
              handle: handle, ended: { Tasks.ended($0) },
              abandoned: { Sessions.resume($0) },
              free: {
                $0.assumingMemoryBound(to: TaskRecord.self).destroy()
              }),
            session: owner, timeouts: timeouts,
            waitingLimit: what.waitingLimit > 0
              ? what.waitingLimit : TaskRequest.defaultWaitingLimit,
            isGathering: what.isGathering, completion: completion))
        owner.add(record)
        timeouts.begin(handle, on: owner.pointee.queue)
        slot.pointee.body = UnsafeMutableRawPointer(record)
        slot.pointee.context = what.context
        slot.pointee.destroy = what.destroy
        // Its own, until its completion has been delivered.
        Protocol.addLease(slot, handle: handle)
      }
    } catch {
      Memory.release(record)
      Memory.release(completion)
      timeouts.destroy()
      throw error
    }
  }

  /// Tells the delegate of a response, and asks for a reply.
  package static func respond(
    _ handle: UInt64, _ response: UnsafeRawPointer?, size: Int
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .task)
      try checkBytes(response, size, "response", thread: thread)
      let access = try Access.of(handle, thread: thread)
      try respond(handle, response, size: size, access)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func respond(
    _ handle: UInt64, _ response: UnsafeRawPointer?, size: Int,
    _ access: borrowing Access
  ) throws(Status) {
    let registry = access.registry
    // First it is answering: what comes from here on is held back.
    let begun: (TaskPointer?, Status) = registry.pointee.lock.locked {
      guard let task = registry.task(handle, isLive: true) else {
        return (nil, Access.absent(handle))
      }
      guard !task.pointee.isCompleted else { return (nil, .closed) }
      guard !task.pointee.hasBegun else { return (nil, .already) }
      task.pointee.hasBegun = true
      task.pointee.stage = .answering
      return (task, .ok)
    }
    guard let task = begun.0 else { throw begun.1 }
    var reply = Handle.none
    let event = SessionEventPointer.make(
      .response, of: task, response, size: size)
    do throws(Status) {
      guard event != nil else { throw .noMemory }
      try Replies.create(for: handle, access, out: &reply)
    } catch {
      Memory.release(event)
      let isDeliverer: (Bool) = registry.pointee.lock.locked {
        guard let task = registry.task(handle, isLive: true) else {
          return false
        }
        task.pointee.hasBegun = false
        task.flow()
        return task.pointee.session.beginDelivering()
      }
      if isDeliverer { SessionDelivery.run(task.pointee.session, access) }
      throw error
    }
    var isDeliverer = false
    let session: SessionPointer? = registry.pointee.lock.locked {
      guard let event, let task = registry.task(handle, isLive: false),
        task.pointee.stage == .answering
      else { return nil }
      task.answer(with: reply, to: event)
      isDeliverer = task.pointee.session.beginDelivering()
      return task.pointee.session
    }
    guard let session else {
      // It was cancelled meanwhile.
      Memory.release(event)
      throw .closed
    }
    if isDeliverer { SessionDelivery.run(session, access) }
  }

  /// Tells the delegate of data.
  package static func data(
    _ handle: UInt64, _ bytes: UnsafeRawPointer?, size: Int
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .task)
      try checkBytes(bytes, size, "bytes", thread: thread)
      guard let bytes, size > 0 else { throw thread.invalid("size is 0") }
      let access = try Access.of(handle, thread: thread)
      try add(handle, bytes, size: size, access)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func add(
    _ handle: UInt64, _ bytes: UnsafeRawPointer, size: Int,
    _ access: borrowing Access
  ) throws(Status) {
    let registry = access.registry
    var session: SessionPointer?
    var direct: TaskPointer?
    var isDeliverer = false
    let status: Status = registry.pointee.lock.locked {
      guard let task = registry.task(handle, isLive: true) else {
        return Access.absent(handle)
      }
      guard !task.pointee.isCompleted else { return .closed }
      let (waiting, isTooMuch) =
        task.pointee.waitingBytes.addingReportingOverflow(size)
      let isHeld = task.pointee.stage == .answering
      let goesDirectly = !isHeld && task.beginDelivering()
      var event: SessionEventPointer?
      if !goesDirectly {
        guard !isTooMuch, waiting <= task.pointee.waitingLimit else {
          return .full
        }
        event = .make(.data, of: task, bytes, size: size)
        guard event != nil else { return .noMemory }
      }
      guard !task.pointee.isGathering || task.gather(bytes, size: size) else {
        Memory.release(event)
        if goesDirectly { task.pointee.session.giveUpDelivering() }
        return .noMemory
      }
      task.pointee.hasBegun = true
      session = task.pointee.session
      if let event {
        task.add(event)
        isDeliverer = task.pointee.session.beginDelivering()
      } else {
        direct = task
      }
      return .ok
    }
    guard status == .ok, let session else { throw status }
    if let direct {
      SessionDelivery.run(
        session, access, tellingFirst: direct, bytes, size: size)
    } else if isDeliverer {
      SessionDelivery.run(session, access)
    }
  }

  /// Completes a task: with 0, or with an error of the program's.
  package static func complete(_ handle: UInt64, error: Int32) -> Status {
    step(handle) { $0.complete(error: error) }
  }

  /// Cancels a task: what has not been delivered is dropped.
  package static func cancel(_ handle: UInt64) -> Status {
    step(handle) { $0.cancel() }
  }

  private static func step(
    _ handle: UInt64, _ step: (TaskPointer) -> Bool
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .task)
      let access = try Access.of(handle, thread: thread)
      guard try run(handle, isLive: true, access, step) else {
        return thread.fail(.already, about: handle)
      }
      return .ok
    } catch {
      let isPast = error == .stale && Access.wasGivenOut(handle)
      return thread.fail(isPast ? .already : error, about: handle)
    }
  }

  /// Takes a step of a task, and delivers what comes of it.
  static func run(
    _ handle: UInt64, isLive: Bool, _ access: borrowing Access,
    _ step: (TaskPointer) -> Bool
  ) throws(Status) -> Bool {
    let registry = access.registry
    var isDone = false
    var isDeliverer = false
    let session: SessionPointer? = registry.pointee.lock.locked {
      guard let task = registry.task(handle, isLive: isLive) else {
        return nil
      }
      isDone = step(task)
      isDeliverer = task.pointee.session.beginDelivering()
      return task.pointee.session
    }
    guard let session else { throw Access.absent(handle) }
    if isDeliverer { SessionDelivery.run(session, access) }
    return isDone
  }

  /// The task's handle was ended from outside.
  private static func ended(_ handle: UInt64) {
    guard let thread = ThreadPointer.current,
      let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    _ = try? run(handle, isLive: false, access) { $0.cancel() }
  }

  /// What a task carries.
  package static func context(
    _ handle: UInt64
  ) -> UnsafeMutableRawPointer? {
    var context: UnsafeMutableRawPointer?
    _ = look(at: handle) { task, slot in context = slot.pointee.context }
    return context
  }

  /// Shows a task's context, under the lock, if it is freed by `destroy`.
  package static func withContext(
    of handle: UInt64, freedBy destroy: @escaping Destroy,
    _ body: (UnsafeMutableRawPointer) -> Void
  ) {
    let address = unsafeBitCast(destroy, to: UnsafeRawPointer.self)
    _ = look(at: handle) { _, slot in
      guard let context = slot.pointee.context,
        unsafeBitCast(slot.pointee.destroy, to: UnsafeRawPointer?.self)
          == address
      else { return }
      body(context)
    }
  }

  /// Shows what a task has gathered, under the lock.
  package static func withGathered(
    of handle: UInt64, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> Status {
    look(at: handle) { task, _ in
      body(
        UnsafeRawBufferPointer(
          start: task.pointee.gathered, count: task.pointee.gatheredSize))
    }
  }

  /// What a task has gathered.
  ///
  /// It stays until the task is gone, and moves when more comes.
  package static func gathered(
    _ handle: UInt64, _ start: inout UnsafeRawPointer?, _ size: inout Int
  ) -> Status {
    look(at: handle) { task, _ in
      start = UnsafeRawPointer(task.pointee.gathered)
      size = task.pointee.gatheredSize
    }
  }

  /// Looks at a task that is live, or that the thread is inside.
  private static func look(
    at handle: UInt64, _ body: (TaskPointer, SlotPointer) -> Void
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .task)
      let access = try Access.of(handle, thread: thread)
      let isInside = thread.isInside(handle)
      let isThere = access.registry.pointee.lock.locked {
        let slot = Table.knownSlot(at: Handle.index(of: handle))
        guard let task = access.registry.task(handle, isLive: !isInside)
        else { return false }
        body(task, slot)
        return true
      }
      guard isThere else { throw Access.absent(handle) }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func checkBytes(
    _ bytes: UnsafeRawPointer?, _ size: Int, _ name: StaticString,
    thread: ThreadPointer
  ) throws(Status) {
    guard size >= 0, bytes != nil || size == 0 else {
      throw thread.invalid { text in
        text.append(name)
        text.append(size < 0 ? " is too large" : " is NULL and size is not 0")
      }
    }
  }
}

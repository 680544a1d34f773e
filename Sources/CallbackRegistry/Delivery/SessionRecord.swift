// SPDX-License-Identifier: Apache-2.0
//
// What the handles of sessions and tasks stand for. Everything here is guarded
// by the registry's lock. A record has a lease on its own handle until its last
// event has been delivered: so it outlives the handle's end, which may come
// from outside at any time.

/// Something that a delegate is told.
package enum SessionEventKind: UInt32 {
  case response = 0
  case data = 1
  case complete = 2
  case invalid = 3
  case handOver = 4

  /// The method of the delegate's interface.
  var method: UInt32 { rawValue }
}

package struct SessionEvent {
  let kind: SessionEventKind
  /// Nil: of the session itself.
  var task: TaskPointer?
  /// A copy of what came with it, behind this.
  var size: Int = 0
  fileprivate var next: SessionEventPointer?
  fileprivate var previous: SessionEventPointer?
  fileprivate var nextOfTask: SessionEventPointer?

  init(_ kind: SessionEventKind, of task: TaskPointer?, size: Int = 0) {
    self.kind = kind
    self.task = task
    self.size = size
  }
}

package typealias SessionEventPointer = UnsafeMutablePointer<SessionEvent>

extension UnsafeMutablePointer where Pointee == SessionEvent {
  /// Makes an event with a copy of bytes; nil without memory.
  static func make(
    _ kind: SessionEventKind, of task: TaskPointer?,
    _ bytes: UnsafeRawPointer? = nil, size: Int = 0
  ) -> SessionEventPointer? {
    let (total, isTooLarge) =
      MemoryLayout<SessionEvent>.stride.addingReportingOverflow(size)
    guard !isTooLarge, let memory = Memory.allocateBytes(total) else {
      return nil
    }
    let event = memory.bindMemory(to: SessionEvent.self, capacity: 1)
    event.initialize(to: SessionEvent(kind, of: task, size: size))
    if let bytes, size > 0 {
      event.bytes.copyMemory(from: bytes, byteCount: size)
    }
    return event
  }

  var bytes: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(self) + MemoryLayout<SessionEvent>.stride
  }
}

/// A session's events, in the order in which they are to be delivered.
///
/// Those of a task are linked besides, so that it can be cancelled without a
/// look at those of others.
struct SessionEvents {
  private var first: SessionEventPointer?
  private var last: SessionEventPointer?
  private(set) var count = 0

  var isEmpty: Bool { first == nil }

  mutating func append(_ event: SessionEventPointer) {
    event.pointee.next = nil
    event.pointee.previous = last
    if let last { last.pointee.next = event } else { first = event }
    last = event
    count += 1
    event.pointee.task?.pointee.queued.append(event)
  }

  mutating func takeFirst() -> SessionEventPointer? {
    guard let taken = first else { return nil }
    unlink(taken)
    // It is the first of its task's, too.
    _ = taken.pointee.task?.pointee.queued.takeFirst()
    return taken
  }

  /// Frees those of a task; returns how many they were.
  mutating func drop(of task: TaskPointer) -> UInt64 {
    var dropped: UInt64 = 0
    while let event = task.pointee.queued.takeFirst() {
      unlink(event)
      Memory.release(event)
      dropped += 1
    }
    return dropped
  }

  /// Frees them all; their tasks may be gone.
  mutating func free() {
    while let event = first {
      first = event.pointee.next
      Memory.release(event)
    }
    last = nil
    count = 0
  }

  private mutating func unlink(_ event: SessionEventPointer) {
    let (next, previous) = (event.pointee.next, event.pointee.previous)
    if let next { next.pointee.previous = previous } else { last = previous }
    if let previous { previous.pointee.next = next } else { first = next }
    count -= 1
  }
}

/// Events of one task, in order.
typealias TaskEvents = LinkedQueue<TaskLink>

enum TaskLink: Link {
  static func next(of event: SessionEventPointer) -> SessionEventPointer? {
    event.pointee.nextOfTask
  }

  static func set(
    _ next: SessionEventPointer?, of event: SessionEventPointer
  ) {
    event.pointee.nextOfTask = next
  }
}

extension LinkedQueue<TaskLink> {
  /// Frees them; returns how many they were.
  mutating func drop() -> UInt64 {
    var dropped: UInt64 = 0
    while let event = takeFirst() {
      Memory.release(event)
      dropped += 1
    }
    return dropped
  }
}

/// Who is told, and the lease that keeps its context.
struct HeldDelegate {
  let token: UInt64
  let lease: UInt64
}

package struct SessionRecord {
  enum Stage {
    case open
    /// Its tasks go on, and no new one begins.
    case finishing
    case cancelling
  }

  var header: RecordHeader
  let delegate: HeldDelegate
  /// The delegate's token ends with the session.
  let ownsDelegate: Bool
  /// Where its delegate is told; none: on the thread that makes an event.
  let queue: UInt64
  /// Its queue has ended: nobody is told any more.
  var isMute = false
  var stage = Stage.open
  var reason: UInt32 = 0
  var firstTask: TaskPointer?
  var events = SessionEvents()
  /// A thread is delivering: others leave their events to it.
  var isDelivering = false
  /// That thread, once it does; not while the session waits for its queue.
  var deliverer: ThreadPointer?
  /// What that thread is telling, but for data that goes directly.
  var current: SessionEventPointer?
  /// The last event, until it is among the others.
  var terminal: SessionEventPointer?

  init(
    header: RecordHeader, delegate: HeldDelegate, ownsDelegate: Bool,
    queue: UInt64, terminal: SessionEventPointer
  ) {
    self.header = header
    self.delegate = delegate
    self.ownsDelegate = ownsDelegate
    self.queue = queue
    self.terminal = terminal
  }
}

package typealias SessionPointer = UnsafeMutablePointer<SessionRecord>

package struct TaskRecord {
  enum Stage {
    case open
    /// It has responded; what follows is held back until the reply.
    case answering
  }

  var header: RecordHeader
  let session: SessionPointer
  /// Who has taken it over.
  var successor: HeldDelegate?
  /// Who takes it over when the delegate has been told.
  var coming: HeldDelegate?
  var stage = Stage.open
  /// It has responded, or had data.
  var hasBegun = false
  /// It was completed or cancelled.
  var isCompleted = false
  var reply = Handle.none
  let timeouts: TaskTimeouts
  /// Those of its events that are among the session's.
  fileprivate(set) var queued = TaskEvents()
  /// Those that wait for the reply.
  var held = TaskEvents()
  /// Bytes of data that the delegate has not been told of, and their limit.
  var waitingBytes = 0
  let waitingLimit: Int
  /// The last event, until it is among the others.
  var completion: SessionEventPointer?
  var error: Int32 = 0
  let isGathering: Bool
  var gathered: UnsafeMutableRawPointer?
  var gatheredSize = 0
  var gatheredCapacity = 0
  /// Data that the delegate was told of.
  var pieces: UInt64 = 0
  var bytes: UInt64 = 0
  /// Events that were dropped because the task was cancelled.
  var dropped: UInt64 = 0
  var previous: TaskPointer?
  var next: TaskPointer?

  init(
    header: RecordHeader, session: SessionPointer, timeouts: TaskTimeouts,
    waitingLimit: Int, isGathering: Bool, completion: SessionEventPointer
  ) {
    self.header = header
    self.session = session
    self.timeouts = timeouts
    self.waitingLimit = waitingLimit
    self.isGathering = isGathering
    self.completion = completion
  }
}

package typealias TaskPointer = UnsafeMutablePointer<TaskRecord>

extension UnsafeMutablePointer where Pointee == TaskRecord {
  /// Adds to what the task has gathered; false without memory.
  func gather(_ bytes: UnsafeRawPointer, size: Int) -> Bool {
    let (needed, isTooLarge) =
      pointee.gatheredSize.addingReportingOverflow(size)
    guard !isTooLarge else { return false }
    if needed > pointee.gatheredCapacity {
      let capacity = Swift.max(needed, pointee.gatheredCapacity * 2, 256)
      guard let larger = Memory.allocateBytes(capacity) else { return false }
      if let former = pointee.gathered {
        larger.copyMemory(from: former, byteCount: pointee.gatheredSize)
        Memory.release(former)
      }
      pointee.gathered = larger
      pointee.gatheredCapacity = capacity
    }
    pointee.gathered?.advanced(by: pointee.gatheredSize)
      .copyMemory(from: bytes, byteCount: size)
    pointee.gatheredSize = needed
    return true
  }

  /// The lock of the registry is held.
  func destroy() {
    pointee.timeouts.destroy()
    Memory.release(pointee.gathered)
    Memory.release(pointee.completion)
    _ = pointee.held.drop()
    Memory.release(self)
  }
}

extension UnsafeMutablePointer where Pointee == SessionRecord {
  func destroy() {
    Memory.release(pointee.terminal)
    pointee.events.free()
    Memory.release(self)
  }

  func add(_ task: TaskPointer) {
    task.pointee.next = pointee.firstTask
    pointee.firstTask?.pointee.previous = task
    pointee.firstTask = task
  }

  func remove(_ task: TaskPointer) {
    task.pointee.next?.pointee.previous = task.pointee.previous
    if let previous = task.pointee.previous {
      previous.pointee.next = task.pointee.next
    } else {
      pointee.firstTask = task.pointee.next
    }
  }
}

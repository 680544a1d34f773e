// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Dispatch
import Foundation
import Synchronization
import Testing

/// Counts the objects that it has made and that have died since.
final class Tracker: Sendable {
  private let made = Atomic<Int>(0)
  private let freed = Atomic<Int>(0)

  /// An object to be captured by a closure.
  final class Tracked: Sendable {
    private let tracker: Tracker

    fileprivate init(_ tracker: Tracker) { self.tracker = tracker }

    deinit { tracker.freed.add(1, ordering: .sequentiallyConsistent) }

    /// Uses the object, so that a closure has to capture it.
    func touch() {}
  }

  func make() -> Tracked {
    made.add(1, ordering: .sequentiallyConsistent)
    return Tracked(self)
  }

  var madeCount: Int { made.load(ordering: .sequentiallyConsistent) }
  var freedCount: Int { freed.load(ordering: .sequentiallyConsistent) }
  var liveCount: Int { madeCount - freedCount }
}

/// A door that one thread opens and others wait at.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func open() { semaphore.signal() }

  func wait() {
    semaphore.wait()
    semaphore.signal()
  }

  /// Waits without a thread of those that run tasks, which what opens the door
  /// may need.
  func opened() async {
    await withCheckedContinuation { continuation in
      _ = Worker {
        self.wait()
        continuation.resume()
      }
    }
  }
}

/// A thread of the test's own: tests block, and those of the test library's
/// are too few for that.
struct Worker: Sendable {
  private let finished = Gate()

  init(_ body: @escaping @Sendable () -> Void) {
    let finished = finished
    Thread.detachNewThread {
      body()
      finished.open()
    }
  }

  func join() { finished.wait() }
}

/// A counter that threads share.
final class Counter: Sendable {
  private let value = Atomic<Int>(0)

  func increment() { value.add(1, ordering: .sequentiallyConsistent) }
  var count: Int { value.load(ordering: .sequentiallyConsistent) }
}

/// A value that threads share.
///
/// The lock is one that the thread sanitizer knows, which it does not of
/// `Synchronization.Mutex`.
final class Locked<Value: Sendable>: @unchecked Sendable {
  // Unchecked: the value is used under the lock alone.
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows
    -> Result
  {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

/// Something that a closure needs and that is known only later, such as its own
/// token.
final class Later<Value: Sendable>: Sendable {
  private let known = Locked<Value?>(nil)

  var value: Value? {
    get { known.withLock { $0 } }
    set { known.withLock { $0 = newValue } }
  }
}

extension Outcome {
  var isEnded: Bool {
    if case .ended = self { return true }
    return false
  }
  var isPending: Bool {
    if case .pending = self { return true }
    return false
  }
  var isDeferred: Bool {
    if case .deferred = self { return true }
    return false
  }
  var isAlready: Bool {
    if case .already = self { return true }
    return false
  }
  var isTimedOut: Bool {
    if case .timedOut = self { return true }
    return false
  }
  var isWouldDeadlock: Bool {
    if case .wouldDeadlock = self { return true }
    return false
  }
}

extension RegistryError {
  /// The name of the case.
  var name: String {
    switch self {
    case .invalid: "invalid"
    case .stale: "stale"
    case .wrongKind: "wrongKind"
    case .wrongType: "wrongType"
    case .unimplemented: "unimplemented"
    case .foreign: "foreign"
    case .dying: "dying"
    case .closed: "closed"
    case .unset: "unset"
    case .full: "full"
    case .consumed: "consumed"
    case .wouldDeadlock: "wouldDeadlock"
    case .timedOut: "timedOut"
    case .tooDeep: "tooDeep"
    case .wrongThread: "wrongThread"
    case .forked: "forked"
    case .outOfMemory: "outOfMemory"
    case .limitReached: "limitReached"
    case .history: "history"
    case .unsupported: "unsupported"
    case .cancelled: "cancelled"
    case .neverCalled: "neverCalled"
    case .thrown: "thrown"
    case .failed: "failed"
    }
  }
}

/// The error that a piece of code throws.
func thrown(_ body: () throws -> Void) -> RegistryError? {
  do {
    try body()
    return nil
  } catch let error as RegistryError {
    return error
  } catch {
    Issue.record(error)
    return nil
  }
}

extension Registry {
  /// What is told of a callback when all that happened is in the history.
  func story<Input, Output>(of token: Token<Input, Output>) throws -> String {
    try flush(waiting: .seconds(3_600))
    return token.explanation.story
  }
}

/// A path in the temporary folder that nothing has used before.
func temporaryPath() -> String {
  NSTemporaryDirectory() + "callback-registry-\(UUID().uuidString)"
}

// SPDX-License-Identifier: Apache-2.0
//
// A task's context in the engine is its retained `SessionTask`, which is
// released when the task is gone; so the delegate is told of the same object
// that began it.

#if !hasFeature(Embedded)
  import Synchronization

  /// A piece of a session's work.
  ///
  /// Whoever does the work tells what happens; the session's delegate is told.
  /// All of it may be done on any thread.
  public final class SessionTask: Sendable {
    /// How a task came to its end.
    public enum End: Sendable {
      /// The work was done.
      case finished
      /// ``SessionTask/fail(_:)`` was called with this error; of a number that
      /// C completed it with, it is ``RegistryError/failed(status:_:)``.
      case failed(any Error)
      /// It, or its session, was cancelled.
      case cancelled
      /// Its time was over.
      case timedOut
      /// Nobody could be told of it.
      case delegateGone
    }

    /// How much data a task has had.
    public struct Progress: Sendable, Hashable {
      /// Bytes that the delegate was told of.
      public let receivedBytes: Int
      /// What it was begun to expect; nil: nobody knows.
      public let expectedBytes: Int?

      /// From 0 to 1; nil when nobody knows.
      public var fraction: Double? {
        guard let expectedBytes else { return nil }
        guard expectedBytes > 0 else { return 1 }
        return min(Double(receivedBytes) / Double(expectedBytes), 1)
      }
    }

    /// Stored when it has begun, or when the first event tells it.
    private let number: Atomic<UInt64>
    let errors: PassedErrors
    /// Changed by who tells events, of which there is one at a time.
    private let receivedBytes = Atomic<Int>(0)
    private let expectedBytes: Int?
    /// Of a session without a delegate of its own.
    let stream: Stream?

    init(
      _ errors: PassedErrors, expecting expectedBytes: Int?,
      isStreaming: Bool = false, known handle: UInt64 = Handle.none
    ) {
      number = Atomic(handle)
      self.errors = errors
      self.expectedBytes = expectedBytes
      stream = isStreaming ? Stream() : nil
      stream?.continuation.onTermination = { [weak self] reason in
        if case .cancelled = reason { self?.cancel() }
      }
    }

    /// Takes up a live task from its number.
    ///
    /// It is the object that began it, as seen by ``==(_:_:)``, or one that
    /// stands for a task of C's.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From a task in Swift, or from C.
    /// - Returns: The task.
    public static func task(of handle: UInt64) -> SessionTask? {
      guard Handle.kind(of: handle) == .task, Liveness.isLive(handle) else {
        return nil
      }
      return known(handle)?.task
    }

    /// The task as a number, which is the same task in C and in Swift.
    public var handle: UInt64 { number.load(ordering: .relaxed) }

    /// Says that the task has a response; once, and before any data.
    ///
    /// - Parameter response: Told to the delegate.
    /// - Throws: `failed` when it has begun; `closed` when it is complete or
    ///   cancelled; `stale`, `outOfMemory`, `limitReached`, `forked`.
    public func respond(_ response: [UInt8] = []) throws(RegistryError) {
      let status = response.withUnsafeBytes { bytes in
        Tasks.respond(handle, bytes.baseAddress, size: bytes.count)
      }
      try RegistryError.check(status, about: handle)
    }

    /// Gives the task data.
    ///
    /// - Parameter data: Not empty. It is copied only when it cannot be told at
    ///   once.
    /// - Throws: `full` when it would have to wait, and too much does; `closed`
    ///   when the task is complete or cancelled; `invalid` when it is empty;
    ///   `stale`, `outOfMemory`, `forked`. Then nothing was taken.
    public func send(_ data: [UInt8]) throws(RegistryError) {
      let status = data.withUnsafeBytes { bytes in
        Tasks.data(handle, bytes.baseAddress, size: bytes.count)
      }
      try RegistryError.check(status, about: handle)
    }

    /// Completes the task; what was given before is told before.
    ///
    /// - Returns: ``Outcome/ended`` when this completed it;
    ///   ``Outcome/already(_:)`` when it was complete or cancelled.
    @discardableResult
    public func finish() -> Outcome {
      Outcome(Tasks.complete(handle, error: 0), of: handle)
    }

    /// Completes the task with an error of the program's own.
    ///
    /// - Parameter error: Told as ``End/failed(_:)``.
    /// - Returns: As ``finish()``.
    @discardableResult
    public func fail(_ error: any Error) -> Outcome {
      let code = errors.number(for: error)
      let status = Tasks.complete(handle, error: code)
      if status != .ok { errors.take(code) }
      return Outcome(status, of: handle)
    }

    /// Cancels the task: what has not been told is dropped.
    ///
    /// It may be done inside the task's own data.
    ///
    /// - Returns: ``Outcome/ended`` when this cancelled it;
    ///   ``Outcome/already(_:)`` when its end is on its way, or was told.
    @discardableResult
    public func cancel() -> Outcome {
      Outcome(Tasks.cancel(handle), of: handle)
    }

    /// What a task that gathers has been given so far, as a copy; empty for
    /// others, and when the task is dead.
    public var gathered: [UInt8] {
      var bytes: [UInt8] = []
      _ = Tasks.withGathered(of: handle) { bytes = Array($0) }
      return bytes
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the task.
    public var explanation: Explanation { Explanation(of: handle) }
  }

  extension SessionTask: Hashable {
    /// Whether both are one task.
    ///
    /// - Parameters:
    ///   - one: A task.
    ///   - other: Another one, or the same.
    /// - Returns: True for tasks of one number.
    public static func == (one: SessionTask, other: SessionTask) -> Bool {
      one.handle == other.handle
    }

    /// Hashes the task's number.
    ///
    /// - Parameter hasher: Is fed.
    public func hash(into hasher: inout Hasher) { hasher.combine(handle) }
  }

  extension SessionTask {
    static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<SessionTask>.fromOpaque(context).takeRetainedValue()
        .stream?.endUntold()
    }

    /// The object of a task that is live, or that the thread is told of; one
    /// that stands for it when C began it.
    static func known(
      _ handle: UInt64
    ) -> (task: SessionTask, isBegunHere: Bool)? {
      var found: SessionTask?
      Tasks.withContext(of: handle, freedBy: destroy) { context in
        found = Unmanaged<SessionTask>.fromOpaque(context)
          .takeUnretainedValue()
      }
      if let found {
        found.note(handle)
        return (found, true)
      }
      guard let errors = PassedErrors() else { return nil }
      return (SessionTask(errors, expecting: nil, known: handle), false)
    }

    /// Learns its number, which is the same each time.
    func note(_ handle: UInt64) { number.store(handle, ordering: .relaxed) }

    /// More has been told.
    func receive(_ bytes: Int) -> Progress {
      let all = receivedBytes.wrappingAdd(bytes, ordering: .relaxed).newValue
      return Progress(receivedBytes: all, expectedBytes: expectedBytes)
    }

    /// What the engine completes a task with.
    func end(_ code: Int32) -> End {
      switch code {
      case 0: .finished
      case TaskError.cancelled: .cancelled
      case TaskError.timedOut: .timedOut
      case TaskError.delegateGone: .delegateGone
      default: .failed(errors.take(code) ?? ofC(code))
      }
    }

    private func ofC(_ code: Int32) -> any Error {
      RegistryError.failed(
        status: code,
        Explanation("it was completed with an error of C's", about: handle))
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// What must be called exactly once.
  ///
  /// Give it to code that answers later, by ``succeed(_:)`` or ``fail(_:)``.
  /// When it is released before that, or its owner or registry ends, its
  /// closure is called all the same, with `neverCalled`; so it always hears
  /// once, and who forgot to answer is found by name.
  ///
  ///     let image = try await registry.completion("load") { completion in
  ///       oldLoader.load { data in try? completion.succeed(data) }
  ///     }
  ///
  /// In C it is a `cbr_reply`: `cbr_completion_send` with error 0 and the
  /// address of a `Value`, which is copied, or with an error of its own, which
  /// is told as `failed`. What C sends has no type that could be checked.
  public final class Completion<Value: Sendable>: Sendable {
    /// The completion as a number, which is the same one in C and in Swift.
    public let handle: UInt64
    private let errors: PassedErrors

    /// Makes a completion that calls a closure.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Where it is registered. It is not held.
    ///   - owner: Ends it; nil: the registry does.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    ///   - body: What is called once, where it is sent or ended: with the
    ///     value, or with one of these errors: `thrown` for an error of the
    ///     program's, `failed` for one of C's, `neverCalled`, `timedOut`,
    ///     `cancelled`.
    /// - Throws: `invalid`, `foreign`, `dying`, `stale`, `closed`, `forked`,
    ///   `outOfMemory`, `limitReached`; the closure is released, uncalled.
    public init(
      _ label: String, in registry: Registry, owner: Owner? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Result<Value, RegistryError>) -> Void
    ) throws(RegistryError) {
      guard let errors = PassedErrors() else { throw RegistryError(.noMemory) }
      self.errors = errors
      let isEmpty = MemoryLayout<Value>.size == 0
      let box = CompletionBox(errors, isEmpty: isEmpty) { sent in
        body(sent.map { $0.assumingMemoryBound(to: Value.self).pointee })
      }
      handle = try box.register(
        CallbackTraits(label, [], nil, file, line), in: registry.handle,
        owner: owner?.handle ?? Handle.none)
    }

    deinit {
      _ = Ending.end(handle, reason: Reason.ended, waitingUntil: nil)
    }

    /// Calls it with a value, on the calling thread, before this returns.
    ///
    /// - Parameter value: Passed to the closure.
    /// - Throws: `consumed` when it was called before, by whom and when is in
    ///   the explanation; `stale` when it has ended, or its time was over;
    ///   `closed`, `forked`. Then nothing is called.
    public func succeed(_ value: Value) throws(RegistryError) {
      let status = withUnsafePointer(to: value) { value in
        Completions.send(
          handle, error: 0, value: UnsafeMutableRawPointer(mutating: value))
      }
      try RegistryError.check(status, about: handle)
    }

    /// Calls it with an error, on the calling thread, before this returns.
    ///
    /// - Parameter error: Told as ``RegistryError/thrown(_:_:)``; a
    ///   ``RegistryError`` as it is.
    /// - Throws: As with a value.
    public func fail(_ error: any Error) throws(RegistryError) {
      let number = errors.number(for: error)
      let status = Completions.send(handle, error: number, value: nil)
      errors.take(number)
      try RegistryError.check(status, about: handle)
    }

    /// Says by when it must have been called: else it ends, and its closure is
    /// told `timedOut`, by who delivers on a queue.
    ///
    /// When the queue ends first, so does the completion.
    ///
    /// - Parameters:
    ///   - timeout: From now, instead of what was said before.
    ///   - queue: Live, of the same registry: its clock.
    /// - Throws: `consumed` when it was called; `stale` when it has ended, or
    ///   the queue is dead; `foreign`, `outOfMemory`, `closed`, `forked`. Then
    ///   nothing has changed.
    public func setTimeout(
      _ timeout: Duration, on queue: CallQueue
    ) throws(RegistryError) {
      // Zero would be none at all.
      let status = Completions.setTimeout(
        handle, on: queue.handle,
        nanoseconds: max(timeout.boundedNanoseconds, 1))
      try RegistryError.check(status, about: handle)
    }

    /// Takes back what was said of a timeout.
    ///
    /// - Throws: `consumed`, `stale`, `closed`, `forked`.
    public func removeTimeout() throws(RegistryError) {
      let status = Completions.setTimeout(
        handle, on: Handle.none, nanoseconds: 0)
      try RegistryError.check(status, about: handle)
    }

    /// Ends the completion: its closure is told `neverCalled`, before this
    /// returns.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation. For
    ///     `cancelled` and `timedOut` the closure is told so.
    ///   - timeout: How long to wait for the closure, where it is running on
    ///     another thread; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }

    /// Whether it can still be called, at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the completion.
    public var explanation: Explanation { Explanation(of: handle) }
  }
#endif

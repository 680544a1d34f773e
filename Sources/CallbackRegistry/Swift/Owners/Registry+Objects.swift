// SPDX-License-Identifier: Apache-2.0
//
// Registering closures to objects.

#if !hasFeature(Embedded)
  extension Registry {
    /// Registers a closure to an object, which it gets as its first input.
    ///
    /// The object is held weakly, and strongly while the closure runs: no call
    /// begins on an object whose `deinit` has begun, and no cycle of references
    /// forms. Calls on a dead object throw `stale`. Its last reference may be
    /// released by a call, and then its `deinit` runs on that thread; hence it
    /// must be `Sendable`.
    ///
    /// On Linux nothing tells when an object dies. The first call that finds it
    /// dead ends all that was registered to it: its own callback with reason
    /// `objectDied`, the others with `ownerDied`. ``leaks()``, ``live()`` and,
    /// now and then, registering find dead objects, too: then all callbacks end
    /// with `ownerDied`. For an exact end conform to ``CallbackOwner``, or call
    /// ``end(_:reason:waiting:)`` in the object's `deinit`.
    ///
    /// The closure cannot throw and cannot be `async`: have it return a
    /// `Result`, or start a `Task`.
    ///
    ///     let token = try registry.register("progress", owner: download) {
    ///       (download, fraction: Double) in download.show(fraction)
    ///     }.keep()
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called. It should not capture the object.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func register<Object, Input, Output>(
      _ label: String, owner object: Object, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Object, Input) -> Output
    ) throws(RegistryError) -> Registration<Input, Output>
    where Object: AnyObject & Sendable {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, to: object, body)
    }

    /// Registers a closure of an object and no input, which cannot throw or be
    /// `async`.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called. It should not capture the object.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func register<Object, Output>(
      _ label: String, owner object: Object, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Object) -> Output
    ) throws(RegistryError) -> Registration<Void, Output>
    where Object: AnyObject & Sendable {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, to: object, body)
    }

    /// Registers a closure of an object and several inputs.
    ///
    /// They are one tuple in the type of the token. The closure cannot throw
    /// and cannot be `async`.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called. It should not capture the object.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func register<
      Object, First, Second, each Other, Output
    >(
      _ label: String, owner object: Object, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body:
        @escaping @Sendable (
          Object, First, Second, repeat each Other
        ) -> Output
    ) throws(RegistryError) -> Registration<
      (First, Second, repeat each Other), Output
    >
    where Object: AnyObject & Sendable {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, to: object, body)
    }

    /// Ends all that was registered to an object; also for its `deinit`.
    ///
    /// - Parameters:
    ///   - object: Alive, or in its `deinit`. It may have no callbacks. Of a
    ///     ``CallbackOwner``, its owner ends.
    ///   - reason: Recorded for the object; its callbacks have `ownerDied`.
    ///   - timeout: How long to wait for calls on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      _ object: AnyObject, reason: EndReason = .objectDied,
      waiting timeout: Duration? = nil
    ) -> Outcome {
      if let object = object as? any CallbackOwner {
        return object.callbacks.end(reason: reason, waiting: timeout)
      }
      guard Liveness.isLive(handle), let owner = objects.take(object) else {
        return .ended
      }
      return Outcome.ending(owner, reason: reason, waiting: timeout)
    }
  }
#endif

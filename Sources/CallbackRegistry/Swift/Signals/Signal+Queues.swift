// SPDX-License-Identifier: Apache-2.0
//
// Handlers that are called on a queue. Each message has a copy of the input.

#if !hasFeature(Embedded)
  extension Signal where Input: Sendable {
    /// Connects a handler that is called on a queue, with a copy of the input.
    ///
    ///     let log = try signal.connect("log", on: work) { name, count in
    ///       print(name, count)
    ///     }
    ///
    /// An emission posts to the queue and goes on. When the queue's turn comes
    /// and the connection has ended meanwhile, the handler is not called; the
    /// copy is released once, whatever becomes of it.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the signal and the registry do.
    ///   - queue: Of the same registry. It is not held.
    ///   - priority: Higher ones are posted to first; among equals, those that
    ///     were connected first.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called on the queue; it cannot throw and cannot be `async`.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As without a queue; `foreign`, `stale` and `dying` also of the
    ///   queue.
    @inlinable
    public func connect(
      _ label: String, owner: Owner? = nil, on queue: CallQueue,
      priority: Int32 = 0, options: CallbackOptions = [],
      level: Registry.Level? = nil, file: StaticString = #fileID,
      line: UInt = #line, _ body: @escaping @Sendable (Input) -> Void
    ) throws(RegistryError) -> Registration<Input, Void> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, owner, priority, onQueue: queue.handle) { input in
        body(input)
        return 0
      }
    }

    /// Connects a handler of an object that is called on a queue, with a copy
    /// of the input.
    ///
    /// The object is held weakly, also while the input waits.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the handler works on, and ends with.
    ///   - queue: Of the same registry. It is not held.
    ///   - priority: Higher ones are posted to first; among equals, those that
    ///     were connected first.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called on the queue. It should not capture the object.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As without an object.
    @inlinable
    public func connect<Object: AnyObject & Sendable>(
      _ label: String, owner object: Object, on queue: CallQueue,
      priority: Int32 = 0, options: CallbackOptions = [],
      level: Registry.Level? = nil, file: StaticString = #fileID,
      line: UInt = #line, _ body: @escaping @Sendable (Object, Input) -> Void
    ) throws(RegistryError) -> Registration<Input, Void> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(
        traits, to: object, priority, onQueue: queue.handle
      ) { object, input in
        body(object, input)
        return 0
      }
    }

    /// Connects a handler that is called on the queue of a handle.
    @inlinable
    func add(
      _ traits: CallbackTraits, _ owner: Owner?, _ priority: Int32,
      onQueue queue: UInt64, _ body: @escaping @Sendable (Input) -> Int32
    ) throws(RegistryError) -> Registration<Input, Void> {
      let box = HandlerBox(copying: Input.self) { input in
        body(input.assumingMemoryBound(to: Input.self).pointee)
      }
      let token = try box.connect(
        to: handle, traits, owner: owner?.handle ?? 0, priority: priority,
        queue: queue, bytes: MemoryLayout<Input>.size)
      return Registration(Token(registered: token))
    }

    /// Connects a handler of an object that is called on the queue of a handle.
    @inlinable
    func add<Object: AnyObject & Sendable>(
      _ traits: CallbackTraits, to object: Object, _ priority: Int32,
      onQueue queue: UInt64,
      _ body: @escaping @Sendable (Object, Input) -> Int32
    ) throws(RegistryError) -> Registration<Input, Void> {
      let owner = try ObjectOwner(of: object, in: registry)
      let box = HandlerBox(
        copying: Input.self, owner: owner.endsWithObject
      ) { [weak object] input in
        guard let object else { return HandlerBox.gone }
        return body(object, input.assumingMemoryBound(to: Input.self).pointee)
      }
      let token = try box.connect(
        to: handle, traits, owner: owner.handle, priority: priority,
        queue: queue, bytes: MemoryLayout<Input>.size)
      withExtendedLifetime(object) {}
      return Registration(Token(registered: token))
    }
  }
#endif

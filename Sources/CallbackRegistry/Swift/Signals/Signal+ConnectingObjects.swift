// SPDX-License-Identifier: Apache-2.0
//
// Connecting handlers to objects.

#if !hasFeature(Embedded)
  extension Signal {
    /// Connects a handler to an object, which it gets as its first input.
    ///
    /// The object is held weakly, and strongly while the closure runs: see
    /// registering to an object. An emission that finds it dead ends what was
    /// registered to it, and counts the handler as not called.
    ///
    ///     let bar = try signal.connect("bar", owner: view) { view, fraction in
    ///       view.show(fraction)
    ///     }.keep()
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - priority: Higher ones are called first; among equals, those that were
    ///     connected first.
    ///   - options: What is special about it. Emissions on other threads pass
    ///     over one that is `threadBound`.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called by emissions. It should not capture the object.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func connect<Object: AnyObject & Sendable>(
      _ label: String, owner object: Object, priority: Int32 = 0,
      options: CallbackOptions = [], level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Object, Input) -> Void
    ) throws(RegistryError) -> Registration<Input, Void> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, to: object, priority) { object, input in
        body(object, input)
        return 0
      }
    }

    /// Connects a handler of no input to an object.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - priority: Higher ones are called first; among equals, those that were
    ///     connected first.
    ///   - options: What is special about it. Emissions on other threads pass
    ///     over one that is `threadBound`.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called by emissions. It should not capture the object.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func connect<Object: AnyObject & Sendable>(
      _ label: String, owner object: Object, priority: Int32 = 0,
      options: CallbackOptions = [], level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Object) -> Void
    ) throws(RegistryError) -> Registration<Input, Void>
    where Input == Void {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, to: object, priority) { object, _ in
        body(object)
        return 0
      }
    }

    /// Connects a handler of several inputs to an object.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - priority: Higher ones are called first; among equals, those that were
    ///     connected first.
    ///   - options: What is special about it. Emissions on other threads pass
    ///     over one that is `threadBound`.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called by emissions. It should not capture the object.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func connect<
      Object: AnyObject & Sendable, First, Second, each Other
    >(
      _ label: String, owner object: Object, priority: Int32 = 0,
      options: CallbackOptions = [], level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body:
        @escaping @Sendable (
          Object, First, Second, repeat each Other
        ) -> Void
    ) throws(RegistryError) -> Registration<Input, Void>
    where Input == (First, Second, repeat each Other) {
      let traits = CallbackTraits(label, options, level, file, line)
      return try addSeveral(traits, to: object, priority, body)
    }

    /// Connects a handler to an object that says what becomes of the emission,
    /// or of itself.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - priority: Higher ones are called first; among equals, those that were
    ///     connected first.
    ///   - options: What is special about it. Emissions on other threads pass
    ///     over one that is `threadBound`.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called by emissions. It should not capture the object.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As for any closure.
    @inlinable
    public func connectAnswering<Object: AnyObject & Sendable>(
      _ label: String, owner object: Object, priority: Int32 = 0,
      options: CallbackOptions = [], level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body:
        @escaping @Sendable (Object, Input) -> HandlerAnswer
    ) throws(RegistryError) -> Registration<Input, Void> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, to: object, priority) { object, input in
        body(object, input).rawValue
      }
    }
  }

  extension Signal {
    @inlinable
    func addSeveral<Object: AnyObject & Sendable, each Part>(
      _ traits: CallbackTraits, to object: Object, _ priority: Int32,
      _ body: @escaping @Sendable (Object, repeat each Part) -> Void
    ) throws(RegistryError) -> Registration<Input, Void>
    where Input == (repeat each Part) {
      try add(traits, to: object, priority) { object, input in
        body(object, repeat each input)
        return 0
      }
    }

    @inlinable
    func add<Object: AnyObject & Sendable>(
      _ traits: CallbackTraits, to object: Object, _ priority: Int32,
      _ body: @escaping @Sendable (Object, Input) -> Int32
    ) throws(RegistryError) -> Registration<Input, Void> {
      let owner = try ObjectOwner(of: object, in: registry)
      let box = HandlerBox(
        inputSize: MemoryLayout<Input>.size, owner: owner.endsWithObject
      ) { [weak object] input in
        guard let object else { return HandlerBox.gone }
        return body(object, input.assumingMemoryBound(to: Input.self).pointee)
      }
      let token = try box.connect(
        to: handle, traits, owner: owner.handle, priority: priority)
      withExtendedLifetime(object) {}
      return Registration(Token(registered: token))
    }
  }
#endif

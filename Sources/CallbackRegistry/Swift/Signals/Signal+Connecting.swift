// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Signal {
    /// Connects a handler.
    ///
    /// An emission that has begun does not call it. It ends with what is
    /// returned, with its owner, and with the signal. Only the signal calls it:
    /// calling its token throws `wrongType`.
    ///
    /// Inputs that are one tuple may be named one by one:
    ///
    ///     let log = try signal.connect("log") { name, count in
    ///       print(name, count)
    ///     }
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the signal and the registry do.
    ///   - priority: Higher ones are called first; among equals, those that were
    ///     connected first.
    ///   - options: What is special about it. Emissions on other threads pass
    ///     over one that is `threadBound`.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called by emissions; it cannot throw and cannot be `async`.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: `stale` and `dying`, also of the signal; else as
    ///   registering with a ``Registry``; the closure is released.
    @inlinable
    public func connect(
      _ label: String, owner: Owner? = nil, priority: Int32 = 0,
      options: CallbackOptions = [], level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Input) -> Void
    ) throws(RegistryError) -> Registration<Input, Void> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, owner, priority) { input in
        body(input)
        return 0
      }
    }

    /// Connects a handler that says what becomes of the emission, or of itself.
    ///
    ///     let untilOne = try fractions.connectAnswering("until 1") { fraction in
    ///       fraction < 1 ? .goOn : .disconnect
    ///     }
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the signal and the registry do.
    ///   - priority: Higher ones are called first; among equals, those that were
    ///     connected first.
    ///   - options: What is special about it. Emissions on other threads pass
    ///     over one that is `threadBound`.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is connected, for explanations.
    ///   - line: Likewise.
    ///   - body: Is called by emissions; it cannot throw and cannot be `async`.
    /// - Returns: What ends the connection when it goes out of scope.
    /// - Throws: As connecting one that says nothing.
    @inlinable
    public func connectAnswering(
      _ label: String, owner: Owner? = nil, priority: Int32 = 0,
      options: CallbackOptions = [], level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Input) -> HandlerAnswer
    ) throws(RegistryError) -> Registration<Input, Void> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, owner, priority) { body($0).rawValue }
    }
  }

  extension Signal {
    @inlinable
    func add(
      _ traits: CallbackTraits, _ owner: Owner?, _ priority: Int32,
      _ body: @escaping @Sendable (Input) -> Int32
    ) throws(RegistryError) -> Registration<Input, Void> {
      let box = HandlerBox(inputSize: MemoryLayout<Input>.size) { input in
        body(input.assumingMemoryBound(to: Input.self).pointee)
      }
      let token = try box.connect(
        to: handle, traits, owner: owner?.handle ?? 0, priority: priority)
      return Registration(Token(registered: token))
    }
  }
#endif

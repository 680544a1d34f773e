// SPDX-License-Identifier: Apache-2.0
//
// Registering closures, with no input, one, or several. There is a function for
// each, and not one with a parameter pack for all, because a closure's inputs
// can then be inferred from the type that its registration is to have.

#if !hasFeature(Embedded)
  extension Registry {
    /// Registers a closure of one input.
    ///
    /// It may be called on any thread, at once and by several, also before
    /// this function has returned. It is released when it has ended and
    /// nothing is inside it: by the thread that ends it, or by the one that
    /// leaves last. No lock is held while it runs or is released.
    ///
    /// It cannot throw and cannot be `async`: have it return a `Result`, or
    /// start a `Task`. In a closure `catch` gives `any Error`, unless it says
    /// which:
    ///
    ///     let log = try registry.register("log") { (line: String) in
    ///       do throws(RegistryError) {
    ///         try progress.call(0.5)
    ///       } catch {
    ///         print(error.explanation)  // a RegistryError
    ///       }
    ///     }
    ///
    ///     let token = try registry.register("progress", owner: callbacks) {
    ///       (fraction: Double) in …
    ///     }.keep()
    ///     try token.call(0.5)
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the registry does.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: `invalid`, `foreign`, `dying`, `stale`, `closed`, `forked`,
    ///   `outOfMemory`, `limitReached`; the closure is released.
    @inlinable
    public func register<Input, Output>(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Input) -> Output
    ) throws(RegistryError) -> Registration<Input, Output> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, owner, body)
    }

    /// Registers a closure of no input, which cannot throw or be `async`.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the registry does.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: As for one input.
    @inlinable
    public func register<Output>(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable () -> Output
    ) throws(RegistryError) -> Registration<Void, Output> {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, owner, body)
    }

    /// Registers a closure of several inputs.
    ///
    /// They are one tuple in the type of the token. The closure cannot throw
    /// and cannot be `async`.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the registry does.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is registered, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called.
    /// - Returns: What ends the callback when it goes out of scope.
    /// - Throws: As for one input.
    @inlinable
    public func register<
      First, Second, each Other, Output
    >(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body:
        @escaping @Sendable (
          First, Second, repeat each Other
        ) -> Output
    ) throws(RegistryError) -> Registration<
      (First, Second, repeat each Other), Output
    > {
      let traits = CallbackTraits(label, options, level, file, line)
      return try add(traits, owner, body)
    }
  }
#endif

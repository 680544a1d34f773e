// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A place for one closure, such as a completion or a data source.
  ///
  ///     let onFinish = try CallbackSlot<Int, Void>("on finish", in: registry)
  ///     try onFinish.set("log") { status in print(status) }
  ///     try onFinish.call(0)
  ///
  /// Setting a closure ends the former one. The slot ends when it is released,
  /// and its closure with it.
  public final class CallbackSlot<Input, Output>: Sendable {
    @usableFromInline let held: HeldToken<Void>

    /// Makes an empty slot that belongs to a registry.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Where its closures are registered.
    /// - Throws: `invalid`, `closed`, `dying`, `outOfMemory`, `limitReached`,
    ///   `forked`.
    public init(
      _ label: String, in registry: Registry
    ) throws(RegistryError) {
      held = try HeldToken(label, in: registry, owner: Handle.none)
    }

    /// Makes an empty slot that belongs to an owner, and ends with it.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: What it ends with. It is not held.
    /// - Throws: As with a registry, and `stale` when the owner is dead.
    public init(_ label: String, in owner: Owner) throws(RegistryError) {
      held = try HeldToken(label, in: owner.registry, owner: owner.handle)
    }

    /// Takes up a live slot from its number.
    ///
    /// Only callbacks of these types are called; releasing this object does not
    /// end the slot, but a closure that was set by it.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From `cbr_slot_create`, or from a slot in Swift.
    public init?(handle: UInt64) {
      guard let held = HeldToken<Void>(handle: handle) else { return nil }
      self.held = held
    }

    /// The slot as a number, which is the same slot in C and in Swift.
    public var handle: UInt64 { held.slot }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the slot.
    public var explanation: Explanation { Explanation(of: handle) }

    /// What it holds; nil when it is empty, or that is dead.
    public var token: Token<Input, Output>? {
      Token(handle: Slots.get(handle))
    }

    /// Sets the closure, and ends the former one.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it, too.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is set, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called; it cannot throw and cannot be `async`.
    /// - Throws: As registering does; the slot is as it was.
    public func set(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Registry.Level? = nil, file: StaticString = #fileID,
      line: UInt = #line, _ body: @escaping @Sendable (Input) -> Output
    ) throws(RegistryError) {
      let token = try held.registry.register(
        label, owner: owner, options: options, level: level, file: file,
        line: line, body
      ).keep()
      try held.set(HeldToken.Holding(token: token.handle, isOwn: true))
    }

    /// Sets a closure of an object, which is held weakly: see registering to an
    /// object.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - object: What the closure works on, and ends with.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is set, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called. It should not capture the object.
    /// - Throws: As registering does; the slot is as it was.
    public func set<Object: AnyObject & Sendable>(
      _ label: String, owner object: Object, options: CallbackOptions = [],
      level: Registry.Level? = nil, file: StaticString = #fileID,
      line: UInt = #line,
      _ body: @escaping @Sendable (Object, Input) -> Output
    ) throws(RegistryError) {
      let token = try held.registry.register(
        label, owner: object, options: options, level: level, file: file,
        line: line, body
      ).keep()
      try held.set(HeldToken.Holding(token: token.handle, isOwn: true))
    }

    /// Sets a callback that was registered elsewhere, and that does not end when
    /// it is replaced.
    ///
    /// - Parameter token: Live, of the same registry.
    /// - Throws: `stale`, `foreign`, `closed`, `outOfMemory`, `forked`; the slot
    ///   is as it was.
    public func set(_ token: Token<Input, Output>) throws(RegistryError) {
      try held.set(HeldToken.Holding(token: token.handle))
    }

    /// Empties the slot, and ends the closure that was set.
    ///
    /// - Throws: `stale` when the slot is dead; `closed`, `forked`.
    public func clear() throws(RegistryError) {
      try held.set(HeldToken.Holding())
    }

    /// Calls what it holds.
    ///
    /// - Parameter input: Passed to the closure.
    /// - Returns: What the closure returns.
    /// - Throws: `unset` when it is empty; `stale` when what it held has died or
    ///   the slot has ended; `wrongType` when C has set a callback of other
    ///   types; else as ``Token/call(_:)-(Input)``.
    @inlinable
    public func call(_ input: Input) throws(RegistryError) -> Output {
      try held.withTarget { (target) throws(RegistryError) in
        try Token(registered: target).call(input)
      }
    }

    /// Calls what it holds with several inputs, or with none.
    ///
    /// - Parameter part: The inputs, one by one.
    /// - Returns: What the closure returns.
    /// - Throws: As with one input.
    @inlinable
    public func call<each Part>(
      _ part: repeat each Part
    ) throws(RegistryError) -> Output where Input == (repeat each Part) {
      let input = (repeat each part)
      return try held.withTarget { (target) throws(RegistryError) in
        try Token(registered: target).call(input)
      }
    }

    /// Calls what it holds, if that can be called.
    ///
    /// An attempt on a closure that has died is recorded, as if it had thrown.
    ///
    /// - Parameters:
    ///   - otherwise: Is returned when nothing can be called.
    ///   - input: Passed to the closure.
    /// - Returns: What the closure returns, or the default.
    @inlinable
    public func call(
      default otherwise: @autoclosure () -> Output, _ input: Input
    ) -> Output {
      do throws(RegistryError) {
        return try call(input)
      } catch {
        return otherwise()
      }
    }

    /// Calls what it holds with several inputs, or with none, if that can be
    /// called.
    ///
    /// - Parameters:
    ///   - otherwise: Is returned when nothing can be called.
    ///   - part: The inputs, one by one.
    /// - Returns: What the closure returns, or the default.
    @inlinable
    public func call<each Part>(
      default otherwise: @autoclosure () -> Output, _ part: repeat each Part
    ) -> Output where Input == (repeat each Part) {
      do throws(RegistryError) {
        return try call((repeat each part))
      } catch {
        return otherwise()
      }
    }

    /// Says what to do when what it holds has ended.
    ///
    /// It is not called when another takes its place, or when it is cleared.
    /// It is called by the thread that ends it, with no lock held. There is one
    /// such closure at a time.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - file: Where it is set, for explanations.
    ///   - line: Likewise.
    ///   - body: Nil: nothing.
    /// - Throws: As registering does; the former one stays.
    public func onClear(
      _ label: String, file: StaticString = #fileID, line: UInt = #line,
      _ body: (@Sendable () -> Void)?
    ) throws(RegistryError) {
      try held.onClear(label, body, file, line)
    }

    /// Ends the slot for good; its closure ends when it is released.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: Of no effect yet: nothing runs inside a slot itself.
    /// - Returns: What it has come to.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }
  }
#endif

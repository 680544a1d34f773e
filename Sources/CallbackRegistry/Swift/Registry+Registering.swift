// SPDX-License-Identifier: Apache-2.0
//
// The closure is wrapped where its types are known, in the caller's module, so
// that a call needs no type at run time; the rest is the same for all types.

#if !hasFeature(Embedded)
  extension Registry {
    /// Registers a closure.
    ///
    /// It may be called on any thread, at once and by several, also before
    /// this function has returned. It is released when it has ended and
    /// nothing is inside it: by the thread that ends it, or by the one that
    /// leaves last. No lock is held while it runs or is released.
    ///
    ///     let token = try registry.register("arrived", owner: callbacks) {
    ///       (name: String, count: Int) in …
    ///     }.keep()
    ///     try token.call("parcel", 3)
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
    public func register<each Input, Output>(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (repeat each Input) -> Output
    ) throws(RegistryError) -> Registration<(repeat each Input), Output> {
      typealias Inputs = (repeat each Input)
      let box = ClosureBox(
        inputSize: MemoryLayout<Inputs>.size,
        outputSize: MemoryLayout<Output>.size
      ) { input, output in
        let input = input.assumingMemoryBound(to: Inputs.self).pointee
        output.initializeMemory(
          as: Output.self, to: body(repeat each input))
        return true
      }
      let handle = try add(
        box, label, owner: owner?.handle ?? 0, options, level,
        tag: Token<Inputs, Output>.typeTag, file: file, line: line)
      return Registration(Token(registered: handle))
    }

    /// Registers a closure to an object, which it gets as its first input.
    ///
    /// The object is held weakly, and strongly while the closure runs: no call
    /// begins on an object whose `deinit` has begun, and no cycle of references
    /// forms. Calls on a dead object throw `stale`. Its last reference may be
    /// released by a call, and then its `deinit` runs on that thread; hence it
    /// must be `Sendable`.
    ///
    /// On Linux nothing tells when an object dies. The first call that finds it
    /// dead ends all that was registered to it (reason `objectDied`); so do
    /// ``leaks()``, ``live()`` and, now and then, registering. For an exact end
    /// conform to ``CallbackOwner``, or call ``end(_:reason:waiting:)`` in the
    /// object's `deinit`.
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
      Object: AnyObject & Sendable, each Input, Output
    >(
      _ label: String, owner object: Object, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (Object, repeat each Input) -> Output
    ) throws(RegistryError) -> Registration<(repeat each Input), Output> {
      typealias Inputs = (repeat each Input)
      let owner = try ObjectOwner(of: object, in: self)
      let box = ClosureBox(
        inputSize: MemoryLayout<Inputs>.size,
        outputSize: MemoryLayout<Output>.size, owner: owner.endsWithObject
      ) { [weak object] input, output in
        guard let object else { return false }
        let input = input.assumingMemoryBound(to: Inputs.self).pointee
        output.initializeMemory(
          as: Output.self, to: body(object, repeat each input))
        return true
      }
      let handle = try add(
        box, label, owner: owner.handle, options, level,
        tag: Token<Inputs, Output>.typeTag, file: file, line: line)
      withExtendedLifetime(object) {}
      return Registration(Token(registered: handle))
    }

    /// Ends all that was registered to an object; also for its `deinit`.
    ///
    /// - Parameters:
    ///   - object: Alive, or in its `deinit`. It may have no callbacks.
    ///   - reason: Recorded for the object; its callbacks have `ownerDied`.
    ///   - timeout: How long to wait for calls on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      _ object: AnyObject, reason: EndReason = .objectDied,
      waiting timeout: Duration? = nil
    ) -> Outcome {
      guard Liveness.isLive(handle), let owner = objects.take(object) else {
        return .ended
      }
      return Outcome.ending(owner, reason: reason, waiting: timeout)
    }

    @usableFromInline
    func add(
      _ box: ClosureBox, _ label: String, owner: UInt64,
      _ options: CallbackOptions, _ level: Level?, tag: UInt64,
      file: StaticString, line: UInt
    ) throws(RegistryError) -> UInt64 {
      var request = RegistrationRequest()
      request.function = unsafeBitCast(
        ClosureBox.function, to: UnsafeRawPointer.self)
      let context = Unmanaged.passRetained(box)
      request.context = context.toOpaque()
      request.destroy = ClosureBox.destroy
      request.owner = owner
      request.typeTag = tag
      request.flags = options.rawValue
      request.level = level?.number ?? 0
      request.line = UInt32(clamping: line)
      var token = Handle.none
      let status = withText(file) { file in
        request.file = file
        return label.withCString { label in
          request.label = label
          return Registering.register(in: handle, request, out: &token)
        }
      }
      guard status == .ok else {
        let error = RegistryError(status, about: handle)
        // Nothing was taken (G6).
        context.release()
        throw error
      }
      box.token.store(token, ordering: .relaxed)
      return token
    }
  }

  /// What stands for an object in the engine.
  @usableFromInline
  struct ObjectOwner {
    @usableFromInline let handle: UInt64
    /// What a call that finds the object dead is to end: nothing when an
    /// `Owner` does that.
    @usableFromInline let endsWithObject: UInt64

    @usableFromInline
    init(
      of object: any AnyObject & Sendable, in registry: Registry
    ) throws(RegistryError) {
      if let owner = object as? Owner {
        handle = owner.handle
        endsWithObject = Handle.none
      } else if let object = object as? any CallbackOwner {
        handle = object.callbacks.handle
        endsWithObject = Handle.none
      } else {
        handle = try registry.owner(of: object)
        endsWithObject = handle
      }
    }
  }

  /// Lends the text of a literal, which ends with a zero.
  private func withText<Result>(
    _ text: StaticString, _ body: (UnsafePointer<CChar>?) -> Result
  ) -> Result {
    guard text.hasPointerRepresentation else { return body(nil) }
    return body(
      UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self))
  }
#endif

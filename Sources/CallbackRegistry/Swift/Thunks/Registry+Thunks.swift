// SPDX-License-Identifier: Apache-2.0
//
// Making C functions of closures. The closure is wrapped where its types are
// known, as for other callbacks.

#if !hasFeature(Embedded)
  extension Registry {
    /// Makes a C function of a closure that returns something.
    ///
    /// It may be called on any thread, at once and by several.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - otherwise: What the function returns when the closure has ended.
    ///   - owner: Ends it; nil: the registry does.
    ///   - options: What is special about it. Of one that is `threadBound` the
    ///     function returns the default on other threads.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called; it cannot throw and cannot be `async`.
    /// - Returns: What ends the closure when it is released.
    /// - Throws: As registering does; `unsupported` where the system lets no
    ///   program make code, or there are too many arguments; `limitReached` when
    ///   the process has used up its addresses; `invalid` when a ``CValue`` is
    ///   not of the size of its ``CType``.
    @inlinable
    public func thunk<each Argument: CValue, Result: CValue>(
      _ label: String, default otherwise: Result, owner: Owner? = nil,
      options: CallbackOptions = [], level: Level? = nil,
      file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (repeat each Argument) -> Result
    ) throws(RegistryError) -> Thunk {
      // Shared as bits: C passes it between threads like any value.
      nonisolated(unsafe) let otherwise = otherwise
      let signature = ThunkSignature(
        repeat (each Argument).self, result: Result.self,
        resultInC: Result.typeInC)
      return try withUnsafePointer(to: otherwise) {
        (bytes) throws(RegistryError) in
        try addThunk(
          CallbackTraits(label, options, level, file, line), owner, signature,
          otherwise: UnsafeRawPointer(bytes)
        ) { arguments, result, isGood in
          let target = result.unsafelyUnwrapped
          guard isGood else {
            target.initializeMemory(as: Result.self, to: otherwise)
            return
          }
          var reader = ArgumentReader(arguments)
          target.initializeMemory(
            as: Result.self,
            to: body(repeat reader.next(as: (each Argument).self)))
        }
      }
    }

    /// Makes a C function of a closure that returns nothing.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the registry does.
    ///   - options: What is special about it.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called; it cannot throw and cannot be `async`.
    /// - Returns: What ends the closure when it is released.
    /// - Throws: As for one that returns something.
    @inlinable
    public func thunk<each Argument: CValue>(
      _ label: String, owner: Owner? = nil, options: CallbackOptions = [],
      level: Level? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ body: @escaping @Sendable (repeat each Argument) -> Void
    ) throws(RegistryError) -> Thunk {
      let signature = ThunkSignature(
        repeat (each Argument).self, result: Void.self, resultInC: nil)
      return try addThunk(
        CallbackTraits(label, options, level, file, line), owner, signature,
        otherwise: nil
      ) { arguments, _, isGood in
        guard isGood else { return }
        var reader = ArgumentReader(arguments)
        body(repeat reader.next(as: (each Argument).self))
      }
    }

    @usableFromInline
    func addThunk(
      _ traits: CallbackTraits, _ owner: Owner?, _ signature: ThunkSignature,
      otherwise: UnsafeRawPointer?, _ body: @escaping ThunkBox.Body
    ) throws(RegistryError) -> Thunk {
      try signature.check()
      let box = ThunkBox(signature, body)
      let token = try box.register(
        in: self, traits, owner: owner?.handle ?? Handle.none)
      do throws(RegistryError) {
        let thunk = try signature.makeThunk(
          token, in: handle, traits, otherwise: otherwise)
        guard let address = Thunks.function(thunk) else {
          throw RegistryError.ofThread()
        }
        return Thunk(thunk, token, address, signature.functionType)
      } catch {
        // What belongs to an owner that has ended meanwhile is dead already.
        _ = Ending.end(token, reason: Reason.ended, waitingUntil: nil)
        throw error
      }
    }
  }
#endif

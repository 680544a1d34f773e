// SPDX-License-Identifier: Apache-2.0
//
// The generic part of a call is compiled into the caller, for its types; what
// is left is one call of performCall with two addresses.

#if !hasFeature(Embedded)
  extension Token {
    /// Calls the callback on the calling thread, if it is live.
    ///
    /// Whatever other threads do meanwhile, the closure and what it captured
    /// stay alive until it has returned. Calls may be nested, recursive and
    /// concurrent.
    ///
    /// - Parameter input: Passed to the closure.
    /// - Returns: What the closure returns.
    /// - Throws: `stale` once it has ended, or the object that it was
    ///   registered to has died; `consumed`, `wrongThread`, `closed`,
    ///   `forked`; `failed` when it is a C function that answered an error.
    @inlinable
    public func call(_ input: Input) throws(RegistryError) -> Output {
      var output: Output?
      let status = perform(input, &output)
      guard status == 0, let output else {
        throw RegistryError.last(status, about: handle)
      }
      return output
    }

    /// Calls a callback of several inputs, or of none.
    ///
    /// - Parameter part: The inputs, one by one.
    /// - Returns: What the closure returns.
    /// - Throws: As with one input.
    @inlinable
    public func call<each Part>(
      _ part: repeat each Part
    ) throws(RegistryError) -> Output where Input == (repeat each Part) {
      var output: Output?
      let status = perform((repeat each part), &output)
      guard status == 0, let output else {
        throw RegistryError.last(status, about: handle)
      }
      return output
    }

    @inlinable
    func perform(_ input: Input, _ output: inout Output?) -> Int32 {
      withUnsafePointer(to: input) { input in
        withUnsafeTemporaryAllocation(of: Output.self, capacity: 1) { room in
          let target = room.baseAddress.unsafelyUnwrapped
          let status = performCall(
            handle, tag: Self.typeTag, input: UnsafeRawPointer(input),
            output: UnsafeMutableRawPointer(target))
          if status == 0 { output = target.move() }
          return status
        }
      }
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Signal {
    /// Calls the handlers on the calling thread, one after the other.
    ///
    /// They are those that were connected when it began and are still connected
    /// when their turn comes: in order of priority, then of connection. No lock
    /// is held: a handler may connect, end, block and emit, also what is calling
    /// it.
    ///
    /// - Parameter input: Passed to each handler.
    /// - Returns: How many were called, and how it ended.
    /// - Throws: `stale` when the signal is dead; `tooDeep` when emissions are
    ///   nested more deeply than its registry allows; `outOfMemory`, `closed`,
    ///   `forked`.
    @inlinable
    @discardableResult
    public func emit(_ input: Input) throws(RegistryError) -> Emission {
      let signal = handle
      return try withUnsafePointer(to: input) {
        (input) throws(RegistryError) in
        try performEmission(signal, input: UnsafeRawPointer(input))
      }
    }

    /// Calls the handlers with several inputs, or with none.
    ///
    /// - Parameter part: The inputs, one by one.
    /// - Returns: How many were called, and how it ended.
    /// - Throws: As with one input.
    @inlinable
    @discardableResult
    public func emit<each Part>(
      _ part: repeat each Part
    ) throws(RegistryError) -> Emission where Input == (repeat each Part) {
      let signal = handle
      return try withUnsafePointer(to: (repeat each part)) {
        (input) throws(RegistryError) in
        try performEmission(signal, input: UnsafeRawPointer(input))
      }
    }
  }
#endif

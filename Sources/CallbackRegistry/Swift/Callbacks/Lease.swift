// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A hold on a callback that is not tied to a thread or a scope, for example
  /// across `await`: while it lasts the closure, and what it captured, is not
  /// released, even when the callback is ended.
  ///
  ///     let lease = try progress.lease()
  ///     try await Task.sleep(for: .seconds(1))
  ///     try lease.call(0.5)  // also when the token has ended meanwhile
  ///
  /// The hold is given up when this value goes out of scope. Whoever waits for
  /// the callback's end waits for its leases, too; with a lease on it one's own
  /// wait never ends.
  public struct Lease<Input, Output>: ~Copyable, Sendable {
    /// What is held.
    public let token: Token<Input, Output>
    /// The lease as a number, which is the same lease in C and in Swift.
    public let handle: UInt64

    fileprivate init(_ token: Token<Input, Output>, handle: UInt64) {
      self.token = token
      self.handle = handle
    }

    deinit { _ = Leasing.end(handle) }

    /// Gives up the hold now: the closure is released here, when its callback
    /// has ended and nothing else holds it.
    public consuming func end() {}

    /// Calls the closure, also when the callback has ended since.
    ///
    /// It is not a call of the token: nothing is recorded, and no thread or
    /// number of calls is asked of it.
    ///
    /// - Parameter input: Passed to the closure.
    /// - Returns: What the closure returns.
    /// - Throws: `stale` when the object that it was registered to has died;
    ///   `closed`, `forked`; `failed` when it is a C function that answered an
    ///   error.
    public borrowing func call(
      _ input: Input
    ) throws(RegistryError) -> Output {
      let token = token.handle
      var output: Output?
      let status = withUnsafePointer(to: input) { input in
        withUnsafeTemporaryAllocation(of: Output.self, capacity: 1) { room in
          let target = room.baseAddress.unsafelyUnwrapped
          let status = performLeased(
            handle, of: token, input: UnsafeRawPointer(input),
            output: UnsafeMutableRawPointer(target))
          if status == 0 { output = target.move() }
          return status
        }
      }
      guard status == 0, let output else {
        throw RegistryError.last(status, about: token)
      }
      return output
    }

    /// Calls a closure of several inputs, or of none.
    ///
    /// - Parameter part: The inputs, one by one.
    /// - Returns: What the closure returns.
    /// - Throws: As with one input.
    public borrowing func call<each Part>(
      _ part: repeat each Part
    ) throws(RegistryError) -> Output where Input == (repeat each Part) {
      try call((repeat each part))
    }
  }

  extension Token {
    /// Takes a hold on the callback.
    ///
    /// Any callback can be leased, whatever it asks of a call; one that can be
    /// called once is not used up by it.
    ///
    /// - Returns: What gives up the hold when it goes out of scope.
    /// - Throws: `stale`, `consumed`, `closed`, `forked`, `outOfMemory`,
    ///   `limitReached`. A refusal is recorded.
    public func lease() throws(RegistryError) -> Lease<Input, Output> {
      var lease = Handle.none
      try RegistryError.check(
        Leasing.begin(handle, out: &lease), about: handle)
      return Lease(self, handle: lease)
    }
  }

  /// Calls what a lease holds; answers as `performCall`.
  private func performLeased(
    _ lease: UInt64, of token: UInt64, input: UnsafeRawPointer,
    output: UnsafeMutableRawPointer
  ) -> Int32 {
    var held = CallRecord.empty
    let status = Leasing.get(lease, call: &held)
    guard status == .ok else { return status.rawValue }
    let function = unsafeBitCast(held.function, to: ClosureBox.Function.self)
    let answer = function(held.context, input, output)
    guard answer != Status.ok.rawValue else { return answer }
    // What the program made up itself is remembered as such.
    _ = ThreadPointer.current?.fail(
      Status(rawValue: answer) ?? .user, about: token)
    return answer
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A registered callback that ends when this value goes out of scope.
  ///
  /// Keep it where the callback is needed, for example in a property of the
  /// object that registered it, or call ``keep()`` to let something else end
  /// the callback: its owner, its object, or its registry.
  public struct Registration<Input, Output>: ~Copyable, Sendable {
    /// Names the callback; copies of it may be given to anyone.
    public let token: Token<Input, Output>

    @usableFromInline
    init(_ token: Token<Input, Output>) { self.token = token }

    deinit {
      _ = Ending.end(token.handle, reason: Reason.ended, waitingUntil: nil)
    }

    /// Gives up ending the callback, and returns its token.
    public consuming func keep() -> Token<Input, Output> {
      let token = token
      discard self
      return token
    }

    /// Ends the callback now.
    ///
    /// See ``Token/end(reason:waiting:)``.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: How long to wait for calls on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      token.end(reason: reason, waiting: timeout)
    }

    /// Calls the callback, if it is live.
    ///
    /// See ``Token/call(_:)-(Input)``.
    ///
    /// - Parameter input: Passed to the closure.
    /// - Returns: What the closure returns.
    /// - Throws: As ``Token/call(_:)-(Input)``.
    @inlinable
    public func call(_ input: Input) throws(RegistryError) -> Output {
      try token.call(input)
    }

    /// Calls a callback of several inputs, or of none.
    ///
    /// - Parameter part: The inputs, one by one.
    /// - Returns: What the closure returns.
    /// - Throws: As ``Token/call(_:)-(Input)``.
    @inlinable
    public func call<each Part>(
      _ part: repeat each Part
    ) throws(RegistryError) -> Output where Input == (repeat each Part) {
      try token.call(repeat each part)
    }

    /// Whether the callback is live at this moment; advice.
    public var isLive: Bool { token.isLive }

    /// The life of the callback.
    public var explanation: Explanation { token.explanation }
  }
#endif

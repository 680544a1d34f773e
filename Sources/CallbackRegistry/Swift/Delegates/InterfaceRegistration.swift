// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A registered implementation of a protocol that ends when this value goes
  /// out of scope.
  ///
  /// It is to ``InterfaceToken`` what ``Registration`` is to ``Token``.
  public struct InterfaceRegistration<Interface: Sendable>:
    ~Copyable, Sendable
  {
    /// Names the implementation; copies of it may be given to anyone.
    public let token: InterfaceToken<Interface>

    @usableFromInline
    init(_ token: InterfaceToken<Interface>) { self.token = token }

    deinit {
      _ = Ending.end(token.handle, reason: Reason.ended, waitingUntil: nil)
    }

    /// Gives up ending the registration, and returns its token.
    public consuming func keep() -> InterfaceToken<Interface> {
      let token = token
      discard self
      return token
    }

    /// Ends the registration now.
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

    /// Calls the object, if it is alive.
    ///
    /// - Parameter body: Gets the object.
    /// - Returns: What `body` returns.
    /// - Throws: As ``InterfaceToken/call(_:)``.
    @inlinable
    public func call<Result>(
      _ body: (Interface) -> Result
    ) throws(RegistryError) -> Result {
      try token.call(body)
    }

    /// Calls the object, if it is alive.
    ///
    /// - Parameters:
    ///   - otherwise: Is returned when the object cannot be called.
    ///   - body: Gets the object.
    /// - Returns: What `body` returns, or the default.
    @inlinable
    public func call<Result>(
      default otherwise: @autoclosure () -> Result,
      _ body: (Interface) -> Result
    ) -> Result {
      token.call(default: otherwise(), body)
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { token.isLive }

    /// The life of the registration.
    public var explanation: Explanation { token.explanation }
  }
#endif

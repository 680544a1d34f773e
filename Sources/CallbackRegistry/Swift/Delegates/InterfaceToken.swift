// SPDX-License-Identifier: Apache-2.0
//
// An implementation stands in the engine like a closure (ClosureBox.swift) whose
// input is a *visit*: a closure that gets the object, and that lives as long as
// the call. C does not know the tag, so it cannot enter such a token; it may
// end and explain it like any other.

#if !hasFeature(Embedded)
  /// Names an object that was registered as the implementation of a protocol,
  /// for as long as anyone likes.
  ///
  /// It is a number like ``Token``, and calling it is always defined:
  ///
  ///     let delegate: InterfaceToken<any DownloadDelegate> = …
  ///     try delegate.call { $0.didReceive(bytes) }
  ///     let goOn = delegate.call(default: true) { $0.shouldGoOn() }
  public struct InterfaceToken<Interface: Sendable>: Hashable, Sendable {
    /// The token as a number, which is the same callback in C and in Swift.
    public let handle: UInt64

    @usableFromInline
    init(registered handle: UInt64) { self.handle = handle }

    /// Takes up a live token from its number, if it is of this protocol.
    ///
    /// It is nil for every other number. Asking counts as no attempt to call.
    ///
    /// - Parameter handle: From a token in Swift.
    public init?(handle: UInt64) {
      guard Entering.matches(handle, tag: Self.typeTag) == .ok else {
        return nil
      }
      self.handle = handle
    }

    @inlinable
    static var typeTag: UInt64 {
      metadataAddress(of: Self.self)
    }

    /// Calls the object on the calling thread, if it is alive.
    ///
    /// It is held strongly while `body` runs.
    ///
    /// - Parameter body: Gets the object. It cannot throw: have it return a
    ///   `Result`.
    /// - Returns: What `body` returns.
    /// - Throws: As ``Token/call(_:)-(Input)``; `body` has not run.
    @inlinable
    public func call<Result>(
      _ body: (Interface) -> Result
    ) throws(RegistryError) -> Result {
      var result: Result?
      let status = visit { result = body($0) }
      guard status == 0, let result else {
        throw RegistryError.last(status, about: handle)
      }
      return result
    }

    /// Calls the object on the calling thread, if it is alive.
    ///
    /// An attempt that comes too late is recorded, as if it had thrown.
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
      var result: Result?
      _ = visit { result = body($0) }
      return result ?? otherwise()
    }

    @inlinable
    func visit(_ body: (Interface) -> Void) -> Int32 {
      withoutActuallyEscaping(body) { body in
        withUnsafePointer(to: body) { body in
          performCall(
            handle, tag: Self.typeTag, input: UnsafeRawPointer(body),
            output: UnsafeMutableRawPointer(mutating: body))
        }
      }
    }

    /// Ends the registration: see ``Token/end(reason:waiting:)``.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: How long to wait for calls on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the registration.
    public var explanation: Explanation { Explanation(of: handle) }

    /// Sets how much this token writes to the history.
    ///
    /// - Parameter level: From now on, whatever the registry's level is.
    /// - Throws: `stale`, `closed`, `forked`.
    public func setLevel(_ level: Registry.Level) throws(RegistryError) {
      try RegistryError.check(Audit.setLevel(handle, level.number))
    }
  }

  extension InterfaceToken: CustomStringConvertible {
    /// The kind and the number, such as `token 0x5c0e12a900000048`.
    public var description: String { "token \(hexadecimal(handle))" }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A closure as a plain C function, whose address is always safe to call.
  ///
  /// It is for C interfaces that take a function and no pointer for it:
  ///
  ///     let compare = try registry.thunk("compare", default: 0) {
  ///       (left: UnsafeRawPointer?, right: UnsafeRawPointer?) -> Int32 in …
  ///     }
  ///     typealias Compare =
  ///       @convention(c) (UnsafeRawPointer?, UnsafeRawPointer?) -> Int32
  ///     qsort(start, count, size, try compare.function(as: Compare.self))
  ///
  /// The closure ends when this object is released. From then on the address,
  /// which C may keep for ever, returns the default that was declared: also
  /// while the closure is being released, on a thread that nobody has seen
  /// before, and after the registry was closed. Late calls are recorded, and
  /// part of the ``explanation``. No address is given out twice.
  ///
  /// A `NULL` for an argument whose pointer type is not optional makes the
  /// function return its default, too.
  public final class Thunk: Sendable {
    /// The thunk as a number, which is the same thunk in C and in Swift.
    public let handle: UInt64
    /// Of the closure.
    private let token: UInt64
    private let address: UInt
    private let functionType: String
    private let sendableType: String

    init(
      _ handle: UInt64, _ token: UInt64, _ address: UnsafeRawPointer,
      _ functionType: String
    ) {
      self.handle = handle
      self.token = token
      self.address = UInt(bitPattern: address)
      self.functionType = "@convention(c) " + functionType
      sendableType = "@convention(c) @Sendable " + functionType
    }

    deinit { _ = end() }

    /// The C function.
    ///
    /// Ask for exactly the types of the closure, which Swift cannot compare when
    /// it compiles: it has no generic C functions. It may be `@Sendable`.
    ///
    /// - Parameter type: A type with `@convention(c)`.
    /// - Returns: Its address never changes, and may be called at any time.
    /// - Throws: `wrongType`, naming what it is, when it is of another type.
    public func function<Function>(
      as type: Function.Type
    ) throws(RegistryError) -> Function {
      let name = String(reflecting: type)
      guard name == functionType || name == sendableType else {
        _ = Process.currentThread()?.fail(.interface) { text in
          text.append("the thunk is of the type ")
          functionType.withCString { text.append($0) }
        }
        throw RegistryError(.interface, about: handle)
      }
      // The text has said that it is a C function, and of which types.
      return unsafeBitCast(address, to: type)
    }

    /// Ends the closure and the thunk; the function returns its default from now
    /// on.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: How long to wait for calls on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      // The thunk first: its account then has all calls that come too late.
      _ = Ending.end(handle, reason: reason.number, waitingUntil: nil)
      return Outcome.ending(token, reason: reason, waiting: timeout)
    }

    /// Whether the closure is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(token) }

    /// The life of the thunk.
    public var explanation: Explanation { Explanation(of: handle) }
  }
#endif

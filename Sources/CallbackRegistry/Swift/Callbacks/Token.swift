// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Names a registered callback, for as long as anyone likes.
  ///
  /// A token is a number that is compared, never followed: it holds nothing,
  /// can be copied, kept and sent anywhere, and using it is always defined.
  /// Once its callback has ended it says so, and it never comes to name
  /// another one.
  ///
  ///     let answer = try token.call(0.5)
  ///     guard case .ended = token.end(waiting: .seconds(1)) else { return }
  ///
  /// Callbacks with several inputs have them as a tuple:
  /// `Token<(String, Int), Bool>` is called by `try token.call("name", 3)`.
  public struct Token<Input, Output>: Hashable, Sendable {
    /// The token as a number, which is the same callback in C and in Swift.
    public let handle: UInt64

    @usableFromInline
    init(registered handle: UInt64) { self.handle = handle }

    /// Takes up a live token from its number, if it is one of these types.
    ///
    /// It is nil for every other number, and for a callback of other types.
    /// Asking counts as no attempt to call.
    ///
    /// - Parameter handle: From a token in Swift or from `cbr_register`.
    public init?(handle: UInt64) {
      guard Entering.matches(handle, tag: Self.typeTag) == .ok else {
        return nil
      }
      self.handle = handle
    }

    /// The number that stands for these types in C during this run.
    ///
    /// A function of the signature
    /// `cbr_status (void *context, const void *input, void *output)` that C
    /// registers under this tag can be called by a token of this type, and C
    /// enters a token of this type by `cbr_enter_typed` with this tag. `input`
    /// points at an `Input`; `output` at room for an `Output`, which is to be
    /// written when the function answers `CBR_OK`. Types that C knows fit:
    /// numbers, C structures, and `Void`, for which nothing is read or written.
    ///
    /// Types are told apart exactly; the number differs from run to run.
    @inlinable
    public static var typeTag: UInt64 {
      metadataAddress(of: Self.self)
    }

    /// Whether the callback is live at this moment.
    ///
    /// This is advice: another thread may end it meanwhile. Only a call is a
    /// guarantee.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the callback: who registered it, where and when, who ended
    /// it and why, and who called too late.
    public var explanation: Explanation { Explanation(of: handle) }

    /// Sets how much this token writes to the history.
    ///
    /// - Parameter level: From now on, whatever the registry's level is.
    /// - Throws: `stale`, `closed`, `forked`.
    public func setLevel(_ level: Registry.Level) throws(RegistryError) {
      try RegistryError.check(Audit.setLevel(handle, level.number))
    }
  }

  extension Token: CustomStringConvertible {
    /// The kind and the number, such as `token 0x5c0e12a900000048`.
    public var description: String { "token \(hexadecimal(handle))" }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// What callbacks belong to: when it is released, they all end.
  ///
  /// Held in a property, it ends what its object registered exactly when the
  /// object's properties are released:
  ///
  ///     final class Downloader {
  ///       let callbacks: Owner
  ///       init(_ registry: Registry) throws(RegistryError) {
  ///         callbacks = try Owner("downloader", in: registry)
  ///       }
  ///     }
  ///
  /// The callbacks have ended when its `deinit` returns, and it waits for
  /// nobody: calls that are running elsewhere run on, with what their closures
  /// captured. Call ``end(reason:waiting:)`` to wait for them.
  public final class Owner: Sendable {
    /// The owner as a number, which is the same owner in C and in Swift.
    public let handle: UInt64
    /// What it belongs to.
    ///
    /// An owner keeps its registry open.
    public let registry: Registry
    /// Whether releasing this object ends the owner.
    private let isMadeHere: Bool

    /// Makes an owner that belongs to a registry.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Where callbacks of this owner are registered.
    /// - Throws: `invalid`, `closed`, `dying`, `outOfMemory`, `limitReached`,
    ///   `forked`.
    public init(
      _ label: String = "owner", in registry: Registry
    ) throws(RegistryError) {
      handle = try Owner.create(label, in: registry.handle, kind: .registry)
      self.registry = registry
      isMadeHere = true
    }

    /// Makes an owner that belongs to another one, and ends with it.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - parent: What it ends with. It is not held.
    /// - Throws: As with a registry, and `stale` when the parent is dead.
    public init(
      _ label: String = "owner", in parent: Owner
    ) throws(RegistryError) {
      handle = try Owner.create(label, in: parent.handle, kind: .owner)
      registry = parent.registry
      isMadeHere = true
    }

    /// Takes up a live owner from its number.
    ///
    /// Releasing this object does not end it.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From an owner in Swift, or from C.
    public init?(handle: UInt64) {
      guard Handle.kind(of: handle) == .owner, Liveness.isLive(handle),
        let registry = Registry(ofHandle: handle)
      else { return nil }
      self.handle = handle
      self.registry = registry
      isMadeHere = false
    }

    deinit {
      guard isMadeHere else { return }
      _ = Ending.end(handle, reason: Reason.ownerDied, waitingUntil: nil)
    }

    /// Ends the owner and all that belongs to it.
    ///
    /// See ``Token/end(reason:waiting:)``.
    ///
    /// - Parameters:
    ///   - reason: Recorded for the owner; what belongs to it has `ownerDied`.
    ///   - timeout: How long to wait for calls on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the owner.
    public var explanation: Explanation { Explanation(of: handle) }

    static func create(
      _ label: String, in handle: UInt64, kind: HandleKind
    ) throws(RegistryError) -> UInt64 {
      var made = Handle.none
      let status = withText(label, "label") { label in
        Owners.create(in: handle, kind: kind, label: label, out: &made)
      }
      try RegistryError.check(status, about: handle)
      return made
    }
  }

  /// An object that has an owner of its own for what is registered to it.
  ///
  /// Callbacks registered to such an object end with the owner, exactly when
  /// the object's properties are released, and not only when the next call
  /// finds the object dead.
  public protocol CallbackOwner: AnyObject {
    /// Used by this object alone.
    var callbacks: Owner { get }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// An ordered list of handlers that are called together.
  ///
  ///     let progress = try Signal<Double>("progress", in: registry)
  ///     let bar = try progress.connect("bar", owner: view) { view, fraction in
  ///       view.show(fraction)
  ///     }
  ///     try progress.emit(0.5)
  ///
  /// A handler is registered like any callback, and ends like one: with its
  /// ``Registration``, with its owner or object, and with the signal. Several
  /// inputs are one tuple, as in ``Token``: `Signal<(String, Int)>` is emitted
  /// by `try signal.emit("name", 3)`, and nothing by `Signal<Void>`.
  ///
  /// Handlers return nothing. To gather what they find, have the input be an
  /// object that they add it to.
  ///
  /// A signal that was made here ends when it is released, and all its
  /// connections with it. It keeps its registry open.
  public final class Signal<Input>: Sendable {
    /// The signal as a number, which is the same signal in C and in Swift.
    public let handle: UInt64
    /// Where handlers are registered.
    public let registry: Registry
    private let isMadeHere: Bool

    /// Makes a signal that belongs to a registry.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Where its handlers are registered.
    /// - Throws: `invalid`, `closed`, `dying`, `outOfMemory`, `limitReached`,
    ///   `forked`.
    public init(
      _ label: String, in registry: Registry
    ) throws(RegistryError) {
      handle = try Self.create(label, in: registry, owner: Handle.none)
      self.registry = registry
      isMadeHere = true
    }

    /// Makes a signal that belongs to an owner, and ends with it.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: What it ends with. It is not held.
    /// - Throws: As with a registry, and `stale` when the owner is dead.
    public init(_ label: String, in owner: Owner) throws(RegistryError) {
      handle = try Self.create(label, in: owner.registry, owner: owner.handle)
      registry = owner.registry
      isMadeHere = true
    }

    /// Takes up a live signal from its number, if it was made in Swift for this
    /// type of input.
    ///
    /// It is nil for every other number. Releasing this object does not end the
    /// signal.
    ///
    /// - Parameter handle: Of a signal that was made in Swift.
    public convenience init?(handle: UInt64) {
      self.init(handle: handle, tag: Self.typeTag)
    }

    /// Takes up a live signal that C has made.
    ///
    /// C does not say what its argument points at, so nothing can check it: that
    /// it is an `Input` is a promise of who calls this, as it is in C. Releasing
    /// this object does not end the signal.
    ///
    /// It is nil for every other number, and for signals made in Swift.
    ///
    /// - Parameter handle: From `cbr_signal_create`.
    public convenience init?(untypedHandle handle: UInt64) {
      self.init(handle: handle, tag: 0)
    }

    private init?(handle: UInt64, tag: UInt64) {
      guard let registry = Registry(ofHandle: handle),
        Signals.matches(handle, tag: tag) == .ok
      else { return nil }
      self.handle = handle
      self.registry = registry
      isMadeHere = false
    }

    deinit {
      guard isMadeHere else { return }
      _ = Ending.end(handle, reason: Reason.ended, waitingUntil: nil)
    }

    /// Ends the signal and all its connections.
    ///
    /// An emission that is on its way calls no further handler. It may be done
    /// anywhere, also inside a handler.
    ///
    /// - Parameters:
    ///   - reason: Recorded for the signal; its connections have `ownerDied`.
    ///   - timeout: How long to wait for handlers on other threads; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the signal.
    public var explanation: Explanation { Explanation(of: handle) }

    /// What stands for the type of the argument.
    private static var typeTag: UInt64 { metadataAddress(of: Self.self) }

    private static func create(
      _ label: String, in registry: Registry, owner: UInt64
    ) throws(RegistryError) -> UInt64 {
      var made = Handle.none
      let status = withText(label, "label") { label in
        Signals.create(
          in: registry.handle, label: label, owner: owner, typeTag: typeTag,
          out: &made)
      }
      try RegistryError.check(status, about: registry.handle)
      return made
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A place for a delegate, which it holds weakly and calls safely.
  ///
  ///     final class Downloader: Sendable {
  ///       let delegate: DelegateSlot<any DownloadDelegate>
  ///       init(_ registry: Registry) throws(RegistryError) {
  ///         delegate = try DelegateSlot("downloader.delegate", in: registry)
  ///       }
  ///     }
  ///     downloader.delegate.value = window
  ///     try downloader.delegate.call { $0.didReceive(bytes) }
  ///
  /// It is what ``Delegate`` projects. It ends when it is released, and the
  /// registration of its delegate with it.
  public final class DelegateSlot<Wrapped: Sendable>: Sendable {
    @usableFromInline let held:
      Result<HeldToken<WeakReference<Wrapped>>, RegistryError>

    /// Makes an empty slot that belongs to a registry.
    ///
    /// - Parameters:
    ///   - label: Its name, and its delegates', in explanations; at most 255
    ///     bytes.
    ///   - registry: Where its delegates are registered.
    /// - Throws: `invalid`, `closed`, `dying`, `outOfMemory`, `limitReached`,
    ///   `forked`.
    public convenience init(
      _ label: String, in registry: Registry
    ) throws(RegistryError) {
      self.init(trying: label, in: registry, owner: Handle.none)
      _ = try held.get()
    }

    /// Makes an empty slot that belongs to an owner, and ends with it.
    ///
    /// - Parameters:
    ///   - label: Its name, and its delegates', in explanations; at most 255
    ///     bytes.
    ///   - owner: What it ends with. It is not held.
    /// - Throws: As with a registry, and `stale` when the owner is dead.
    public convenience init(
      _ label: String, in owner: Owner
    ) throws(RegistryError) {
      self.init(trying: label, in: owner.registry, owner: owner.handle)
      _ = try held.get()
    }

    /// Takes up a live slot from its number.
    ///
    /// Only delegates of this type are called; releasing this object does not end
    /// the slot, but the registration of a delegate that was set by it.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From `cbr_slot_create`, or from a slot in Swift.
    public init?(handle: UInt64) {
      guard let held = HeldToken<WeakReference<Wrapped>>(handle: handle) else {
        return nil
      }
      self.held = .success(held)
      label = "delegate"
    }

    /// Makes a slot that, where there is none, throws that when it is used.
    init(trying label: String, in registry: Registry, owner: UInt64) {
      self.label = label
      held = Result { () throws(RegistryError) in
        try HeldToken(label, in: registry, owner: owner)
      }
    }

    @usableFromInline let label: String

    /// The slot as a number, which is the same slot in C and in Swift; 0 when
    /// it could not be made.
    public var handle: UInt64 { (try? held.get().slot) ?? Handle.none }

    /// The delegate, held strongly by who gets it; nil when there is none, or
    /// its `deinit` has begun.
    ///
    /// Setting it replaces the former one, whose registration ends; nil ends it
    /// alone. What cannot be set leaves the slot as it was: ``failure`` says
    /// why, and ``set(_:level:file:line:)`` throws it.
    public var value: Wrapped? {
      get { current }
      @inlinable set {
        do throws(RegistryError) {
          try set(newValue)
        } catch {
          note(error)
        }
      }
    }

    private var current: Wrapped? {
      guard let present = try? held.get().present else { return nil }
      if let object = present.content?.promoted { return object }
      end(present)
      return nil
    }

    @usableFromInline
    func note(_ error: RegistryError) { (try? held.get())?.failure = error }

    /// Why the last assignment did nothing; nil when it did what it should.
    public var failure: RegistryError? {
      switch held {
      case .success(let held): held.failure
      case .failure(let error): error
      }
    }

    /// Sets the delegate.
    ///
    /// - Parameters:
    ///   - value: An object, which is not held; nil: no delegate.
    ///   - level: How much it writes to the history; nil: as the registry.
    ///   - file: Where it is set, for explanations.
    ///   - line: Likewise.
    /// - Throws: `invalid` when it is no object; `dying` when its `deinit` has
    ///   begun; `stale`, `closed`, `outOfMemory`, `limitReached`, `forked`. The
    ///   slot is as it was.
    @inlinable
    public func set(
      _ value: Wrapped?, level: Registry.Level? = nil,
      file: StaticString = #fileID, line: UInt = #line
    ) throws(RegistryError) {
      guard let value else { return try put(nil, 0) }
      let registry = try held.get().registry
      let traits = CallbackTraits(label, [], level, file, line)
      let reference = try WeakReference(to: value, in: registry)
      let token = try registry.addImplementation(
        traits, reference, as: Wrapped.self)
      try put(reference, token)
      withExtendedLifetime(value) {}
    }

    @usableFromInline
    func put(
      _ reference: WeakReference<Wrapped>?, _ token: UInt64
    ) throws(RegistryError) {
      let held = try held.get()
      try held.set(
        HeldToken.Holding(
          token: token, isOwn: token != Handle.none, content: reference))
      held.failure = nil
    }

    /// Calls the delegate on the calling thread.
    ///
    /// It is held strongly while `body` runs, and no call begins once its
    /// `deinit` has.
    ///
    /// - Parameter body: Gets the delegate. It cannot throw: have it return a
    ///   `Result`.
    /// - Returns: What `body` returns.
    /// - Throws: `unset` when there is no delegate; `stale` when it has died
    ///   or the slot has ended; `closed`, `forked`, `outOfMemory`; `wrongType`
    ///   when C has set a callback of another type.
    @inlinable
    public func call<Result>(
      _ body: (Wrapped) -> Result
    ) throws(RegistryError) -> Result {
      try held.get().withTarget { (target) throws(RegistryError) in
        try InterfaceToken(registered: target).call(body)
      }
    }

    /// Calls the delegate on the calling thread, if there is one.
    ///
    /// An attempt on one that has died is recorded, as if it had thrown.
    ///
    /// - Parameters:
    ///   - otherwise: Is returned when no delegate can be called.
    ///   - body: Gets the delegate.
    /// - Returns: What `body` returns, or the default.
    @inlinable
    public func call<Result>(
      default otherwise: @autoclosure () -> Result,
      _ body: (Wrapped) -> Result
    ) -> Result {
      do throws(RegistryError) {
        return try call(body)
      } catch {
        return otherwise()
      }
    }

    /// Says what to do when the delegate has died: when that
    /// is found, by a call or by reading it, or when its registration is ended.
    ///
    /// It is not called when another takes its place, or when it is cleared by nil.
    /// It is called by the thread that ends it, with no lock held. There is one
    /// such closure at a time.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - file: Where it is set, for explanations.
    ///   - line: Likewise.
    ///   - body: Nil: nothing.
    /// - Throws: As registering does; the former one stays.
    public func onClear(
      _ label: String, file: StaticString = #fileID, line: UInt = #line,
      _ body: (@Sendable () -> Void)?
    ) throws(RegistryError) {
      try held.get().onClear(label, body, file, line)
    }

    /// Ends the slot for good; its delegate's registration ends when it is
    /// released.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: Of no effect yet: nothing runs inside a slot itself.
    /// - Returns: What it has come to.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      switch held {
      case .success(let held):
        Outcome.ending(held.slot, reason: reason, waiting: timeout)
      case .failure(let error): .failed(error)
      }
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the slot.
    public var explanation: Explanation { Explanation(of: handle) }

    /// Its object was found to be dead.
    private func end(_ holding: HeldToken<WeakReference<Wrapped>>.Holding) {
      let reason = Reason.objectDied
      _ = Ending.end(holding.token, reason: reason, waitingUntil: nil)
      guard let owner = holding.content?.endsWithObject, owner != Handle.none
      else { return }
      _ = Ending.end(owner, reason: reason, waitingUntil: nil)
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0
//
// A queue is the engine's (Delivery/Queues.swift). It has a thread of the
// engine's own, or is pumped: by its user, or at another place (QueuePump).

#if !hasFeature(Embedded)
  /// A place where calls are delivered, one at a time.
  ///
  ///     let work = try CallQueue("work", in: registry)
  ///     try work.post(progress, 0.5)
  ///     let answer = try await work.call(question, "why")
  ///
  /// A call that is posted asks for its callback again when its turn comes:
  /// when that has ended meanwhile, the call is dropped. Calls of one callback
  /// are delivered in the order in which they were posted. What was posted is
  /// freed exactly once, whatever becomes of it, and no lock is held then.
  ///
  /// When the queue is released it ends, and what waits in it is dropped. To
  /// have that delivered call ``finish()`` before; a pumped queue has to be
  /// kept until then.
  public final class CallQueue: Sendable {
    /// The queue as a number, which is the same queue in C and in Swift.
    public let handle: UInt64
    private let isMadeHere: Bool
    private let isPumped: Bool
    private let pump: QueuePump?
    /// What its registry is kept open by.
    private let registry: Registry?

    /// Makes a queue that belongs to a registry.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Whose callbacks it delivers. The queue keeps it open.
    ///   - place: Where calls are delivered.
    ///   - limits: How much may wait, and what becomes of more.
    /// - Throws: `invalid`, `dying`, `closed`, `forked`; `outOfMemory` also
    ///   without a thread or a descriptor; `limitReached`.
    public convenience init(
      _ label: String = "queue", in registry: Registry,
      on place: Place = .thread, limits: Limits = Limits()
    ) throws(RegistryError) {
      try self.init(label, registry, Handle.none, place, limits)
    }

    /// Makes a queue that belongs to an owner, and ends with it.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: What it ends with. It is not held; its registry is.
    ///   - place: Where calls are delivered.
    ///   - limits: How much may wait, and what becomes of more.
    /// - Throws: As with a registry, and `stale` when the owner is dead.
    public convenience init(
      _ label: String = "queue", in owner: Owner,
      on place: Place = .thread, limits: Limits = Limits()
    ) throws(RegistryError) {
      try self.init(label, owner.registry, owner.handle, place, limits)
    }

    private init(
      _ label: String, _ registry: Registry, _ owner: UInt64, _ place: Place,
      _ limits: Limits
    ) throws(RegistryError) {
      var options = QueueOptions()
      options.owner = owner
      options.hasThread = place.hasThread
      limits.apply(to: &options)
      var made = Handle.none
      let status = withText(label, "label") { label in
        options.label = label
        return Queues.create(options, in: registry.handle, out: &made)
      }
      try RegistryError.check(status, about: registry.handle)
      if case .elsewhere(let submit) = place.kind {
        pump = QueuePump(made, submit)
        guard pump != nil else {
          _ = Ending.end(made, reason: Reason.ended, waitingUntil: nil)
          throw RegistryError(.noMemory)
        }
      } else {
        pump = nil
      }
      handle = made
      isMadeHere = true
      isPumped = place.isPumped
      self.registry = registry
    }

    /// Takes up a live queue from its number.
    ///
    /// Releasing this object does not end it.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From a queue in Swift, or from C.
    public init?(handle: UInt64) {
      guard Handle.kind(of: handle) == .queue, Liveness.isLive(handle) else {
        return nil
      }
      self.handle = handle
      isMadeHere = false
      isPumped = false
      pump = nil
      registry = nil
    }

    deinit {
      guard isMadeHere else { return }
      // One that finishes ends by itself, if anybody still delivers there.
      if !isPumped, Queues.finish(handle) == .already { return }
      _ = Ending.end(handle, reason: Reason.ended, waitingUntil: nil)
      pump?.cancel()
    }

    func knownRegistry() throws(RegistryError) -> Registry {
      if let registry { return registry }
      guard let registry = Registry(ofHandle: handle) else {
        throw RegistryError(.closed, about: handle)
      }
      return registry
    }

    /// Ends the queue: what waits in it is dropped.
    ///
    /// Who waits for room in it throws `closed`.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and part of every later explanation.
    ///   - timeout: How long to wait for the call that is being delivered, and
    ///     for the queue's thread; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .ended, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }

    /// Ends the queue when all that waits in it has been delivered.
    ///
    /// From now on posts throw `closed`.
    ///
    /// - Returns: ``Outcome/ended`` when nothing waited; ``Outcome/pending``
    ///   when it will end; ``Outcome/deferred`` when it will end after the call
    ///   that the calling thread is inside.
    @discardableResult
    public func finish() -> Outcome {
      let status = Queues.finish(handle)
      return Outcome(status == .stale ? .already : status, of: handle)
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the queue.
    public var explanation: Explanation { Explanation(of: handle) }
  }
#endif

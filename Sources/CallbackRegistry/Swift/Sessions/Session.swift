// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Work with one delegate, in pieces that are tasks, and with an end.
  ///
  /// Whoever does the work says what happens by ``SessionTask/respond(_:)``,
  /// ``SessionTask/send(_:)``, ``SessionTask/finish()`` and
  /// ``SessionTask/fail(_:)``; the delegate is told.
  ///
  ///     let session = try Session("downloads", in: registry, delegate: window)
  ///     let task = try session.begin("index.html")
  ///     try task.send(bytes)
  ///     task.finish()
  ///     session.finish()
  ///
  /// The session holds its delegate until that has been told that the session
  /// became invalid, which is told exactly once, after everything else.
  /// Releasing a session finishes it, and cancels the tasks that it has then;
  /// one that was told to finish before lets them come to their end.
  public final class Session: Sendable {
    /// The session as a number, which is the same session in C and in Swift.
    public let handle: UInt64
    private let isMadeHere: Bool
    /// Whether its tasks have ``SessionTask/events``.
    let isStreaming: Bool
    /// What its registry is kept open by.
    private let registry: Registry?

    /// Makes a session that belongs to a registry.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - registry: Which the session keeps open.
    ///   - delegate: Is told what happens, and held until it was told of the
    ///     end. Nil: see ``SessionTask/events``.
    ///   - queue: Where it is told, besides that queue's calls and outside of
    ///     its limits; held as long as the delegate. When it has ended,
    ///     the session is cancelled at its next event, and nobody is told any
    ///     more. Nil: on the thread that
    ///     makes an event, or on one that is telling another at that moment.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    /// - Throws: `invalid`, `foreign`, `dying`, `closed`, `forked`,
    ///   `outOfMemory`, `limitReached`; `stale` when the queue is dead. Then
    ///   the delegate is not held, and told of nothing.
    public convenience init(
      _ label: String = "session", in registry: Registry,
      delegate: (any SessionDelegate)? = nil, queue: CallQueue? = nil,
      file: StaticString = #fileID, line: UInt = #line
    ) throws(RegistryError) {
      try self.init(
        CallbackTraits(label, [], nil, file, line), registry, Handle.none,
        DelegateBox(delegate, queue))
    }

    /// Makes a session that belongs to an owner: when that ends, the session
    /// is cancelled.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: It is not held; its registry is.
    ///   - delegate: As with a registry.
    ///   - queue: As with a registry.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    /// - Throws: As with a registry, and `stale` when the owner is dead.
    public convenience init(
      _ label: String = "session", in owner: Owner,
      delegate: (any SessionDelegate)? = nil, queue: CallQueue? = nil,
      file: StaticString = #fileID, line: UInt = #line
    ) throws(RegistryError) {
      try self.init(
        CallbackTraits(label, [], nil, file, line), owner.registry,
        owner.handle, DelegateBox(delegate, queue))
    }

    private init(
      _ traits: CallbackTraits, _ registry: Registry, _ owner: UInt64,
      _ box: DelegateBox
    ) throws(RegistryError) {
      let delegate = try box.register(traits, in: registry.handle)
      var request = SessionRequest()
      request.delegate = delegate
      request.ownsDelegate = true
      request.owner = owner
      request.queue = box.queue?.handle ?? Handle.none
      request.file = traits.file.filePath
      request.line = UInt32(clamping: traits.line)
      var made = Handle.none
      let status = withText(traits.label, "label") { label in
        request.label = label
        return Sessions.create(in: registry.handle, request, out: &made)
      }
      guard status == .ok else {
        let error = RegistryError(status, about: registry.handle)
        _ = Ending.end(delegate, reason: Reason.ended, waitingUntil: nil)
        throw error
      }
      handle = made
      isMadeHere = true
      isStreaming = box.isStreaming
      self.registry = registry
    }

    /// Takes up a live session from its number.
    ///
    /// Releasing this object does not end it.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From a session in Swift, or from C.
    public convenience init?(handle: UInt64) {
      guard Handle.kind(of: handle) == .session, Liveness.isLive(handle)
      else { return nil }
      self.init(known: handle)
    }

    init(known handle: UInt64) {
      self.handle = handle
      isMadeHere = false
      isStreaming = false
      registry = nil
    }

    deinit {
      guard isMadeHere, Sessions.finish(handle) == .ok else { return }
      _ = Sessions.cancel(handle)
    }

    /// Ends the session when its tasks are complete: no new ones begin.
    ///
    /// - Returns: ``Outcome/ended`` when this began its end;
    ///   ``Outcome/already(_:)`` when something had.
    @discardableResult
    public func finish() -> Outcome {
      Outcome(Sessions.finish(handle), of: handle)
    }

    /// Cancels the session's tasks, and ends it.
    ///
    /// One that was told to finish can still be cancelled.
    ///
    /// - Returns: ``Outcome/ended`` when this cancelled it;
    ///   ``Outcome/already(_:)`` when it was cancelled before, or is gone.
    @discardableResult
    public func cancel() -> Outcome {
      Outcome(Sessions.cancel(handle), of: handle)
    }

    /// Cancels the session for a reason, and can wait until its delegate was
    /// told of its end.
    ///
    /// - Parameters:
    ///   - reason: Recorded, and told to the delegate.
    ///   - timeout: How long to wait; nil: not.
    /// - Returns: What is still running.
    public func end(
      reason: EndReason = .cancelled, waiting timeout: Duration? = nil
    ) -> Outcome {
      Outcome.ending(handle, reason: reason, waiting: timeout)
    }

    /// Whether it is live at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the session.
    public var explanation: Explanation { Explanation(of: handle) }
  }
#endif

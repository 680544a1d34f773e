// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension CallQueue {
    /// Posts a call, to be delivered when its turn comes.
    ///
    /// What the callback gives back is dropped.
    ///
    /// - Parameters:
    ///   - token: A live callback of the same registry.
    ///   - input: Passed to the closure, and freed when the call has been
    ///     delivered or dropped, on the thread that did so.
    ///   - bytes: What it counts for the queue's limit; nil: the size of its
    ///     type, without what that refers to.
    /// - Throws: `stale` when the callback or the queue is dead; `full`,
    ///   `timedOut` as ``Overflow`` says; `closed` when the queue is finishing,
    ///   or ended while this waited for room; `wouldDeadlock` when it is full
    ///   and waits for the calling thread; `invalid` when the input alone is
    ///   larger than all that may wait; `consumed`, `foreign`, `outOfMemory`,
    ///   `forked`. Then the input is released.
    @inlinable
    public func post<Input: Sendable, Output>(
      _ token: Token<Input, Output>, _ input: Input, bytes: Int? = nil
    ) throws(RegistryError) {
      try post(
        PostedInput<Input, Output>(input), to: token.handle,
        tag: Token<Input, Output>.typeTag,
        bytes: bytes ?? MemoryLayout<Input>.size)
    }

    /// Posts a call of several inputs, or of none.
    ///
    /// - Parameters:
    ///   - token: A live callback of the same registry.
    ///   - part: The inputs, one by one.
    /// - Throws: As with one input.
    @inlinable
    public func post<each Part: Sendable, Output>(
      _ token: Token<(repeat each Part), Output>, _ part: repeat each Part
    ) throws(RegistryError) {
      try post(
        PostedInput<(repeat each Part), Output>((repeat each part)),
        to: token.handle, tag: Token<(repeat each Part), Output>.typeTag,
        bytes: MemoryLayout<(repeat each Part)>.size)
    }

    /// Posts a closure, which runs once or, when the queue drops it, not at all.
    ///
    /// It is a callback of its own meanwhile, and found as such by
    /// explanations, ``Registry/live()`` and the history.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it before its turn; nil: the registry does.
    ///   - file: Where it is posted, for explanations.
    ///   - line: Likewise.
    ///   - body: What is to be called, once.
    /// - Throws: As registering does, and as posting a call. Then the closure
    ///   is released.
    public func post(
      _ label: String, owner: Owner? = nil, file: StaticString = #fileID,
      line: UInt = #line, _ body: @escaping @Sendable () -> Void
    ) throws(RegistryError) {
      let registration = try knownRegistry().register(
        label, owner: owner, options: .oneShot, file: file, line: line, body)
      let token = registration.token
      // It ends with its message: when it has not run by then, it never will.
      try post(
        PostedClosure(registration), to: token.handle,
        tag: Token<Void, Void>.typeTag, bytes: 0)
    }

    @usableFromInline
    func post(
      _ payload: PostedCall, to token: UInt64, tag: UInt64, bytes: Int
    ) throws(RegistryError) {
      let retained = Unmanaged.passRetained(payload)
      var request = PostRequest()
      request.message.token = token
      request.message.typeTag = tag
      request.message.payload = retained.toOpaque()
      request.message.bytes = UInt64(max(bytes, 0))
      request.message.invoke = PostedCall.invoke
      request.message.free = PostedCall.free
      let status = Queues.post(request, to: handle)
      guard status != .ok else { return }
      let error = RegistryError(status, about: handle)
      // Nothing was taken (G6).
      retained.release()
      throw error
    }
  }

  /// A closure that was posted by itself.
  private final class PostedClosure: PostedCall {
    private let registration: Registration<Void, Void>

    init(_ registration: consuming Registration<Void, Void>) {
      self.registration = registration
    }

    override func deliver(
      _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?
    ) {
      var output: Void?
      _ = callFunction(function, context, (), &output)
    }
  }
#endif

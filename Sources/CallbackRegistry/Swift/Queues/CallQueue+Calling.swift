// SPDX-License-Identifier: Apache-2.0
//
// A call that is awaited is a message whose payload gives the answer, once:
// when it has been delivered, or when it is freed without that. A task that is
// cancelled claims it before it is delivered, or else has the output.

#if !hasFeature(Embedded)
  import Synchronization

  extension CallQueue {
    /// Posts a call, and awaits what its callback gives back.
    ///
    /// When the task is cancelled before the call begins, it never does; a call
    /// that has begun is awaited.
    ///
    /// - Parameters:
    ///   - token: A live callback of the same registry.
    ///   - input: Passed to the closure.
    ///   - bytes: What it counts for the queue's limit; nil: the size of its
    ///     type.
    /// - Returns: What the closure returns.
    /// - Throws: As posting does; `cancelled` with the task; `stale` when the
    ///   callback ended, `closed` when the queue ended before its turn; `full`
    ///   when another call took its place; `wrongThread` when the callback
    ///   cannot be called there; `failed` when it is a C function that
    ///   answered an error.
    public nonisolated(nonsending) func call<Input: Sendable, Output: Sendable>(
      _ token: Token<Input, Output>, _ input: Input, bytes: Int? = nil
    ) async throws(RegistryError) -> Output {
      let pending = PendingCall<Output>(of: token.handle, on: handle)
      try post(
        AwaitedInput(input, pending), to: token.handle,
        tag: Token<Input, Output>.typeTag,
        bytes: bytes ?? MemoryLayout<Input>.size)
      return try await pending.output()
    }

    /// Posts a call of several inputs, or of none, and awaits what its callback
    /// gives back.
    ///
    /// - Parameters:
    ///   - token: A live callback of the same registry.
    ///   - part: The inputs, one by one.
    /// - Returns: What the closure returns.
    /// - Throws: As with one input.
    public nonisolated(nonsending) func call<
      each Part: Sendable, Output: Sendable
    >(
      _ token: Token<(repeat each Part), Output>, _ part: repeat each Part
    ) async throws(RegistryError) -> Output {
      let pending = PendingCall<Output>(of: token.handle, on: handle)
      try post(
        AwaitedInput<(repeat each Part), Output>((repeat each part), pending),
        to: token.handle, tag: Token<(repeat each Part), Output>.typeTag,
        bytes: MemoryLayout<(repeat each Part)>.size)
      return try await pending.output()
    }
  }

  /// A call that a task awaits.
  private final class PendingCall<Output: Sendable>: Sendable {
    private let token: UInt64
    private let queue: UInt64
    private let answer = Answer<Result<Output, RegistryError>>()
    /// Whoever sets it gives the answer.
    private let isClaimed = Atomic<Bool>(false)

    init(of token: UInt64, on queue: UInt64) {
      self.token = token
      self.queue = queue
    }

    private func claim() -> Bool {
      !isClaimed.exchange(true, ordering: .acquiringAndReleasing)
    }

    nonisolated(nonsending) func output() async throws(RegistryError) -> Output
    {
      let answer = answer
      let result = await withTaskCancellationHandler {
        await answer.taken()
      } onCancel: {
        cancel()
      }
      return try result.get()
    }

    private func cancel() {
      guard claim() else { return }
      let explanation = Explanation(
        "the task that waited for it was cancelled", about: token)
      answer.give(.failure(.cancelled(explanation)))
    }

    /// Gives what `call` comes to, unless the task was cancelled before.
    func deliver(_ call: (inout Output?) -> Int32) {
      guard claim() else { return }
      var output: Output?
      let status = call(&output)
      if status == 0, let output { return answer.give(.success(output)) }
      let known = Status(rawValue: status) ?? .user
      _ = ThreadPointer.current?.fail(known, about: token)
      answer.give(.failure(.last(status, about: token)))
    }

    /// It will not be delivered any more.
    func drop() {
      guard claim() else { return }
      answer.give(.failure(whyDropped))
    }

    private var whyDropped: RegistryError {
      if !Liveness.isLive(token) {
        return .stale(Explanation("it ended before its turn", about: token))
      }
      if !Liveness.isLive(queue) {
        return .closed(Explanation("the queue ended first", about: queue))
      }
      let slot = Table.slot(of: token)
      let mode = slot?.pointee.mode.load(ordering: .relaxed) ?? 0
      if mode & Mode.threadBound != 0 {
        return .wrongThread(
          Explanation("it is bound to another thread", about: token))
      }
      return .full(Explanation("another call took its place", about: token))
    }
  }

  private final class AwaitedInput<Input: Sendable, Output: Sendable>:
    PostedCall
  {
    private let input: Input
    private let pending: PendingCall<Output>

    init(_ input: Input, _ pending: PendingCall<Output>) {
      self.input = input
      self.pending = pending
    }

    deinit { pending.drop() }

    override func deliver(
      _ function: UnsafeRawPointer, _ context: UnsafeMutableRawPointer?
    ) {
      pending.deliver { output in
        callFunction(function, context, input, &output)
      }
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Registry {
    /// Starts something that answers later, and awaits its answer.
    ///
    ///     let image = try await registry.completion("load") { completion in
    ///       oldLoader.load { data in try? completion.succeed(data) }
    ///     }
    ///
    /// When the task is cancelled the completion ends, and this throws; what
    /// was started goes on, and its answer throws `stale` there.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - owner: Ends it; nil: the registry does.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    ///   - start: Starts it, and gives it the completion, which is held by
    ///     nobody else.
    /// - Returns: What was sent.
    /// - Throws: As making a ``Completion`` does; `neverCalled` when it was
    ///   released, or its owner or registry ended, before it was called;
    ///   `cancelled` with the task; `thrown` for an error that was sent;
    ///   `failed` for one that C sent.
    public nonisolated(nonsending) func completion<Value: Sendable>(
      _ label: String, owner: Owner? = nil, file: StaticString = #fileID,
      line: UInt = #line, _ start: (Completion<Value>) -> Void
    ) async throws(RegistryError) -> Value {
      let awaited = try begin(label, owner, file, line) {
        (completion: Completion<Value>) throws(RegistryError) in
        start(completion)
      }
      return try await awaited.value()
    }

    /// Starts something that answers later, and awaits its answer, for a time.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - timeout: From now to the answer.
    ///   - queue: Live, of this registry: its clock.
    ///   - owner: Ends it; nil: the registry does.
    ///   - file: Where it is made, for explanations.
    ///   - line: Likewise.
    ///   - start: Starts it, and gives it the completion.
    /// - Returns: What was sent.
    /// - Throws: As without a timeout, and `timedOut`; as
    ///   ``Completion/setTimeout(_:on:)``, and then nothing was started.
    public nonisolated(nonsending) func completion<Value: Sendable>(
      _ label: String, within timeout: Duration, on queue: CallQueue,
      owner: Owner? = nil, file: StaticString = #fileID, line: UInt = #line,
      _ start: (Completion<Value>) -> Void
    ) async throws(RegistryError) -> Value {
      let awaited = try begin(label, owner, file, line) {
        (completion: Completion<Value>) throws(RegistryError) in
        try completion.setTimeout(timeout, on: queue)
        start(completion)
      }
      return try await awaited.value()
    }

    /// Nobody but who was given the completion holds it when this returns.
    private func begin<Value: Sendable>(
      _ label: String, _ owner: Owner?, _ file: StaticString, _ line: UInt,
      _ start: (Completion<Value>) throws(RegistryError) -> Void
    ) throws(RegistryError) -> AwaitedCompletion<Value> {
      let answer = Answer<Result<Value, RegistryError>>()
      let completion = try Completion<Value>(
        label, in: self, owner: owner, file: file, line: line
      ) { answer.give($0) }
      try start(completion)
      return AwaitedCompletion(handle: completion.handle, answer: answer)
    }
  }

  private struct AwaitedCompletion<Value: Sendable>: Sendable {
    let handle: UInt64
    let answer: Answer<Result<Value, RegistryError>>

    nonisolated(nonsending) func value() async throws(RegistryError) -> Value {
      let (handle, answer) = (handle, answer)
      let result = await withTaskCancellationHandler {
        await answer.taken()
      } onCancel: {
        _ = Ending.end(handle, reason: Reason.cancelled, waitingUntil: nil)
      }
      return try result.get()
    }
  }
#endif

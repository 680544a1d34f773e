// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// The answer that a task with a response waits for; to be sent once.
  ///
  /// When it is released unsent, the task goes on at once as it was begun to,
  /// unanswered; and it is found so in the history.
  public final class Reply: Sendable {
    /// How a task goes on.
    public enum Answer: Sendable, Hashable {
      /// Its data flows.
      case allow
      /// It is cancelled.
      case cancel
    }

    /// The reply as a number, which is the same reply in C and in Swift.
    public let handle: UInt64

    init(_ handle: UInt64) { self.handle = handle }

    deinit {
      _ = Ending.end(handle, reason: Reason.ended, waitingUntil: nil)
    }

    /// Lets the task's data flow.
    ///
    /// - Throws: As ``send(_:)``.
    public func allow() throws(RegistryError) { try send(.allow) }

    /// Cancels the task.
    ///
    /// - Throws: As ``send(_:)``.
    public func cancel() throws(RegistryError) { try send(.cancel) }

    /// Says how the task goes on.
    ///
    /// - Parameter answer: Counts if it is the first.
    /// - Throws: `consumed` when it was sent before, by whom and when is in the
    ///   explanation; `stale` when its time was over, or its task is dead;
    ///   `closed` when the task was cancelled; `forked`.
    public func send(_ answer: Answer) throws(RegistryError) {
      let status = Replies.send(
        handle, answer.disposition, successor: Handle.none)
      try RegistryError.check(status, about: handle)
    }

    /// Whether it can still be sent, at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the reply.
    public var explanation: Explanation { Explanation(of: handle) }
  }

  extension Reply.Answer {
    var disposition: Int32 {
      switch self {
      case .allow: Disposition.allow
      case .cancel: Disposition.cancel
      }
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Is told what happens in a session.
  ///
  /// Every method can be left out. Events of one session are told one at a
  /// time; no lock is held, so a delegate may do anything, with its own task
  /// and session, too.
  ///
  /// Closing the registry ends the delegate like everything else: it is told of
  /// nothing any more, and the history says of what. End the session before.
  public protocol SessionDelegate: AnyObject, Sendable {
    /// A task has a response, and wants to know how to go on.
    ///
    /// Until the reply is sent, here or later and on any thread, its data is
    /// held back. Left out: it is allowed.
    ///
    /// - Parameters:
    ///   - task: Whose response it is.
    ///   - response: What ``SessionTask/respond(_:)`` was given.
    ///   - reply: To be sent once. When it is released before that, the task
    ///     goes on as it was begun to, unanswered.
    func task(
      _ task: SessionTask, didReceiveResponse response: [UInt8], reply: Reply)

    /// A task has data. Left out: it is dropped, or only gathered.
    ///
    /// - Parameters:
    ///   - task: Whose data it is.
    ///   - data: One piece of it.
    func task(_ task: SessionTask, didReceiveData data: [UInt8])

    /// A task has had data, which its delegate was told of.
    ///
    /// It is not told of tasks that C has begun.
    ///
    /// - Parameters:
    ///   - task: Whose data it is.
    ///   - progress: All of it so far.
    func task(_ task: SessionTask, didProgress progress: SessionTask.Progress)

    /// A task is complete: told once, after all else that is told of it.
    ///
    /// - Parameters:
    ///   - task: Dead when this has returned.
    ///   - end: How it came to its end.
    func task(_ task: SessionTask, didComplete end: SessionTask.End)

    /// The session has ended: told once, after all else.
    ///
    /// When this has returned the session no longer holds its delegate.
    ///
    /// - Parameters:
    ///   - session: The session, dead when this has returned.
    ///   - reason: `ended` when it was finished, `cancelled` when it was
    ///     cancelled, else the reason of its end.
    func session(_ session: Session, didBecomeInvalid reason: EndReason)
  }

  extension SessionDelegate {
    /// Allows the task to go on.
    ///
    /// - Parameters:
    ///   - task: Whose response it is.
    ///   - response: Not looked at.
    ///   - reply: Is sent.
    public func task(
      _ task: SessionTask, didReceiveResponse response: [UInt8], reply: Reply
    ) {
      // Cancelled meanwhile: then there is nothing to allow.
      try? reply.allow()
    }

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - task: Whose data it is.
    ///   - data: Dropped.
    public func task(_ task: SessionTask, didReceiveData data: [UInt8]) {}

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - task: Whose data it is.
    ///   - progress: Not looked at.
    public func task(
      _ task: SessionTask, didProgress progress: SessionTask.Progress
    ) {}

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - task: Which is complete.
    ///   - end: Not looked at.
    public func task(_ task: SessionTask, didComplete end: SessionTask.End) {}

    /// Does nothing.
    ///
    /// - Parameters:
    ///   - session: Which has ended.
    ///   - reason: Not looked at.
    public func session(
      _ session: Session, didBecomeInvalid reason: EndReason
    ) {}
  }
#endif

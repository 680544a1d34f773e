// SPDX-License-Identifier: Apache-2.0
//
// A session without a delegate of its own has `EventStreams` for one, which
// gives each event to its task's stream.

#if !hasFeature(Embedded)
  extension SessionTask {
    /// What is told of a task, as an element of ``SessionTask/events``.
    public enum Event: Sendable {
      /// It has a response, and waits for the reply, as a delegate would be
      /// asked for it.
      case response([UInt8], Reply)
      /// It has data: one piece of it.
      case data([UInt8])
      /// It is complete. This comes once, last.
      case complete(End)
    }

    /// Where a task's events are kept until they are awaited.
    struct Stream: Sendable {
      let events: AsyncStream<Event>
      let continuation: AsyncStream<Event>.Continuation

      init() {
        (events, continuation) = AsyncStream.makeStream(of: Event.self)
      }

      /// Tells of the end of a task that is gone, where that was not told.
      ///
      /// Its registry was closed first: who awaits it would wait for ever.
      func endUntold() {
        continuation.yield(.complete(.delegateGone))
        continuation.finish()
      }
    }

    /// What happens to a task of a session that was made without a delegate, to
    /// be awaited by one task; of others nothing.
    ///
    ///     let session = try Session("downloads", in: registry)
    ///     for await event in try session.begin("index.html").events {
    ///       switch event {
    ///       case .response(_, let reply): try reply.allow()
    ///       case .data(let bytes): print(bytes.count)
    ///       case .complete(let end): print(end)
    ///       }
    ///     }
    ///
    /// What has not been awaited yet waits in memory, without a limit. When the
    /// task that awaits is cancelled, so is this one. When the registry is
    /// closed first, the completion is ``End/delegateGone``.
    public var events: AsyncStream<Event> {
      if let stream { return stream.events }
      return AsyncStream { $0.finish() }
    }
  }

  /// The delegate of a session that has none of its own.
  final class EventStreams: SessionDelegate {
    func task(
      _ task: SessionTask, didReceiveResponse response: [UInt8], reply: Reply
    ) {
      guard let stream = task.stream else {
        // Begun by C: nobody will be asked.
        try? reply.allow()
        return
      }
      stream.continuation.yield(.response(response, reply))
    }

    func task(_ task: SessionTask, didReceiveData data: [UInt8]) {
      task.stream?.continuation.yield(.data(data))
    }

    func task(_ task: SessionTask, didComplete end: SessionTask.End) {
      task.stream?.continuation.yield(.complete(end))
      task.stream?.continuation.finish()
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Session {
    /// Begins a task.
    ///
    /// Timeouts are by the session's queue, which it then must have: who
    /// delivers there does what is due.
    ///
    /// - Parameters:
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - expectedBytes: How much data it will have, for
    ///     ``SessionTask/Progress``; nil: nobody knows.
    ///   - gathers: Whether its data is kept for ``SessionTask/gathered``.
    ///   - waitingLimit: Bytes of data that may be held back, or wait to be
    ///     told.
    ///   - timeout: From now to its completion; nil: none.
    ///   - replyTimeout: From its response to the reply; nil: none.
    ///   - unanswered: How it goes on when that is over, or the reply was
    ///     released unsent.
    ///   - file: Where it is begun, for explanations.
    ///   - line: Likewise.
    /// - Returns: The task, for whoever does the work.
    /// - Throws: `closed` when the session has begun to end, or its queue has
    ///   ended; `invalid` also for a timeout without a queue; `outOfMemory`,
    ///   `limitReached`, `forked`.
    public func begin(
      _ label: String = "task", expecting expectedBytes: Int? = nil,
      gathers: Bool = false, waitingLimit: Int = 1 << 20,
      timeout: Duration? = nil, replyTimeout: Duration? = nil,
      unanswered: Reply.Answer = .cancel, file: StaticString = #fileID,
      line: UInt = #line
    ) throws(RegistryError) -> SessionTask {
      guard let errors = PassedErrors() else { throw RegistryError(.noMemory) }
      let task = SessionTask(
        errors, expecting: expectedBytes, isStreaming: isStreaming)
      var request = TaskRequest()
      request.isGathering = gathers
      request.waitingLimit = max(waitingLimit, 1)
      request.timeoutNanoseconds = Self.nanoseconds(timeout)
      request.replyTimeoutNanoseconds = Self.nanoseconds(replyTimeout)
      request.unanswered = unanswered.disposition
      request.file = file.filePath
      request.line = UInt32(clamping: line)
      let context = Unmanaged.passRetained(task)
      request.context = context.toOpaque()
      request.destroy = SessionTask.destroy
      var begun = Handle.none
      let status = withText(label, "label") { label in
        request.label = label
        return Tasks.begin(in: handle, request, out: &begun)
      }
      guard status == .ok else {
        let error = RegistryError(status, about: handle)
        // Nothing was taken (G6).
        context.release()
        throw error
      }
      task.note(begun)
      return task
    }

    /// Zero would be none at all.
    private static func nanoseconds(_ timeout: Duration?) -> UInt64 {
      timeout.map { max($0.boundedNanoseconds, 1) } ?? 0
    }
  }
#endif

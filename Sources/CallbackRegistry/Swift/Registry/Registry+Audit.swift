// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Registry {
    /// How much the registry writes to the history at this moment.
    ///
    /// - Throws: `closed`, `forked`.
    public var level: Level {
      get throws(RegistryError) {
        let (status, level) = Audit.level(of: handle)
        guard let level else { throw RegistryError(status, about: handle) }
        return Level(level)
      }
    }

    /// Sets how much the registry writes from now on, with every callback in
    /// it that has no level of its own.
    ///
    /// - Parameter level: The new level.
    /// - Throws: `closed`, `forked`.
    public func setLevel(_ level: Level) throws(RegistryError) {
      try RegistryError.check(
        Audit.setLevel(handle, level.number), about: handle)
    }

    /// Adds a remark to the history.
    ///
    /// - Parameter text: At most 4095 bytes.
    /// - Throws: `invalid`; `history` when it could not be kept; `closed`,
    ///   `forked`.
    public func note(_ text: String) throws(RegistryError) {
      try note(text, about: Handle.none)
    }

    /// Adds a remark about a callback, live or dead, to the history.
    ///
    /// - Parameters:
    ///   - text: At most 4095 bytes.
    ///   - token: Of this registry.
    /// - Throws: As without one, and `foreign`.
    public func note<Input, Output>(
      _ text: String, about token: Token<Input, Output>
    ) throws(RegistryError) {
      try note(text, about: token.handle)
    }

    private func note(
      _ text: String, about token: UInt64
    ) throws(RegistryError) {
      let status = withText(text, "text") { text in
        Audit.note(in: handle, about: token, text)
      }
      try RegistryError.check(status, about: handle)
    }

    /// How safe events are to be when flushing has returned.
    public enum FlushTarget: Sendable, Hashable {
      /// In the recorder.
      case recorder
      /// Committed to the database.
      case database
      /// Committed and synced.
      case disk
    }

    /// Waits until all that has happened before is kept.
    ///
    /// It may be called inside callbacks and exit handlers.
    ///
    /// - Parameters:
    ///   - target: How safe it is to be.
    ///   - timeout: How long to wait.
    /// - Returns: How many events are kept there.
    /// - Throws: `timedOut`; `history` when it cannot be written; `closed`,
    ///   `forked`.
    @discardableResult
    public func flush(
      to target: FlushTarget = .database,
      waiting timeout: Duration = .seconds(10)
    ) throws(RegistryError) -> UInt64 {
      var kept: UInt64 = 0
      let status = Audit.flush(
        handle, level: target.number,
        until: Deadline.after(timeout.boundedNanoseconds), achieved: &kept)
      try RegistryError.check(status, about: handle)
      return kept
    }
  }

  extension Registry.FlushTarget {
    fileprivate var number: UInt32 {
      switch self {
      case .recorder: 1
      case .database: 2
      case .disk: 3
      }
    }
  }
#endif

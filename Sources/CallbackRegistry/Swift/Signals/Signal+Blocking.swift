// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  extension Signal {
    /// Keeps all handlers from being called, until the signal has been unblocked
    /// as often as blocked.
    ///
    /// Handlers that are running run on.
    ///
    /// - Throws: `stale`, `closed`, `forked`, `limitReached`.
    public func block() throws(RegistryError) {
      try RegistryError.check(Signals.block(handle), about: handle)
    }

    /// Takes back one ``block()``.
    ///
    /// - Throws: As that, and `invalid` when it is not blocked.
    public func unblock() throws(RegistryError) {
      try RegistryError.check(Signals.unblock(handle), about: handle)
    }

    /// Keeps one handler from being called, until it has been unblocked as often
    /// as blocked.
    ///
    /// - Parameter connection: Of any signal of this input.
    /// - Throws: `stale`, `closed`, `forked`, `limitReached`; `wrongKind` when
    ///   it is no connection.
    public func block(
      _ connection: Token<Input, Void>
    ) throws(RegistryError) {
      let status = Signals.block(connection.handle)
      try RegistryError.check(status, about: connection.handle)
    }

    /// Takes back one ``block(_:)``.
    ///
    /// - Parameter connection: Of any signal of this input.
    /// - Throws: As that, and `invalid` when it is not blocked.
    public func unblock(
      _ connection: Token<Input, Void>
    ) throws(RegistryError) {
      let status = Signals.unblock(connection.handle)
      try RegistryError.check(status, about: connection.handle)
    }

    /// Keeps all handlers from being called while something runs.
    ///
    /// - Parameter body: Is run in any case where this does not throw.
    /// - Returns: What `body` returns.
    /// - Throws: What ``block()`` throws, or `body` does.
    public func withBlocked<Result>(
      _ body: () throws(RegistryError) -> Result
    ) throws(RegistryError) -> Result {
      try block()
      // It may have ended meanwhile.
      defer { _ = Signals.unblock(handle) }
      return try body()
    }

    /// Keeps one handler from being called while something runs.
    ///
    /// - Parameters:
    ///   - connection: Of any signal of this input.
    ///   - body: Is run in any case where this does not throw.
    /// - Returns: What `body` returns.
    /// - Throws: What ``block(_:)`` throws, or `body` does.
    public func withBlocked<Result>(
      _ connection: Token<Input, Void>,
      _ body: () throws(RegistryError) -> Result
    ) throws(RegistryError) -> Result {
      try block(connection)
      defer { _ = Signals.unblock(connection.handle) }
      return try body()
    }
  }
#endif

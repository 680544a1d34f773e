// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// A history, to be read as typed rows: that of an open registry, or a file
  /// that a program has left.
  ///
  ///     let history = try registry.auditHistory()
  ///     for try await refusal in history.refusals(about: token.handle) {
  ///       print(refusal.thread, refusal.status, refusal.count)
  ///     }
  ///
  /// The views of the file, for `sqlite3`, tell more; these are the rows that
  /// programs want: what happened (``events(about:after:)``), what lived
  /// (``lives(about:label:)``), and who was refused (``refusals(about:)``).
  ///
  /// Rows are read a page at a time, so that neither a long loop nor one that
  /// pauses keeps the writer from its log; what is written meanwhile is read,
  /// too. Reading a page blocks the calling thread, for less than a
  /// millisecond in the ordinary case.
  public struct AuditHistory: Sendable {
    enum Source {
      case file(String)
      /// That of a registry, in memory.
      case registry(UInt64)
    }

    let source: Source

    init(_ source: Source) { self.source = source }

    /// Takes up the history in a file, also while another program writes it.
    ///
    /// Nothing is written to it: what a crashed program recorded and did not
    /// write itself is in it only after a registry has opened it, or
    /// `cbr recover`.
    ///
    /// - Parameter path: Of an SQLite file that this library has made.
    /// - Throws: `history` when there is none, or it cannot be read.
    public init(path: String) throws(RegistryError) {
      self.init(.file(path))
      // What is wrong is told here, and not by the first loop.
      _ = try HistoryReader(path: path)
    }
  }

  extension Registry {
    /// The registry's history, to be read; what has happened until now is in
    /// it.
    ///
    /// - Parameter timeout: How long to wait for what is not yet written.
    /// - Returns: The file's, or, when the history is in memory, the
    ///   registry's: that one can be read until the registry is closed.
    /// - Throws: `timedOut`; `history` when it cannot be written or read;
    ///   `closed`, `forked`.
    public func auditHistory(
      waiting timeout: Duration = .seconds(10)
    ) throws(RegistryError) -> AuditHistory {
      try flush(to: .database, waiting: timeout)
      var path: String?
      let status = Audit.withHistory(of: handle) { history in
        path = history.pointee.path.map { String(cString: $0) }
      }
      try RegistryError.check(status, about: handle)
      guard let path else { return AuditHistory(.registry(handle)) }
      return try AuditHistory(path: path)
    }
  }
#endif

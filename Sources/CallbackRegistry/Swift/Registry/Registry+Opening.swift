// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// Holds callbacks, calls them safely, and remembers what became of them.
  ///
  ///     let registry = try Registry(history: .file("audit.db"))
  ///     let progress = try registry.register("progress") {
  ///       (fraction: Double) in print(fraction)
  ///     }
  ///     try progress.call(0.5)
  ///
  /// A registry that was opened here is closed when it is released; owners
  /// hold it, tokens and registrations do not. A closure that captures its
  /// registry or owner keeps that open until it has ended.
  public final class Registry: Sendable {
    /// The registry as a number, which is the same registry in C and in Swift.
    public let handle: UInt64
    private let isOpenedHere: Bool
    let objects: ObjectOwners

    /// Where a registry's history is kept.
    public enum History: Sendable, Hashable {
      /// In memory: explanations and statistics know it while the registry is
      /// open.
      case memory
      /// In an SQLite file, which is made when it is missing, and can be read
      /// by `sqlite3` at any time.
      case file(String)
    }

    /// How much is written to the history.
    public enum Level: Sendable, Hashable {
      /// Nothing.
      case off
      /// All but single calls, which are counted.
      case lifecycle
      /// Also each call, with its duration.
      case calls
    }

    /// Opens a registry and its history.
    ///
    /// - Parameters:
    ///   - history: Registries of one process may share a file.
    ///   - level: How much is written; it can be changed later.
    ///   - label: Its name in explanations; at most 255 bytes.
    ///   - printsLeaks: Whether closing names on standard error what was still
    ///     live.
    ///   - settings: How much of the history is kept, and who is told when it
    ///     cannot be written.
    ///   - emissionDepth: Emissions that a thread may be inside at a time;
    ///     0: 64.
    /// - Throws: `history` when the file cannot be opened (it is left as it
    ///   was), `invalid`, `outOfMemory`, `limitReached`.
    public init(
      history: History = .memory, level: Level = .calls,
      label: String = "registry", printsLeaks: Bool = false,
      settings: HistorySettings = HistorySettings(), emissionDepth: UInt32 = 0
    ) throws(RegistryError) {
      guard let objects = ObjectOwners() else {
        throw RegistryError(.noMemory)
      }
      self.objects = objects
      var options = RegistryOptions()
      options.level = level.number
      options.emissionLimit = emissionDepth
      options.strictness = printsLeaks ? RegistryOptions.strictLeaks : 0
      let path: String? =
        switch history {
        case .memory: nil
        case .file(let path): path
        }
      var opened = Handle.none
      let status = withText(label, "label") { label in
        options.label = label
        guard let path else { return settings.open(options, out: &opened) }
        return withText(path, "history") { path in
          options.historyPath = path
          return settings.open(options, out: &opened)
        }
      }
      try RegistryError.check(status)
      handle = opened
      isOpenedHere = true
    }

    /// Takes up a live registry from its number.
    ///
    /// Releasing this object does not close it.
    ///
    /// It is nil for every other number.
    ///
    /// - Parameter handle: From a registry in Swift, or from C.
    public init?(handle: UInt64) {
      guard Handle.kind(of: handle) == .registry, Liveness.isLive(handle),
        let objects = ObjectOwners()
      else { return nil }
      self.objects = objects
      self.handle = handle
      isOpenedHere = false
    }

    deinit {
      guard isOpenedHere else { return }
      // It waits for nobody; the history is written to its end all the same.
      _ = Closing.close(handle, timeoutNanoseconds: 0)
    }
  }

  extension Registry {
    /// Ends everything in the registry, waits, writes the history to its end
    /// and closes it.
    ///
    /// What was still live is a leak: it is recorded with `registryClosed`. It
    /// may be called anywhere, also inside a callback of the registry, where
    /// it has come to ``Outcome/deferred``.
    ///
    /// - Parameter timeout: How long to wait for calls that are running on
    ///   other threads, and for the history.
    /// - Returns: What is still running; `timedOut` also when only the history
    ///   is still being written; `failed` with `history` when all has ended,
    ///   but the history could not be written to its end.
    public func close(waiting timeout: Duration = .seconds(10)) -> Outcome {
      endDeadObjects()
      let status = Closing.close(
        handle, timeoutNanoseconds: timeout.boundedNanoseconds)
      return Outcome(status, of: handle)
    }

    /// Whether it is open at this moment; advice.
    public var isLive: Bool { Liveness.isLive(handle) }

    /// The life of the registry.
    public var explanation: Explanation { Explanation(of: handle) }
  }

  extension Registry.Level {
    var number: UInt32 {
      switch self {
      case .off: CallbackRegistry.Level.off.rawValue
      case .lifecycle: CallbackRegistry.Level.lifecycle.rawValue
      case .calls: CallbackRegistry.Level.calls.rawValue
      }
    }

    init(_ level: CallbackRegistry.Level) {
      switch level {
      case .off: self = .off
      case .lifecycle: self = .lifecycle
      case .calls: self = .calls
      }
    }
  }
#endif

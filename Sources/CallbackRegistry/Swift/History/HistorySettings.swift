// SPDX-License-Identifier: Apache-2.0

#if !hasFeature(Embedded)
  /// How a history is kept.
  ///
  /// What is nil is the library's choice.
  ///
  ///     var settings = HistorySettings()
  ///     settings.maximumBytes = 64 << 20
  ///     settings.whenChanged = { state, sentence in print(sentence) }
  ///     let registry = try Registry(
  ///       history: .file("audit.db"), settings: settings)
  public struct HistorySettings: Sendable {
    /// What becomes of an event for which its thread's memory has no room.
    public enum Overflow: Sendable, Hashable {
      /// It waits, for ``HistorySettings/blockTimeout`` at most; then a call
      /// is counted, and another event lost.
      case block
      /// Calls only: they are counted, exactly.
      case count
      /// It is lost at once; the history says how many were.
      case drop
      /// The process is aborted: better no program than one without its
      /// history.
      case abort
    }

    /// Memory for events of one thread that are not yet written, and so much
    /// disk: a power of two from 4 KiB to 1 GiB; nil: 2 MiB.
    public var threadBytes: UInt64?
    /// Rows of single calls in a second; beyond it calls are counted; nil:
    /// 100 000.
    public var callsPerSecond: UInt64?
    /// How long an event waits for room; nil: a second.
    public var blockTimeout: Duration?
    /// How much disk the history may have, at least 4 MiB; what is beyond is
    /// deleted, the oldest first and calls before other events; nil: 1 GiB.
    public var maximumBytes: UInt64?
    /// How many rows of calls are kept, at least 10 000; nil: any number, in
    /// memory 1 125 000.
    public var maximumCalls: UInt64?
    /// How many rows of other events are kept, at least 10 000; nil: any
    /// number, in memory 1 125 000.
    public var maximumEvents: UInt64?
    /// How long calls are kept; nil: forever.
    public var maximumCallAge: Duration?
    /// How long other events are kept; nil: forever.
    public var maximumEventAge: Duration?
    /// For calls; nil: ``Overflow/count``.
    public var callOverflow: Overflow?
    /// For other events, for which ``Overflow/count`` is `invalid`; nil:
    /// ``Overflow/block``.
    public var eventOverflow: Overflow?
    /// An existing directory for what is not yet written, such as `/dev/shm`;
    /// nil: beside the file.
    public var ringDirectory: String?
    /// Told when the history can no longer be written, when it can be again,
    /// and, at most once a second, that events were lost: with a sentence
    /// that says which file, why, and what can be done.
    ///
    /// It runs on the thread that writes the history, with no lock held;
    /// nothing is written before it returns. It is released with the
    /// registry's end.
    public var whenChanged:
      (@Sendable (Registry.Statistics.History, String) -> Void)?

    /// Leaves everything to the library.
    public init() {}
  }

  /// Holds the closure that is told.
  final class HistoryObserver: Sendable {
    private let body: @Sendable (Registry.Statistics.History, String) -> Void

    init(
      _ body: @escaping @Sendable (Registry.Statistics.History, String) -> Void
    ) {
      self.body = body
    }

    static let changed: StateChanged = { context, state, sentence in
      guard let context, let sentence else { return }
      Unmanaged<HistoryObserver>.fromOpaque(context).takeUnretainedValue()
        .body(Registry.Statistics.History(state), String(cString: sentence))
    }

    static let destroy: Destroy = { context in
      guard let context else { return }
      Unmanaged<HistoryObserver>.fromOpaque(context).release()
    }
  }

  extension HistorySettings {
    /// Opens a registry as these settings say.
    func open(
      _ options: RegistryOptions, out: inout UInt64
    ) -> Status {
      var options = options
      // 0 is the library's choice there, and not a program's.
      options.ringBytes = threadBytes.map { max($0, 1) } ?? 0
      options.callsPerSecond = callsPerSecond.map { max($0, 1) } ?? 0
      options.blockTimeoutNanoseconds = Self.atLeastOne(blockTimeout)
      options.maxBytes = maximumBytes.map { max($0, 1) } ?? 0
      options.maxCalls = maximumCalls.map { max($0, 1) } ?? 0
      options.maxEvents = maximumEvents.map { max($0, 1) } ?? 0
      options.maxCallAge = Self.atLeastOne(maximumCallAge)
      options.maxEventAge = Self.atLeastOne(maximumEventAge)
      options.callPolicy = callOverflow?.number ?? 0
      options.eventPolicy = eventOverflow?.number ?? 0
      let observer = whenChanged.map {
        Unmanaged.passRetained(HistoryObserver($0))
      }
      if let observer {
        options.historyChanged = HistoryObserver.changed
        options.historyContext = observer.toOpaque()
        options.historyDestroy = HistoryObserver.destroy
      }
      let status = openInDirectory(options, out: &out)
      if status != .ok { observer?.release() }
      return status
    }

    private static func atLeastOne(_ duration: Duration?) -> UInt64 {
      duration.map { max($0.boundedNanoseconds, 1) } ?? 0
    }

    private func openInDirectory(
      _ options: RegistryOptions, out: inout UInt64
    ) -> Status {
      guard let ringDirectory else { return Opening.open(options, out: &out) }
      var options = options
      return withText(ringDirectory, "ringDirectory") { directory in
        options.ringDirectory = directory
        return Opening.open(options, out: &out)
      }
    }
  }

  extension HistorySettings.Overflow {
    fileprivate var number: UInt32 {
      switch self {
      case .block: OverflowPolicy.block.rawValue
      case .count: OverflowPolicy.count.rawValue
      case .drop: OverflowPolicy.drop.rawValue
      case .abort: OverflowPolicy.abort.rawValue
      }
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0

/// How a history is kept.
///
/// Every value has been checked, and defaults are in place. A history that is
/// shared keeps the options of its first opening.
package struct HistoryOptions {
  /// The database's file, made when it is missing; nil: in memory.
  package var path: UnsafePointer<CChar>?
  /// Where the file of rings is made; nil: beside the history.
  package var ringDirectory: UnsafePointer<CChar>?
  /// Memory of one thread's ring: a power of two.
  package var ringBytes: UInt64
  /// Rows of single calls; beyond it calls are counted.
  ///
  /// All-ones: no limit.
  package var callsPerSecond: UInt64
  /// How long an event of the control class waits for room.
  package var blockTimeoutNanoseconds: UInt64
  package var limits: HistoryLimits
  package var callPolicy = OverflowPolicy.count
  package var eventPolicy = OverflowPolicy.block

  package init(
    path: UnsafePointer<CChar>?, ringBytes: UInt64, callsPerSecond: UInt64,
    blockTimeoutNanoseconds: UInt64, limits: HistoryLimits? = nil
  ) {
    self.path = path
    self.ringBytes = ringBytes
    self.callsPerSecond = callsPerSecond
    self.blockTimeoutNanoseconds = blockTimeoutNanoseconds
    self.limits = limits ?? .standard(isFile: path != nil)
  }
}

/// How much a history keeps; all-ones: no limit.
///
/// What is beyond is deleted, the oldest first, and a row of `purge` says so.
/// Calls go before other events.
package struct HistoryLimits {
  /// On the disk: the database, its log, and the rings beside it.
  package var bytes: UInt64 = .max
  /// Rows of single calls; the last 8/9 of them stay at least.
  package var calls: UInt64 = .max
  /// Rows of all other events.
  package var events: UInt64 = .max
  /// By the machine's monotonic clock, which stands still while it is off.
  package var callAge: UInt64 = .max
  package var eventAge: UInt64 = .max

  package init() {}

  /// The defaults: a file does not fill the disk; in memory the last million
  /// calls, and as many other events, are kept.
  package static func standard(isFile: Bool) -> HistoryLimits {
    var limits = HistoryLimits()
    if isFile {
      limits.bytes = 1 << 30
    } else {
      limits.calls = 1_125_000
      limits.events = 1_125_000
    }
    return limits
  }
}

/// What has become of the events of a history.
///
/// Calls that the engine counted because its ring was full are emitted and
/// aggregated: once everything has been read, emitted = written + aggregated +
/// lost.
package struct HistoryCounts {
  package var emitted: UInt64 = 0
  package var written: UInt64 = 0
  package var aggregated: UInt64 = 0
  package var lost: UInt64 = 0
  /// 0 nothing was ever recorded, 1 good, 2 it cannot be written.
  package var state: UInt32 = 0
  package var protection = CrashProtection.off

  package init() {}
}

/// Whether what is recorded and not yet written survives the process's death.
package enum CrashProtection: UInt32 {
  case off = 0
  /// The disk had no room for the rings of some threads.
  case inPart = 1
  case on = 2
}

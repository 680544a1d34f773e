// SPDX-License-Identifier: Apache-2.0

/// How a history is kept.
///
/// Every value has been checked, and defaults are in place. A history that is
/// shared keeps the options of its first opening.
package struct HistoryOptions {
  /// The database's file, made when it is missing; nil: in memory.
  package var path: UnsafePointer<CChar>?
  /// Memory of one thread's ring: a power of two.
  package var ringBytes: UInt64
  /// Rows of single calls; beyond it calls are counted.
  ///
  /// All-ones: no limit.
  package var callsPerSecond: UInt64
  /// How long an event of the control class waits for room.
  package var blockTimeoutNanoseconds: UInt64

  package init(
    path: UnsafePointer<CChar>?, ringBytes: UInt64, callsPerSecond: UInt64,
    blockTimeoutNanoseconds: UInt64
  ) {
    self.path = path
    self.ringBytes = ringBytes
    self.callsPerSecond = callsPerSecond
    self.blockTimeoutNanoseconds = blockTimeoutNanoseconds
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

  package init() {}
}

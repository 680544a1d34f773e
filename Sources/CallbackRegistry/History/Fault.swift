// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite

/// A row of the table `fault`.
struct FaultRow {
  let cause: UnsafePointer<CChar>?
  var code: Int32 = 0
  let beganAt: UInt64
  var endedAt = cbr_monotonic_nanoseconds()
  var failures: UInt64 = 1
  var lost: UInt64 = 0

  /// Adds the row to a run, by the statement `addFault`.
  func add(
    to run: Int64, by statement: Statement
  ) throws(DatabaseError) {
    statement.bind(1, run)
    statement.bind(2, cause)
    statement.bind(3, Int64(code))
    statement.bind(4, beganAt)
    statement.bind(5, endedAt)
    statement.bind(6, failures)
    statement.bind(7, lost)
    try statement.run()
  }
}

/// A time during which the database could not be written.
struct Fault {
  private(set) var failures: UInt64 = 0
  private(set) var code: Int32 = 0
  /// In other words than SQLite's.
  private(set) var words: StaticString?
  private(set) var beganAt: UInt64 = 0
  private(set) var lostBefore: UInt64 = 0
  /// A row's number was taken already: someone else has added rows.
  private(set) var needsRepair = false
  /// It took longer than a lock may, so that producers stopped waiting.
  var isSevere = false

  /// Another program's lock is waited for as long as this before it counts
  /// as a fault.
  static var patience: UInt64 { 5_000_000_000 }
  private static var firstPause: UInt64 { 20_000_000 }
  private static var longestPause: UInt64 { 1_000_000_000 }

  var isThere: Bool { failures > 0 }

  mutating func add(_ error: DatabaseError, lost: UInt64) {
    begin(lost: lost)
    failures += 1
    code = error.code
    needsRepair = error.primary == SQLITE_CONSTRAINT
  }

  /// Notes what has been mended at once.
  mutating func note(_ words: StaticString, lost: UInt64) {
    begin(lost: lost)
    failures = max(1, failures)
    self.words = words
    isSevere = true
  }

  private mutating func begin(lost: UInt64) {
    if failures > 0 { return }
    beganAt = cbr_monotonic_nanoseconds()
    lostBefore = lost
  }

  /// What goes into the row.
  var cause: UnsafePointer<CChar>? {
    words?.characters ?? DatabaseError(code: code).text
  }

  /// Whether there is nothing wrong but a lock that may soon be free.
  var isPatient: Bool {
    DatabaseError(code: code).isBusy
      && cbr_monotonic_nanoseconds() &- beganAt < Self.patience
  }

  /// How long to wait before the next try.
  var pause: UInt64 {
    isPatient
      ? 1_000_000
      : min(Self.firstPause << min(failures, 8), Self.longestPause)
  }
}

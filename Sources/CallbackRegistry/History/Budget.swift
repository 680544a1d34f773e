// SPDX-License-Identifier: Apache-2.0

/// How many calls may become rows of their own: so many a second, and at
/// most one second's worth at once.
struct Budget {
  private let callsPerSecond: UInt64
  private var available: UInt64
  private var filledAt: UInt64
  private var availableBefore: UInt64

  /// More rows a second than this are not limited at all.
  private static var mostThatMatters: UInt64 { 1_000_000_000 }

  init(callsPerSecond: UInt64, now: UInt64) {
    self.callsPerSecond = callsPerSecond
    available = callsPerSecond
    availableBefore = callsPerSecond
    filledAt = now
  }

  var isLimited: Bool { callsPerSecond <= Self.mostThatMatters }

  /// Adds what the time since the last filling allows.
  mutating func fill(now: UInt64) {
    guard isLimited else {
      available = .max
      return
    }
    let elapsed = min(now &- filledAt, 1_000_000_000)
    let earned = elapsed * callsPerSecond / 1_000_000_000
    // Less than one call's worth of time is left to add up.
    if earned > 0 || callsPerSecond == 0 { filledAt = now }
    available = min(callsPerSecond, available + earned)
    availableBefore = available
  }

  /// No call may become a row until it is filled again.
  mutating func exhaust() {
    available = 0
    availableBefore = 0
  }

  /// Whether one more call may become a row.
  @inline(__always)
  mutating func take() -> Bool {
    if available == 0 { return false }
    available &-= 1
    return true
  }

  /// The batch was not written.
  mutating func revert() { available = availableBefore }
}

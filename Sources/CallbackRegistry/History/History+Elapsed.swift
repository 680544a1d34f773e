// SPDX-License-Identifier: Apache-2.0

extension UnsafeMutablePointer where Pointee == History {
  /// Converts a duration, for a message: by the average rate of the counter
  /// since the history was opened.
  ///
  /// The writer's own clock is its alone.
  package func nanoseconds(ofTicks ticks: UInt64) -> UInt64 {
    let opened = pointee.openedAt
    var now = TickClock.sample()
    // Too short a stretch measures nothing.
    while now.nanoseconds &- opened.nanoseconds < 1_000 {
      now = TickClock.sample()
    }
    let rate =
      Double(now.nanoseconds &- opened.nanoseconds)
      / Double(max(1, now.ticks &- opened.ticks))
    // A later stamp than now's, taken on another processor: no time at all.
    guard ticks < UInt64.max / 2 else { return 0 }
    return UInt64(Double(ticks) * rate)
  }
}

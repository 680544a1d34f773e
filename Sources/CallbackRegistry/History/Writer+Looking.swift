// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// What a writer looks after now and then, whether or not there is something
/// to write.
extension Writer {
  private static var interval: UInt64 { 500_000_000 }

  /// Takes over what processes have left that died while this one goes on,
  /// and keeps the limits of age and size.
  mutating func lookAround() {
    let now = cbr_monotonic_nanoseconds()
    guard now &- lastLooking > Self.interval else { return }
    lastLooking = now
    history.pointee.turn.takeAsWriter()
    defer { history.pointee.turn.give() }
    history.recoverDead()
    keepBallast()
    bytesBeside = history.measureBeside()
    keepLimits()
  }
}

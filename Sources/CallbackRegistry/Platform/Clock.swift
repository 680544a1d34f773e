// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A moment of the monotonic clock up to which something waits.
package struct Deadline {
  package let nanoseconds: UInt64

  /// The moment `timeoutNanoseconds` from now; all-ones never comes.
  package static func after(_ timeoutNanoseconds: UInt64) -> Deadline {
    if timeoutNanoseconds == .max { return Deadline(nanoseconds: .max) }
    let now = cbr_monotonic_nanoseconds()
    let (sum, overflow) = now.addingReportingOverflow(timeoutNanoseconds)
    return Deadline(nanoseconds: overflow ? .max : sum)
  }

  package var hasPassed: Bool {
    nanoseconds != .max && cbr_monotonic_nanoseconds() >= nanoseconds
  }
}

/// The time stamps of events: the processor's counter where the kernel trusts
/// it, else nanoseconds.
package enum Ticks {
  @inline(__always)
  package static var now: UInt64 { cbr_ticks() }

  /// A stamp that is taken after all that the thread did before is done, and
  /// visible to others.
  package static var afterEffects: UInt64 { cbr_ticks_after_effects() }
}

/// The wall clock, as what is to be added to the monotonic one.
///
/// It changes when somebody sets the wall clock, and when the machine has
/// slept; then nothing but this changes in a history.
package enum WallClock {
  /// Less than this is not told from a thread that was held up in between.
  private static var leastStep: Int64 { 100_000_000 }

  /// The reading with the least time between the two clocks.
  package static var offset: UInt64 {
    var best: UInt64 = 0
    var least = UInt64.max
    for _ in 0..<3 {
      let before = cbr_monotonic_nanoseconds()
      let wall = cbr_realtime_nanoseconds()
      let width = cbr_monotonic_nanoseconds() &- before
      if width < least {
        least = width
        best = wall &- (before &+ width / 2)
      }
    }
    return best
  }

  /// By how much it was set between two offsets; 0: it was not.
  package static func step(from before: UInt64, to after: UInt64) -> Int64 {
    let step = Int64(bitPattern: after &- before)
    return step.magnitude < leastStep.magnitude ? 0 : step
  }
}

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

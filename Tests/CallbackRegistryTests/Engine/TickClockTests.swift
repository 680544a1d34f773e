// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Foundation
import Testing

@testable import CallbackRegistry

/// Times that rows show.
@Suite struct TickClockTests {
  @Test func timesAreNearTheClockAndNeverGoBack() {
    _ = CallbackRegistry.Process.currentThread()
    guard var clock = TickClock(from: TickClock.sample()) else {
      Issue.record("no memory")
      return
    }
    while !clock.isReadyAt.hasPassed {}
    _ = clock.adjust()
    var last: UInt64 = 0
    var worst: Int64 = 0
    let end = cbr_monotonic_nanoseconds() + 2_500_000_000
    while cbr_monotonic_nanoseconds() < end {
      _ = clock.adjust()
      for _ in 0..<1_000 {
        let time = clock.nanoseconds(at: Ticks.now)
        #expect(time >= last)
        last = time
      }
      let sample = TickClock.sample()
      let error =
        Int64(clock.nanoseconds(at: sample.ticks))
        - Int64(sample.nanoseconds)
      worst = max(worst, abs(error))
    }
    #expect(worst < 1_000_000, "\(worst) ns")
  }

  @Test func aTickIsAlwaysTheSameTime() {
    _ = CallbackRegistry.Process.currentThread()
    guard var clock = TickClock(from: TickClock.sample()) else {
      Issue.record("no memory")
      return
    }
    while !clock.isReadyAt.hasPassed {}
    _ = clock.adjust()
    var known: [(ticks: UInt64, time: UInt64)] = []
    for _ in 0..<200 {
      let ticks = Ticks.now
      _ = clock.adjust()
      known.append((ticks, clock.nanoseconds(at: ticks)))
      usleep(2_000)
    }
    for each in known {
      #expect(clock.nanoseconds(at: each.ticks) == each.time)
    }
    // Before the first measurement, and before time itself.
    let first = known[0]
    #expect(clock.nanoseconds(at: first.ticks - 1_000_000) < first.time)
    _ = clock.nanoseconds(at: 0)
    _ = clock.nanoseconds(at: .max)
    _ = clock.nanoseconds(during: .max)
  }
}

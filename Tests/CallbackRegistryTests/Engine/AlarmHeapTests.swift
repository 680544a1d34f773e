// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CallbackRegistry

/// Alarms come in the order of their times, whatever was added and taken out
/// before.
@Suite struct AlarmHeapTests {
  /// Alarms with the times of their places in a list.
  private static func make(_ times: [UInt64]) -> [AlarmPointer] {
    times.map { time in
      let alarm = AlarmPointer.allocate(capacity: 1)
      alarm.initialize(to: Alarm(step: { _ in }))
      alarm.pointee.time = time
      return alarm
    }
  }

  private static func takeAll(_ heap: inout AlarmHeap) -> [UInt64] {
    var times: [UInt64] = []
    while let first = heap.first {
      heap.remove(first)
      #expect(!first.pointee.isSet)
      times.append(first.pointee.time)
    }
    return times
  }

  /// Every order of up to five alarms, two of which are at one time, and every
  /// one of them taken out.
  @Test func everySmallCase() {
    func orders(_ rest: [UInt64]) -> [[UInt64]] {
      guard !rest.isEmpty else { return [[]] }
      return rest.indices.flatMap { index in
        var others = rest
        let one = others.remove(at: index)
        return orders(others).map { [one] + $0 }
      }
    }
    for count in 1...5 {
      for times in orders((1...UInt64(count)).map { max($0, 2) }) {
        for removed in 0...count {
          let alarms = Self.make(times)
          var heap = AlarmHeap()
          for alarm in alarms { heap.add(alarm) }
          var left = times
          if removed < count {
            heap.remove(alarms[removed])
            left.remove(at: removed)
          }
          #expect(Self.takeAll(&heap) == left.sorted())
          for alarm in alarms { alarm.deallocate() }
        }
      }
    }
  }

  /// Like a sorted list, through many steps of which each is one of three.
  @Test func likeASortedList() {
    let alarms = Self.make(Array(repeating: 0, count: 300))
    var heap = AlarmHeap()
    var random: UInt64 = 1
    for _ in 0..<5_000 {
      random = random &* 6_364_136_223_846_793_005 &+ 1
      let alarm = alarms[Int(random >> 33) % alarms.count]
      if alarm.pointee.isSet {
        heap.remove(alarm)
      } else {
        alarm.pointee.time = random >> 20 & 1023
        heap.add(alarm)
      }
      if random >> 60 == 0, let first = heap.first { heap.remove(first) }
      let least = alarms.filter(\.pointee.isSet).map(\.pointee.time).min()
      #expect(heap.first?.pointee.time == least)
    }
    let left = alarms.filter(\.pointee.isSet).map(\.pointee.time)
    #expect(Self.takeAll(&heap) == left.sorted())
    for alarm in alarms { alarm.deallocate() }
  }

  /// A long list of alarms at one time needs no deep stack.
  @Test func manyAtOneTime() {
    let alarms = Self.make(Array(repeating: 7, count: 200_000))
    var heap = AlarmHeap()
    for alarm in alarms { heap.add(alarm) }
    #expect(Self.takeAll(&heap).count == alarms.count)
    for alarm in alarms { alarm.deallocate() }
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Alarms in the order of their times: a pairing heap, linked through the alarms
// themselves. So it needs no memory of its own; adding one takes a few steps,
// and taking one out, on the average, as many as the logarithm of their number.
// Nothing here recurses.
// Tried to break by: AlarmHeapTests.

/// What is to be done for a handle at some time, on a queue.
package struct Alarm {
  /// What is done, outside of every lock, by who delivers on the queue.
  package let step: HandleStep
  package var handle = Handle.none
  /// Of the monotonic clock.
  package var time: UInt64 = 0
  /// The queue that it was set on last.
  var queue = Handle.none
  package fileprivate(set) var isSet = false
  /// The first of those that are no earlier and were found to be so.
  fileprivate var child: AlarmPointer?
  fileprivate var next: AlarmPointer?
  /// The one before it; of a first child its parent.
  fileprivate var previous: AlarmPointer?

  package init(step: @escaping HandleStep) { self.step = step }
}

package typealias AlarmPointer = UnsafeMutablePointer<Alarm>

package struct AlarmHeap {
  /// The earliest.
  package private(set) var first: AlarmPointer?

  package init() {}

  package mutating func add(_ alarm: AlarmPointer) {
    alarm.pointee.isSet = true
    first = Self.merged(first, alarm)
  }

  package mutating func remove(_ alarm: AlarmPointer) {
    let others = Self.joined(alarm.pointee.child)
    if first == alarm {
      first = others
    } else {
      Self.cut(alarm)
      first = Self.merged(first, others)
    }
    alarm.pointee.child = nil
    alarm.pointee.isSet = false
  }

  /// Takes an alarm that is not the first out of its list.
  private static func cut(_ alarm: AlarmPointer) {
    let next = alarm.pointee.next
    next?.pointee.previous = alarm.pointee.previous
    if let previous = alarm.pointee.previous {
      if previous.pointee.child == alarm {
        previous.pointee.child = next
      } else {
        previous.pointee.next = next
      }
    }
    alarm.pointee.next = nil
    alarm.pointee.previous = nil
  }

  /// Makes the later of two the first child of the other.
  private static func merged(
    _ one: AlarmPointer?, _ other: AlarmPointer?
  ) -> AlarmPointer? {
    guard let one else { return other }
    guard let other else { return one }
    let isInOrder = one.pointee.time <= other.pointee.time
    let parent = isInOrder ? one : other
    let child = isInOrder ? other : one
    child.pointee.next = parent.pointee.child
    child.pointee.next?.pointee.previous = child
    child.pointee.previous = parent
    parent.pointee.child = child
    return parent
  }

  /// Makes one heap of a list: of two neighbours each, then of all these from
  /// the last one on.
  private static func joined(_ list: AlarmPointer?) -> AlarmPointer? {
    var rest = list
    var pairs: AlarmPointer?
    while let one = rest {
      let other = one.pointee.next
      rest = other?.pointee.next
      one.detach()
      other?.detach()
      let pair = merged(one, other)
      pair?.pointee.next = pairs
      pairs = pair
    }
    var all: AlarmPointer?
    while let pair = pairs {
      pairs = pair.pointee.next
      pair.detach()
      all = merged(all, pair)
    }
    return all
  }
}

extension UnsafeMutablePointer where Pointee == Alarm {
  fileprivate func detach() {
    pointee.next = nil
    pointee.previous = nil
  }
}

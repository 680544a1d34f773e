// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Looking at the pins of every thread, after a heavy fence.
package enum Scan {
  /// Whether any thread pins the handle.
  package static func isPinned(_ handle: UInt64) -> Bool {
    var thread = ThreadPointer.first
    while let each = thread {
      if !each.visitPins({ $0 != handle }) { return true }
      thread = each.next
    }
    return false
  }

  /// Counts the pins of a handle on all threads.
  package static func countPins(_ handle: UInt64) -> UInt64 {
    var count: UInt64 = 0
    var thread = ThreadPointer.first
    while let each = thread {
      each.visitPins {
        if $0 == handle { count += 1 }
        return true
      }
      thread = each.next
    }
    return count
  }

  /// The heavy fence: whoever pinned without being seen afterwards is refused.
  package static func fence() {
    ProcessState.shared.pointee.heavyFences.wrappingAdd(
      1, ordering: .relaxed)
    cbr_heavy_fence()
  }
}

/// The pins of all threads at one moment, for the ending of a group.
///
/// It holds a bounded number; past it, every handle is looked up afresh.
package struct PinSnapshot: ~Copyable {
  private static let capacity = 128
  private let pins: UnsafeMutablePointer<UInt64>
  private var count = 0
  private var isComplete = true

  /// Takes the snapshot into room for `roomCount` pins.
  package init(into pins: UnsafeMutablePointer<UInt64>) {
    self.pins = pins
    var thread = ThreadPointer.first
    while let each = thread {
      isComplete = each.visitPins { pin in
        guard count < Self.capacity else { return false }
        pins[count] = pin
        count += 1
        return true
      }
      guard isComplete else { return }
      thread = each.next
    }
  }

  package static var roomCount: Int { capacity }

  package borrowing func contains(_ handle: UInt64) -> Bool {
    for index in 0..<count where pins[index] == handle { return true }
    return isComplete ? false : Scan.isPinned(handle)
  }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The threads of a ring that a wait would close.
package struct WaitRing {
  package struct Member {
    package var thread: UInt32 = 0
    package var waitsFor = Handle.none
  }

  private static let capacity = 8

  /// How many threads it has, the one that would close it not counted.
  package private(set) var count = 0
  private var members = InlineArray<8, Member>(repeating: Member())

  /// No other thread: who waits is inside.
  init() {}

  /// Collects them from the last one back, as a search has reached them.
  ///
  /// The monitor of waiting is held.
  init(endingWith last: ThreadPointer) {
    var thread: ThreadPointer? = last
    while let each = thread {
      members[count % Self.capacity] = Member(
        thread: each.pointee.number.load(ordering: .relaxed),
        waitsFor: each.pointee.waitingFor)
      count += 1
      thread = each.pointee.reachedFrom
    }
  }

  /// Visits those it has room for, beginning with the one that is inside what
  /// the closing thread waits for; the last of all waits for what that thread
  /// is inside.
  package func visitMembers(_ visit: (Member) -> Void) {
    for index in 0..<min(count, Self.capacity) {
      visit(members[(count - 1 - index) % Self.capacity])
    }
  }

  /// How many it has no room for.
  package var others: Int { max(0, count - Self.capacity) }
}

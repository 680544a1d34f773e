// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A call that a thread is inside, as its ring's area in a file tells after a
/// crash.
///
/// Each thread has a stack of them in its ring's area, by the depth of the
/// call's pin; deeper calls are not told. Its thread alone stores to it.
package struct InFlight: ~Copyable {
  package static let count: UInt32 = 128

  let token = Atomic<UInt64>(0)
  /// In ticks; 0 where calls are not timed.
  let began = Atomic<UInt64>(0)
}

package typealias InFlightPointer = UnsafeMutablePointer<InFlight>

extension UnsafeMutablePointer where Pointee == InFlight {
  @inline(__always)
  package func begin(at depth: UInt32, token: UInt64, began: UInt64) {
    guard depth < InFlight.count else { return }
    let entry = self + Int(depth)
    entry.pointee.began.store(began, ordering: .relaxed)
    entry.pointee.token.store(token, ordering: .releasing)
  }

  @inline(__always)
  package func end(at depth: UInt32) {
    guard depth < InFlight.count else { return }
    self[Int(depth)].token.store(0, ordering: .releasing)
  }
}

extension UnsafeMutablePointer where Pointee == Ring {
  /// Where the calls are told that the ring's thread is inside; nil: nowhere,
  /// as the ring does not survive a crash.
  package var inFlight: InFlightPointer? {
    guard pointee.isInFile else { return nil }
    return (UnsafeMutableRawPointer(self) + RingFileLayout.inFlightOffset)
      .assumingMemoryBound(to: InFlight.self)
  }
}

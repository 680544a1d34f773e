// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// A ring in which a thread records, of the recorder with that identity.
///
/// When the recorder is gone the identity never matches again. So that a
/// thread that sees many recorders come and go remembers few, it forgets all
/// when there are `limit`; of a recorder that is still there, it is given the
/// ring that bears its number.
struct HeldRing {
  static let limit = 64

  let identity: UInt64
  let ring: RingPointer
  let next: UnsafeMutablePointer<HeldRing>?
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// The calling thread's ring of a recorder that a pin keeps open.
  ///
  /// Nil without memory: the recorder then counts one event as lost.
  @inline(__always)
  package func ring(of recorder: RecorderPointer) -> RingPointer? {
    if pointee.heldIdentity == recorder.pointee.identity {
      return pointee.heldRing
    }
    return findRing(of: recorder)
  }

  private func findRing(of recorder: RecorderPointer) -> RingPointer? {
    let identity = recorder.pointee.identity
    var held = pointee.heldRings
    var count = 0
    while let each = held, each.pointee.identity != identity {
      held = each.pointee.next
      count += 1
    }
    if held == nil, count >= HeldRing.limit { forgetRings() }
    guard let ring = held?.pointee.ring ?? takeRing(of: recorder) else {
      recorder.pointee.withoutRing.wrappingAdd(1, ordering: .relaxed)
      return nil
    }
    pointee.heldIdentity = identity
    pointee.heldRing = ring
    return ring
  }

  private func takeRing(of recorder: RecorderPointer) -> RingPointer? {
    guard let held = Memory.allocate(HeldRing.self) else { return nil }
    var name: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &name) { bytes in
      cbr_thread_name(bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
    }
    let identity = ThreadIdentity(
      number: pointee.number.load(ordering: .relaxed),
      kernelNumber: pointee.kernelNumber, name: name, began: pointee.began)
    let ring = recorder.takeRing(for: identity) { number in
      ThreadPointer.isAlive(number)
    }
    guard let ring else {
      Memory.release(held)
      return nil
    }
    held.initialize(
      to: HeldRing(
        identity: recorder.pointee.identity, ring: ring,
        next: pointee.heldRings))
    pointee.heldRings = held
    return ring
  }

  /// Drops the thread's knowledge of its rings.
  ///
  /// Recorders see that the thread is gone, and give the rings to others.
  func forgetRings() {
    while let held = pointee.heldRings {
      pointee.heldRings = held.pointee.next
      Memory.release(held)
    }
    pointee.heldIdentity = 0
    pointee.heldRing = nil
  }

  /// Whether a thread with that number still runs.
  ///
  /// When it does not, all that it wrote is visible.
  static func isAlive(_ number: UInt32) -> Bool {
    var thread = first
    while let each = thread {
      if each.pointee.number.load(ordering: .acquiring) == number {
        return each.pointee.isUsed.load(ordering: .acquiring)
      }
      thread = each.next
    }
    return false
  }
}

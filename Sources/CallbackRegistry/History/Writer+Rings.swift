// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension Writer {
  /// Looks up how far each ring can be read.
  ///
  /// Losses are taken over under the same lock, so that none is noted between
  /// the two.
  mutating func lookAtRings(markingTargets: Bool) {
    // What a process that has died has recorded is all there.
    watermark = isRecovering ? .max : Ticks.now
    recorder.pointee.monitor.lock()
    defer { recorder.pointee.monitor.unlock() }
    addCursors()
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      cursor.pointee.earlierHead = cursor.pointee.head
      // The end is loaded after the watermark was taken.
      let ring = UnsafePointer<Ring>(
        cbr_after_ticks(cursor.pointee.ring, watermark)!
          .assumingMemoryBound(to: Ring.self))
      cursor.pointee.head = ring.pointee.head.load(ordering: .acquiring)
      cursor.pointee.takeLoss()
      if markingTargets { cursor.pointee.target = cursor.pointee.head }
    }
    withoutRing.working = recorder.pointee.withoutRing.load(
      ordering: .relaxed)
    aggregates.take(from: recorder, now: watermark)
  }

  /// Adds cursors for new rings, which the list of rings begins with.
  ///
  /// Without memory they are left for later.
  private mutating func addCursors() {
    let known = cursors.count
    let count = Int(recorder.pointee.ringCount)
    areRingsMissing = count > known && !cursors.reserve(count)
    guard count > known, !areRingsMissing else { return }
    cursors.extend(to: count)
    var ring = recorder.firstRing
    while let each = ring, Int(each.pointee.number) > known {
      cursors.pointer(to: Int(each.pointee.number) - 1)
        .initialize(to: Cursor(ring: each))
      ring = each.pointee.next
    }
  }

  /// Whether everything that the flush in progress asked for is committed.
  var hasReachedTargets: Bool {
    if areRingsMissing || aggregates.areLeft { return false }
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      if cursor.pointee.committed.position < cursor.pointee.target {
        return false
      }
    }
    return true
  }

  /// Whether nothing is left that this batch could have read.
  var isDrained: Bool {
    if areRingsMissing || aggregates.areLeft { return false }
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      if !cursor.pointee.isDrained || cursor.pointee.loss.count > 0 {
        return false
      }
    }
    return true
  }

  /// The share of its ring, in 1/256, that is used of the fullest ring.
  func measureFullness() -> UInt64 {
    var fullness: UInt64 = 0
    for index in 0..<cursors.count {
      let cursor = cursors.pointer(to: index)
      let used = cursor.pointee.head &- cursor.pointee.committed.position
      fullness = max(
        fullness, used &* 256 / cursor.pointee.ring.pointee.capacity)
    }
    return fullness
  }

  /// What was read is written: producers may have the room.
  mutating func commitRings() {
    for index in 0..<cursors.count {
      cursors.pointer(to: index).pointee.commit()
    }
    withoutRing.commit()
    aggregates.commit()
    // Under the lock: a producer that has just looked is waiting by now.
    recorder.pointee.monitor.locked { recorder.pointee.monitor.wake() }
  }

  /// Nothing was written: everything is read again.
  mutating func revertRings() {
    for index in 0..<cursors.count {
      cursors.pointer(to: index).pointee.revert()
    }
    withoutRing.revert()
    aggregates.revert()
    budget.revert()
  }
}

// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What is left of an owner or registry that has ended: slots that are not yet
/// free, because a thread is inside them or has yet to finish them.
extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Whether all of it is a thread's own: that thread waits, is inside the
  /// handle, and no other one pins anything of it.
  ///
  /// Leases do not count: nothing runs under them.
  func isLeft(of handle: UInt64, onlyTo thread: ThreadPointer) -> Bool {
    guard Handle.isContainer(handle) else { return true }
    let ownClaims = thread.countClaimed(inside: handle)
    return pointee.lock.locked {
      var claims = 0
      var walk = Belongings(of: Handle.index(of: handle))
      while let slot = walk.next() {
        let word = slot.pointee.word.load(ordering: .acquiring)
        let left = Handle.handle(ofWord: word)
        switch Handle.state(ofWord: word) {
        case .destroying where Handle.kind(of: left) == .token: claims += 1
        case .draining where Handle.kind(of: left) == .owner:
          // Those that belong to it decide, unless somebody is about to see
          // that there are none.
          if !Protocol.hasChildren(left) { return false }
        case .draining:
          // Nobody pins it and nothing holds it: somebody is about to claim it.
          let isHeld =
            slot.pointee.leases.load(ordering: .sequentiallyConsistent) != 0
            || thread.isInside(left)
          if !isHeld { return false }
        // Somebody marks, settles or frees it at this moment.
        default: return false
        }
      }
      return claims == ownClaims
    }
  }
}

/// Walks all that belongs to a container, at any depth, with the lock of its
/// registry held.
private struct Belongings {
  private let top: UInt32
  private var index: UInt32

  init(of container: UInt32) {
    top = container
    index = container
  }

  /// The next one: a child, else a sibling, else a sibling of an owner above.
  mutating func next() -> SlotPointer? {
    let slot = Table.knownSlot(at: index)
    let word = slot.pointee.word.load(ordering: .relaxed)
    if Handle.isContainer(Handle.handle(ofWord: word)) {
      let child = Table.knownDetail(at: index).pointee.link.load(
        ordering: .relaxed)
      if child != Slot.noIndex { return go(to: child) }
    }
    while index != top {
      let slot = Table.knownSlot(at: index)
      if slot.pointee.next != Slot.noIndex { return go(to: slot.pointee.next) }
      index = slot.pointee.owner.load(ordering: .relaxed)
    }
    return nil
  }

  private mutating func go(to next: UInt32) -> SlotPointer {
    index = next
    return Table.knownSlot(at: next)
  }
}

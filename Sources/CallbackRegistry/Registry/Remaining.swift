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
      var slot = Optional(Table.knownSlot(at: Handle.index(of: handle)))
      while let each = slot {
        guard isWaiting(each, for: thread, top: handle, claims: &claims)
        else { return false }
        slot = walk.next()
      }
      return claims == ownClaims
    }
  }

  /// Whether what is left in a slot goes on only when the thread does.
  private func isWaiting(
    _ slot: SlotPointer, for thread: ThreadPointer, top: UInt64,
    claims: inout Int
  ) -> Bool {
    let word = slot.pointee.word.load(ordering: .acquiring)
    let left = Handle.handle(ofWord: word)
    if Handle.kind(of: left) == .signal,
      !areConnectionsWaiting(slot, for: thread, top: top, claims: &claims)
    {
      return false
    }
    if left == top { return true }
    switch Handle.state(ofWord: word) {
    case .destroying:
      claims += 1
      return true
    case .draining where Handle.isContainer(left):
      // Those that belong to it decide, unless somebody is about to see that
      // there are none.
      return Protocol.hasChildren(left)
        || slot.pointee.leases.load(ordering: .sequentiallyConsistent) != 0
    case .draining where Handle.kind(of: left) == .queue:
      // What holds a queue is a thread that goes on by itself.
      return slot.pointee.leases.load(ordering: .sequentiallyConsistent) == 0
        && thread.isInside(left)
    case .draining:
      // Nobody pins it and nothing holds it: somebody is about to claim it.
      return slot.pointee.leases.load(ordering: .sequentiallyConsistent) != 0
        || thread.isInside(left)
    // Somebody marks, settles or frees it at this moment.
    default: return false
    }
  }

  /// The same of a signal's connections that the walk does not meet.
  private func areConnectionsWaiting(
    _ signal: SlotPointer, for thread: ThreadPointer, top: UInt64,
    claims: inout Int
  ) -> Bool {
    var connection = signal.signalRecord?.pointee.first
    while let each = connection {
      connection = each.pointee.next
      let slot = Table.knownSlot(at: each.pointee.index)
      let word = slot.pointee.word.load(ordering: .relaxed)
      if Belonging.isInTree(Handle.handle(ofWord: word), of: top) { continue }
      guard isWaiting(slot, for: thread, top: top, claims: &claims)
      else { return false }
    }
    return true
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

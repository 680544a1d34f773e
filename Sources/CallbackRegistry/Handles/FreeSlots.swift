// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The free slots of one registry, a queue linked through their words: reuse is
/// first in, first out (G4).
///
/// Guarded by the registry's lock.
package struct FreeSlots: ~Copyable {
  private var head = Slot.noIndex
  private var tail = Slot.noIndex
  package private(set) var count = 0

  package init() {}

  /// Adds all slots of a chunk but its first `skipped`.
  package mutating func add(_ chunk: ChunkPointer, skipping skipped: UInt32) {
    for index in skipped..<Chunk.slotCount {
      let word = chunk.slot(index).pointee.word.load(ordering: .relaxed)
      append(
        chunk.pointee.firstIndex + index, slot: chunk.slot(index),
        generation: Handle.generation(of: word))
    }
  }

  /// Takes the slot that has been free for longest.
  package mutating func take() -> (index: UInt32, generation: UInt32)? {
    guard head != Slot.noIndex else { return nil }
    let index = head
    let word = Table.knownSlot(at: index).pointee.word.load(
      ordering: .relaxed)
    head = Handle.index(of: word)
    if head == Slot.noIndex { tail = Slot.noIndex }
    count -= 1
    return (index, Handle.generation(of: word))
  }

  /// Frees a slot, and thereby its handle for good: no later one is equal.
  ///
  /// False when its generations are used up: the slot is retired (G2).
  package mutating func add(
    _ index: UInt32, slot: SlotPointer, usedGeneration: UInt32
  ) -> Bool {
    let next = usedGeneration &+ 1
    guard Table.age(ofGeneration: next) < Table.lastAge else {
      slot.pointee.word.store(
        Handle.freeWord(generation: next, next: Slot.noIndex),
        ordering: .releasing)
      return false
    }
    append(index, slot: slot, generation: next)
    return true
  }

  fileprivate mutating func append(
    _ index: UInt32, slot: SlotPointer, generation: UInt32
  ) {
    slot.pointee.word.store(
      Handle.freeWord(generation: generation, next: Slot.noIndex),
      ordering: .releasing)
    if tail == Slot.noIndex {
      head = index
    } else {
      let last = Table.knownSlot(at: tail)
      let word = last.pointee.word.load(ordering: .relaxed)
      last.pointee.word.store(
        Handle.freeWord(
          generation: Handle.generation(of: word), next: index),
        ordering: .relaxed)
    }
    tail = index
    count += 1
  }
}

extension FreeSlots {
  /// Takes back a slot that was taken and never gave out its handle.
  package mutating func giveBack(_ index: UInt32, generation: UInt32) {
    append(
      index, slot: Table.knownSlot(at: index), generation: generation)
  }
}

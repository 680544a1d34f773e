// SPDX-License-Identifier: Apache-2.0

/// Slots in a row, linked through `chain`.
///
/// All are dying or destroying and belong to the holder of the chain alone.
package struct Chain {
  package private(set) var first = Slot.noIndex
  private var last = Slot.noIndex
  package private(set) var count = 0
  /// What the marks have cleared, to be told of when they are settled.
  package var cleared = ClearedSlots()
  /// What has steps of its own to go when it is settled.
  package var ended = EndedRecords()

  package init() {}

  package mutating func append(_ index: UInt32, slot: SlotPointer) {
    slot.pointee.chain = Slot.noIndex
    if last == Slot.noIndex {
      first = index
    } else {
      Table.knownSlot(at: last).pointee.chain = index
    }
    last = index
    count += 1
  }

  package mutating func append(_ other: Chain) {
    var other = other
    cleared.append(&other.cleared)
    ended.append(&other.ended)
    guard other.first != Slot.noIndex else { return }
    if last == Slot.noIndex {
      first = other.first
    } else {
      Table.knownSlot(at: last).pointee.chain = other.first
    }
    last = other.last
    count += other.count
  }

  /// Takes the first one out.
  ///
  /// Its slot's chain is the caller's no longer once its word moves on.
  package mutating func takeFirst() -> (index: UInt32, slot: SlotPointer)? {
    guard first != Slot.noIndex else { return nil }
    let index = first
    let slot = Table.knownSlot(at: index)
    first = slot.pointee.chain
    if first == Slot.noIndex { last = Slot.noIndex }
    count -= 1
    return (index, slot)
  }

  package mutating func takeAll() -> Chain {
    let all = self
    self = Chain()
    return all
  }
}

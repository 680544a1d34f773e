// SPDX-License-Identifier: Apache-2.0

/// Walks the slots of a registry without holding its lock.
struct SlotCursor {
  private var chunk: ChunkPointer?
  private let lock: Monitor
  private var index: UInt32 = 0

  init(_ registry: RegistryPointer) {
    lock = registry.pointee.lock
    chunk = lock.locked { registry.pointee.chunks }
  }

  /// Chunks are only ever added at the front while the registry is pinned.
  mutating func next() -> SlotPointer? {
    while let each = chunk {
      if index < Chunk.slotCount {
        index += 1
        return each.slot(index - 1)
      }
      index = 0
      chunk = lock.locked { each.pointee.next }
    }
    return nil
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// 256 slots, their details, and the registry that they belong to at present.
///
/// Shared variables
///   registry  the handle of the registry that uses the chunk, 0 when none
///             does; stored (releasing) by the thread that gives the chunk to
///             a registry or takes it back, loaded by anyone
///   base      how many generations, from the process's first one on, were
///             used up before the present registry got the chunk: an older
///             handle's registry has been closed. Stored before `registry`
///   recorder  of that registry: stored before `registry`, loaded by threads
///             that pin one of its handles
///   next      guarded by the table's monitor while the chunk is free, else
///             by its registry's lock
package struct Chunk: ~Copyable {
  package let registry = Atomic<UInt64>(0)
  package let base = Atomic<UInt32>(0)
  package var recorder: RecorderPointer?
  package let firstIndex: UInt32
  package var next: UnsafeMutablePointer<Chunk>?

  package static let slotBits: UInt32 = 8
  package static let slotCount: UInt32 = 1 << slotBits

  static let headerBytes = 64
  static let distanceMask = UInt64(slotCount - 1) << 6
  static let bytes =
    headerBytes
    + Int(slotCount)
    * (MemoryLayout<Slot>.stride + MemoryLayout<SlotDetail>.stride)
}

package typealias ChunkPointer = UnsafeMutablePointer<Chunk>

extension UnsafeMutablePointer where Pointee == Chunk {
  /// Makes a chunk of free slots; nil without memory.
  static func make(firstIndex: UInt32, generation: UInt32) -> ChunkPointer? {
    guard let memory = Memory.allocateBytes(Chunk.bytes, alignment: 64) else {
      return nil
    }
    let chunk = memory.bindMemory(to: Chunk.self, capacity: 1)
    chunk.initialize(to: Chunk(firstIndex: firstIndex))
    for index in 0..<Chunk.slotCount {
      chunk.slot(index).initialize(
        to: Slot(
          freeWord: Handle.freeWord(
            generation: generation, next: Slot.noIndex)))
      chunk.detail(index).initialize(to: SlotDetail())
    }
    return chunk
  }

  @inline(__always)
  package func slot(_ indexInChunk: UInt32) -> SlotPointer {
    (UnsafeMutableRawPointer(self) + Chunk.headerBytes)
      .assumingMemoryBound(to: Slot.self) + Int(indexInChunk)
  }

  /// The slot of a handle whose index is in this chunk.
  ///
  /// The index stands in the handle where, masked, it is the slot's distance in
  /// bytes.
  @inline(__always)
  package func slot(of handle: UInt64) -> SlotPointer {
    (UnsafeMutableRawPointer(self) + Chunk.headerBytes
      + Int(truncatingIfNeeded: handle & Chunk.distanceMask))
      .assumingMemoryBound(to: Slot.self)
  }

  @inline(__always)
  package func detail(of handle: UInt64) -> SlotDetailPointer {
    detail(Handle.index(of: handle) & (Chunk.slotCount &- 1))
  }

  @inline(__always)
  package func detail(_ indexInChunk: UInt32) -> SlotDetailPointer {
    (UnsafeMutableRawPointer(self) + Chunk.headerBytes
      + Int(Chunk.slotCount) * MemoryLayout<Slot>.stride)
      .assumingMemoryBound(to: SlotDetail.self) + Int(indexInChunk)
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// The process-wide table of handles. It grows by chunks that never move;
// looking up an index is one load of the directory. Growing takes the table's
// monitor and does not stop readers: a chunk is whole before the directory
// names it (stored releasing, loaded acquiring).
//
// A chunk belongs to one registry at a time, which gives out its slots first
// in, first out (G4). When a registry is closed its chunks go to the next one
// that needs them, and their generations go on (G2).
//
// All generations start at one random point of the process (G3). A slot whose
// generations have gone round once is retired for good.
// Tried to break by: Tests/C (handles.c, pairs.c, stress.c).

import CPlatform
import Synchronization

/// Process-wide variables of the table and of what lies above it.
///
/// Zero bits are their initial values.
package struct ProcessState: ~Copyable {
  package let isStarted = Atomic<Bool>(false)
  /// The first generation of this process.
  package let firstGeneration = Atomic<UInt32>(0)
  /// Generations that each slot has; 0 means all 2^32 - 1.
  package let generationLimit = Atomic<UInt32>(0)
  /// Chunks in the directory, those of a forked child's parent included.
  package let chunkCount = Atomic<UInt32>(0)
  /// Chunks that were inherited through fork: their handles are not ours.
  package let inheritedChunks = Atomic<UInt32>(0)
  /// Chunks of closed registries; guarded by the table's monitor.
  package var freeChunks: ChunkPointer?
  /// The thread records, newest first; see Calls/ThreadRecord.swift.
  package let threads = Atomic<UInt>(0)
  package let threadCount = Atomic<UInt32>(0)
  package let threadNumber = Atomic<UInt32>(0)
  package let heavyFences = Atomic<UInt64>(0)
  package let waiters = Atomic<UInt32>(0)
  package let sharedRegistry = Atomic<UInt64>(0)
  /// What gives out the addresses of thunks; guarded by their monitor.
  package let thunks = Atomic<UInt>(0)

  @inline(__always)
  package static var shared: UnsafeMutablePointer<ProcessState> {
    cbr_process_state().assumingMemoryBound(to: ProcessState.self)
  }
}

package enum Table {
  /// Looks up the slot of an index; nil where the table has not grown to it,
  /// or the slot was inherited through fork.
  @inline(__always)
  package static func slot(at index: UInt32) -> SlotPointer? {
    guard let chunk = chunk(at: index) else { return nil }
    return chunk.slot(index & (Chunk.slotCount &- 1))
  }

  @inline(__always)
  package static func slot(of handle: UInt64) -> SlotPointer? {
    guard let chunk = chunk(at: Handle.index(of: handle)) else { return nil }
    return chunk.slot(of: handle)
  }

  @inline(__always)
  package static func chunk(at index: UInt32) -> ChunkPointer? {
    cbr_directory_get(index >> Chunk.slotBits)?
      .assumingMemoryBound(to: Chunk.self)
  }

  /// The slot of a handle that is known to have one.
  @inline(__always)
  package static func knownSlot(of handle: UInt64) -> SlotPointer {
    chunk(at: Handle.index(of: handle)).unsafelyUnwrapped.slot(of: handle)
  }

  /// The slot of an index that is known to exist.
  @inline(__always)
  package static func knownSlot(at index: UInt32) -> SlotPointer {
    slot(at: index).unsafelyUnwrapped
  }

  @inline(__always)
  package static func knownDetail(at index: UInt32) -> SlotDetailPointer {
    chunk(at: index).unsafelyUnwrapped
      .detail(index & (Chunk.slotCount &- 1))
  }

  /// The registry that a handle's chunk belongs to now; none without one.
  package static func registry(of handle: UInt64) -> UInt64 {
    chunk(at: Handle.index(of: handle))?.pointee.registry.load(
      ordering: .acquiring) ?? Handle.none
  }

  /// Whether the handle's slot was inherited through fork.
  package static func isInherited(_ handle: UInt64) -> Bool {
    Handle.index(of: handle) >> Chunk.slotBits
      < ProcessState.shared.pointee.inheritedChunks.load(ordering: .relaxed)
  }

  /// How many generations of a slot came before this one.
  package static func age(ofGeneration generation: UInt32) -> UInt32 {
    generation
      &- ProcessState.shared.pointee.firstGeneration.load(ordering: .relaxed)
  }

  /// The last age that a slot may reach; at it the slot is retired.
  package static var lastAge: UInt32 {
    let limit = ProcessState.shared.pointee.generationLimit.load(
      ordering: .relaxed)
    return limit == 0 ? .max : limit
  }
}

extension Table {
  /// How many chunks there can be: the very last slot is `Slot.noIndex`, and
  /// its chunk is left out.
  package static var chunkLimit: UInt32 {
    Handle.slotLimit / Chunk.slotCount - 1
  }

  /// Gets a chunk that is no registry's yet.
  ///
  /// Nil with `.noMemory` or `.limit`.
  package static func takeChunk(status: inout Status) -> ChunkPointer? {
    let state = ProcessState.shared
    let taken: (ChunkPointer?, Status) = Monitor.table.locked {
      if let chunk = state.pointee.freeChunks {
        state.pointee.freeChunks = chunk.pointee.next
        return (chunk, .ok)
      }
      return grow()
    }
    guard let chunk = taken.0 else {
      status = taken.1
      return nil
    }
    chunk.pointee.next = nil
    Hook.tableGrown.reached(Handle.none)
    return chunk
  }

  private static func grow() -> (ChunkPointer?, Status) {
    let state = ProcessState.shared
    let number = state.pointee.chunkCount.load(ordering: .relaxed)
    guard number < chunkLimit else { return (nil, .limit) }
    let made = ChunkPointer.make(
      firstIndex: number * Chunk.slotCount,
      generation: state.pointee.firstGeneration.load(ordering: .relaxed))
    guard let made else { return (nil, .noMemory) }
    state.pointee.chunkCount.store(number + 1, ordering: .releasing)
    cbr_directory_set(number, made)
    return (made, .ok)
  }

  /// Takes back the chunks of a closed registry, whose slots are all free or
  /// retired.
  ///
  /// Every slot of a chunk goes on from the highest generation.
  package static func returnChunks(_ first: ChunkPointer?) {
    var each = first
    while let chunk = each {
      each = chunk.pointee.next
      let isUsable = refresh(chunk)
      chunk.pointee.registry.store(Handle.none, ordering: .releasing)
      guard isUsable else { continue }
      let state = ProcessState.shared
      Monitor.table.locked {
        // At the end of the list, so that no chunk wears out early.
        chunk.pointee.next = nil
        guard var last = state.pointee.freeChunks else {
          state.pointee.freeChunks = chunk
          return
        }
        while let next = last.pointee.next { last = next }
        last.pointee.next = chunk
      }
    }
  }

  /// False when the chunk's generations are used up.
  private static func refresh(_ chunk: ChunkPointer) -> Bool {
    let first = ProcessState.shared.pointee.firstGeneration.load(
      ordering: .relaxed)
    var highest: UInt32 = 0
    for index in 0..<Chunk.slotCount {
      let word = chunk.slot(index).pointee.word.load(ordering: .relaxed)
      highest = max(highest, Handle.generation(of: word) &- first)
    }
    chunk.pointee.base.store(highest, ordering: .relaxed)
    guard highest < lastAge else { return false }
    for index in 0..<Chunk.slotCount {
      chunk.slot(index).pointee.word.store(
        Handle.freeWord(generation: first &+ highest, next: Slot.noIndex),
        ordering: .relaxed)
    }
    return true
  }
}

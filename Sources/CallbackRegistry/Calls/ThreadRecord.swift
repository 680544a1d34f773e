// SPDX-License-Identifier: Apache-2.0
//
// What the library knows of one thread: its pins, its counts of calls, its
// rings and its last error. Records are in one list that only grows; when a
// thread ends, its record waits there for the next thread.
//
// Shared variables
//   isUsed      taken by compare-and-swap (acquiring), given back (releasing)
//   depth, pin cells, blocks: see Pins.swift
//   cells       see CallCells.swift
//   waitingFor, waitingSince, visit, reachedFrom: guarded by the monitor of waiting
//   number      stored by the owner (releasing), loaded (acquiring) by whoever
//               asks whether the thread of that number still lives, so that it
//               may take over what that thread wrote
// Everything else is the owner's alone.
// Memory: a record is never freed, so a scan may walk the list at any time.

import CPlatform
import Synchronization

package struct ThreadRecord: ~Copyable {
  package let depth = Atomic<UInt64>(0)
  package let isUsed = Atomic<Bool>(true)
  package let number = Atomic<UInt32>(0)
  package let deepPins = Atomic<UInt>(0)
  /// The owner's place in its chain of blocks.
  var topBlock: PinBlockPointer?
  package let cellLock = Atomic<Bool>(false)

  package var waitingFor: UInt64 = 0
  /// When it waits for room in a queue: how often that had been made then.
  package var waitingSince: UInt64?
  package var visit: UInt64 = 0
  /// Which thread the search came from.
  var reachedFrom: ThreadPointer?

  /// Records whose ends the thread has yet to tell, the present one first.
  package var ended: RecordHeaderPointer?
  /// How many emissions the thread is inside.
  package var emissions: UInt32 = 0

  /// The ring that was used last, and of which recorder.
  var heldRing: RingPointer?
  var heldIdentity: UInt64 = 0
  var heldRings: UnsafeMutablePointer<HeldRing>?
  package var kernelNumber: UInt32 = 0
  /// When the thread began to use the library, in ticks.
  var began: UInt64 = 0
  package var error = ErrorRecord()
  /// What the stamps of its pin cells began with: no other record's are near.
  let firstStamp: UInt64
  let next: ThreadPointer?

  init(next: ThreadPointer?, firstStamp: UInt64) {
    self.next = next
    self.firstStamp = firstStamp
  }
}

/// What went wrong last.
///
/// The sentence about handles is made when it is asked for, so that a refused
/// call costs no text.
package struct ErrorRecord {
  package var status: Status = .ok
  /// Whether the text has been written already.
  package var hasText = false
  /// The text was written by the failing check itself, and is on its way up.
  package var isFresh = false
  package var handle: UInt64 = 0
  package var other: UInt64 = 0
  package var thread: UInt32 = 0

  package init() {}
}

package typealias ThreadPointer = UnsafeMutablePointer<ThreadRecord>

extension ThreadRecord {
  // The record is followed by its pin cells and their stamps, cells of counts,
  // and the text of its last error, at fixed distances.
  static let pinsOffset = 192
  static let stampsOffset = pinsOffset + Int(Pins.inlineCount) * 8
  static let cellsOffset = stampsOffset + Int(Pins.inlineCount) * 8
  static let errorOffset =
    cellsOffset + CallCell.count * MemoryLayout<CallCell>.stride
  package static let errorBytes = 1024
  static let scratchOffset = errorOffset + errorBytes
  static let bytes = scratchOffset + PinSnapshot.roomCount * 8
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// The calling thread's record; nil before its first use of the library.
  @inline(__always)
  package static var current: ThreadPointer? {
    cbr_thread_get()?.assumingMemoryBound(to: ThreadRecord.self)
  }

  package static var first: ThreadPointer? {
    ThreadPointer(
      bitPattern: ProcessState.shared.pointee.threads.load(
        ordering: .acquiring))
  }

  @inline(__always)
  package var next: ThreadPointer? { pointee.next }

  /// Room for a snapshot of pins.
  ///
  /// No user code runs while it is in use.
  package var scratch: UnsafeMutablePointer<UInt64> {
    (UnsafeMutableRawPointer(self) + ThreadRecord.scratchOffset)
      .assumingMemoryBound(to: UInt64.self)
  }

  package var errorText: UnsafeMutablePointer<CChar> {
    (UnsafeMutableRawPointer(self) + ThreadRecord.errorOffset)
      .assumingMemoryBound(to: CChar.self)
  }

  /// Gives the calling thread a record: one that an ended thread left, or a new
  /// one.
  ///
  /// Nil without memory.
  package static func attach() -> ThreadPointer? {
    guard let record = reuse() ?? make() else { return nil }
    let state = ProcessState.shared
    state.pointee.threadCount.wrappingAdd(1, ordering: .relaxed)
    let number = state.pointee.threadNumber.wrappingAdd(1, ordering: .relaxed)
    record.pointee.number.store(number.newValue, ordering: .releasing)
    record.pointee.kernelNumber = cbr_thread_kernel_number()
    record.pointee.began = Ticks.now
    record.pointee.error = ErrorRecord()
    record.pointee.emissions = 0
    record.pointee.ended = nil
    record.resetDepth()
    cbr_thread_set(record)
    guard cbr_thread_on_exit(record) else {
      record.detach()
      return nil
    }
    return record
  }

  /// Gives the record back, empty, at the end of its thread.
  package func detach() {
    cbr_thread_set(nil)
    forgetRings()
    ProcessState.shared.pointee.threadCount.wrappingSubtract(
      1, ordering: .relaxed)
    pointee.isUsed.store(false, ordering: .releasing)
  }

  private static func reuse() -> ThreadPointer? {
    var record = first
    while let each = record {
      if !each.pointee.isUsed.load(ordering: .relaxed) {
        let (isTaken, _) = each.pointee.isUsed.compareExchange(
          expected: false, desired: true, ordering: .acquiring)
        if isTaken { return each }
      }
      record = each.next
    }
    return nil
  }

  private static func make() -> ThreadPointer? {
    let memory = Memory.allocateBytes(ThreadRecord.bytes, alignment: 64)
    guard let memory else { return nil }
    let record = memory.bindMemory(to: ThreadRecord.self, capacity: 1)
    let state = ProcessState.shared
    return Monitor.table.locked {
      // Records are numbered by how many there are, from one on.
      let number = (first?.pointee.firstStamp ?? 0) + 1 << 40
      record.initialize(to: ThreadRecord(next: first, firstStamp: number))
      record.initializePins()
      record.initializeCells()
      state.pointee.threads.store(
        UInt(bitPattern: record), ordering: .releasing)
      return record
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// A ring of event records between one thread and the writer of one history.
//
// Shared variables
//   head      the producer stores (releasing) after the records below it are
//             whole; the writer loads (acquiring) before it reads them
//   tail      the writer stores (releasing) after it has committed what lies
//             below; the producer loads (acquiring) before it overwrites that
//   emitted   the producer stores (relaxed); statistics load it: a count
//   holder    the number of the thread that records here. When that thread has
//             ended, the next takes its place by compare-and-swap (acquiring)
//   loss      guarded by the recorder's monitor
// Everything else is written by the producer alone.
// Memory: a ring belongs to its recorder, and is freed with it, after every
// thread that could record there has left the registries of that history.

import Synchronization

package struct Ring: ~Copyable {
  package let head = Atomic<UInt64>(0)
  package let tail = Atomic<UInt64>(0)
  package let emitted = Atomic<UInt64>(0)
  package let holder: Atomic<UInt32>

  /// What the producer last saw of `tail`.
  fileprivate var seenTail: UInt64 = 0
  /// Events so far, those that found no room included.
  fileprivate var sequence: UInt64 = 0

  package let number: UInt32
  package let capacity: UInt64
  package let words: UnsafeMutablePointer<UInt64>
  package let next: UnsafeMutablePointer<Ring>?

  package var loss = Loss()
}

/// Events that a ring had no room for.
package struct Loss {
  package var count: UInt64 = 0
  package var firstSequence: UInt64 = 0
  package var lastSequence: UInt64 = 0
  package var firstTime: UInt64 = 0
  package var lastTime: UInt64 = 0

  mutating func add(sequence: UInt64, time: UInt64) {
    if count == 0 {
      firstSequence = sequence
      firstTime = time
    }
    count += 1
    lastSequence = sequence
    lastTime = time
  }

  /// Adds losses that came later.
  mutating func add(_ later: Loss) {
    guard later.count > 0 else { return }
    if count == 0 {
      self = later
      return
    }
    count += later.count
    lastSequence = later.lastSequence
    lastTime = later.lastTime
  }
}

package typealias RingPointer = UnsafeMutablePointer<Ring>

extension UnsafeMutablePointer where Pointee == Ring {
  /// Makes a ring for a thread; nil without memory.
  ///
  /// `capacity` is a power of two of records.
  static func make(
    number: UInt32, capacity: UInt64, holder: UInt32, next: RingPointer?
  ) -> RingPointer? {
    guard let ring = Memory.allocate(Ring.self) else { return nil }
    let words = Memory.allocate(
      UInt64.self, count: Int(capacity) * EventLayout.wordsPerRecord)
    guard let words else {
      Memory.release(ring)
      return nil
    }
    ring.initialize(
      to: Ring(
        holder: Atomic(holder), number: number, capacity: capacity,
        words: words, next: next))
    return ring
  }

  func destroy() {
    Memory.release(pointee.words)
    deinitialize(count: 1)
    Memory.release(self)
  }

  /// The four words of a record.
  @inline(__always)
  package func record(at position: UInt64) -> UnsafeMutablePointer<UInt64> {
    pointee.words
      + Int(truncatingIfNeeded: position & (pointee.capacity &- 1))
      &* EventLayout.wordsPerRecord
  }

  /// Whether `records` more fit.
  ///
  /// Called by the producer.
  @inline(__always)
  func hasRoom(for records: UInt64) -> Bool {
    let end = pointee.head.load(ordering: .relaxed) &+ records
    if end &- pointee.seenTail <= pointee.capacity { return true }
    pointee.seenTail = pointee.tail.load(ordering: .acquiring)
    return end &- pointee.seenTail <= pointee.capacity
  }

  /// Numbers the next event.
  @inline(__always)
  func takeSequence() -> UInt64 {
    let sequence = pointee.sequence
    pointee.sequence = sequence &+ 1
    pointee.emitted.store(sequence &+ 1, ordering: .relaxed)
    return sequence
  }

  /// Writes one event into room that is there.
  @inline(__always)
  func write(
    kind: EventKind, flags: UInt8, time: UInt64, handle: UInt64,
    argument: UInt32
  ) {
    let position = pointee.head.load(ordering: .relaxed)
    let record = record(at: position)
    record[1] = time
    record[2] = handle
    record[3] = UInt64(argument) << 32
    record[0] = EventLayout.head(
      sequence: takeSequence(), kind: kind, flags: flags)
    pointee.head.store(position &+ 1, ordering: .releasing)
  }

  /// Writes one event with its payload into room that is there.
  func write(
    kind: EventKind, time: UInt64, handle: UInt64, argument: UInt32,
    payload: UnsafeRawBufferPointer
  ) {
    let continuations = EventLayout.continuations(forBytes: payload.count)
    let position = pointee.head.load(ordering: .relaxed)
    let sequence = takeSequence()
    for index in 0..<continuations {
      let record = record(at: position &+ 1 &+ UInt64(index))
      record[0] = EventLayout.head(
        sequence: sequence, kind: .continuation, flags: UInt8(index))
      let offset = index * EventLayout.payloadBytes
      let count = min(EventLayout.payloadBytes, payload.count - offset)
      let target = UnsafeMutableRawPointer(record + 1)
      target.initializeMemory(
        as: UInt8.self, repeating: 0, count: EventLayout.payloadBytes)
      target.copyMemory(
        from: payload.baseAddress! + offset, byteCount: count)
    }
    let record = record(at: position)
    record[1] = time
    record[2] = handle
    record[3] = UInt64(argument) << 32
    record[0] = EventLayout.head(
      sequence: sequence, kind: kind, flags: UInt8(continuations))
    pointee.head.store(
      position &+ 1 &+ UInt64(continuations), ordering: .releasing)
  }
}

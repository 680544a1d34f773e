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
// thread that could record there has left the registries of that history. It is
// on the heap, or in an area of the recorder's file (RingFile.swift).
// Tried to break by: Tests/C (crashes.c, stress.c), Swift's HistoryBoundsTests.

import CPlatform
import Synchronization

package struct Ring: ~Copyable {
  package let head = Atomic<UInt64>(0)
  package let tail = Atomic<UInt64>(0)
  package let emitted = Atomic<UInt64>(0)
  package let holder: Atomic<UInt32>

  /// Up to where the producer writes without looking at `tail` again.
  fileprivate var roomEnd: UInt64
  /// Events so far, those that found no room included.
  fileprivate var sequence: UInt64 = 0

  package let number: UInt32
  /// What the check of each record begins with.
  package let seed: UInt32
  package let isInFile: Bool
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
  /// All of them were dropped because of a policy.
  package var areDropped = true

  package init() {}

  package init(from first: UInt64, to last: UInt64, time: UInt64) {
    count = last - first + 1
    firstSequence = first
    lastSequence = last
    firstTime = time
    lastTime = time
    areDropped = false
  }

  mutating func add(sequence: UInt64, time: UInt64, isDropped: Bool) {
    if count == 0 {
      firstSequence = sequence
      firstTime = time
    }
    count += 1
    lastSequence = sequence
    lastTime = time
    areDropped = areDropped && isDropped
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
    areDropped = areDropped && later.areDropped
  }
}

package typealias RingPointer = UnsafeMutablePointer<Ring>

extension UnsafeMutablePointer where Pointee == Ring {
  /// Makes a ring for a thread; nil without memory.
  ///
  /// `capacity` is a power of two of records.
  package static func make(
    number: UInt32, seed: UInt32 = 0, capacity: UInt64, holder: UInt32,
    next: RingPointer?
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
        holder: Atomic(holder), roomEnd: capacity / 2, number: number,
        seed: seed, isInFile: false,
        capacity: capacity, words: words, next: next))
    return ring
  }

  /// Makes a ring in an area of a file, for records whose checks begin with
  /// `seed`.
  static func make(
    in area: UnsafeMutableRawPointer, seed: UInt32, number: UInt32,
    capacity: UInt64, holder: UInt32, next: RingPointer?
  ) -> RingPointer {
    let ring = area.bindMemory(to: Ring.self, capacity: 1)
    let words = (area + Int(RingFileLayout.ringBytes)).bindMemory(
      to: UInt64.self, capacity: Int(capacity) * EventLayout.wordsPerRecord)
    ring.initialize(
      to: Ring(
        holder: Atomic(holder), roomEnd: capacity / 2, number: number,
        seed: seed, isInFile: true,
        capacity: capacity, words: words, next: next))
    return ring
  }

  /// What the checks of a ring's records begin with, in a file.
  package static func seed(
    of header: RingFileHeaderPointer, number: UInt32
  ) -> UInt32 {
    cbr_check(cbr_check(0, header.pointee.identity.epoch), UInt64(number))
  }

  /// Frees a ring that is on the heap.
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

  /// Whether `records` more fit, as far as the producer knows without looking.
  @inline(__always)
  func hasRoom(for records: UInt64) -> Bool {
    pointee.head.load(ordering: .relaxed) &+ records <= pointee.roomEnd
  }

  /// Looks whether `records` more fit, and whether more than half of the ring
  /// is full then.
  ///
  /// Called by the producer. It looks again when the ring is half full, and
  /// when it is full.
  func lookForRoom(
    for records: UInt64
  ) -> (isThere: Bool, isHalfFull: Bool) {
    let tail = pointee.tail.load(ordering: .acquiring)
    let used = pointee.head.load(ordering: .relaxed) &+ records &- tail
    let half = pointee.capacity / 2
    let isHalfFull = used > half
    pointee.roomEnd = tail &+ (isHalfFull ? pointee.capacity : half)
    return (used <= pointee.capacity, isHalfFull)
  }

  /// Numbers an event that is not written.
  @inline(__always)
  func takeSequence() -> UInt64 {
    let sequence = pointee.sequence
    pointee.sequence = sequence &+ 1
    pointee.emitted.store(sequence &+ 1, ordering: .relaxed)
    return sequence
  }

  /// Lets the reader see what was written, and then counts it: who dies in
  /// between has not returned from recording it.
  @inline(__always)
  private func publish(_ sequence: UInt64, upTo position: UInt64) {
    pointee.sequence = sequence &+ 1
    pointee.head.store(position, ordering: .releasing)
    pointee.emitted.store(sequence &+ 1, ordering: .releasing)
  }

  /// The beginning of a record's check.
  ///
  /// It depends on the place as well, so that what an earlier lap has left
  /// there is never taken for new.
  @inline(__always)
  package func check(
    at position: UInt64, head: UInt64, time: UInt64, handle: UInt64,
    argument: UInt32
  ) -> UInt32 {
    var sum = cbr_check(pointee.seed, position)
    sum = cbr_check(sum, head)
    sum = cbr_check(sum, time)
    sum = cbr_check(sum, handle)
    return cbr_check(sum, UInt64(argument))
  }

  /// Writes one event into room that is there.
  @inline(__always)
  func write(
    kind: EventKind, flags: UInt8, time: UInt64, handle: UInt64,
    argument: UInt32
  ) {
    let position = pointee.head.load(ordering: .relaxed)
    let record = record(at: position)
    let sequence = pointee.sequence
    let head = EventLayout.head(sequence: sequence, kind: kind, flags: flags)
    let check = check(
      at: position, head: head, time: time, handle: handle, argument: argument)
    record[1] = time
    record[2] = handle
    record[3] = UInt64(argument) << 32 | UInt64(check)
    record[0] = head
    publish(sequence, upTo: position &+ 1)
  }

  /// Writes one event with its payload into room that is there.
  func write(
    kind: EventKind, time: UInt64, handle: UInt64, argument: UInt32,
    payload: UnsafeRawBufferPointer
  ) {
    let continuations = EventLayout.continuations(forBytes: payload.count)
    let position = pointee.head.load(ordering: .relaxed)
    let sequence = pointee.sequence
    let head = EventLayout.head(
      sequence: sequence, kind: kind, flags: UInt8(continuations))
    var check = check(
      at: position, head: head, time: time, handle: handle, argument: argument)
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
      check = self.check(check, continuation: record)
    }
    let record = record(at: position)
    record[1] = time
    record[2] = handle
    record[3] = UInt64(argument) << 32 | UInt64(check)
    record[0] = head
    publish(sequence, upTo: position &+ 1 &+ UInt64(continuations))
  }

  /// Adds a continuation record to its event's check.
  private func check(
    _ sum: UInt32, continuation record: UnsafeMutablePointer<UInt64>
  ) -> UInt32 {
    var sum = sum
    for index in 0..<EventLayout.wordsPerRecord {
      sum = cbr_check(sum, record[index])
    }
    return sum
  }

  /// Lets be read what is whole from a position on, and returns where and when
  /// that ends.
  ///
  /// The records are those of a process that has died: the numbers of events
  /// only grow, and a record is not whole when it is of an earlier lap.
  package func publishWhole(
    from position: UInt64, sequence: UInt64
  ) -> (position: UInt64, sequence: UInt64, time: UInt64) {
    let end = position &+ pointee.capacity
    var position = position
    var sequence = sequence
    var time: UInt64 = 0
    pointee.tail.store(position, ordering: .relaxed)
    while position < end, let records = wholeEvent(at: position, before: end) {
      let record = record(at: position)
      let found = EventLayout.sequence(ofHead: record[0])
      guard found >= sequence else { break }
      sequence = found + 1
      time = record[1]
      position += records
    }
    pointee.head.store(position, ordering: .releasing)
    return (position, sequence, time)
  }

  /// How many records an event takes that is whole at a position; nil when
  /// none is there.
  ///
  /// Believes nothing that the check does not vouch for.
  package func wholeEvent(at position: UInt64, before end: UInt64) -> UInt64? {
    let record = record(at: position)
    let head = record[0]
    let kind = EventLayout.kind(ofHead: head)
    guard EventLayout.isRecorded(kind) else { return nil }
    let isCall = kind == EventKind.call.rawValue
    let continuations =
      isCall ? 0 : UInt64(EventLayout.flags(ofHead: head))
    guard position &+ continuations < end else { return nil }
    var sum = check(
      at: position, head: head, time: record[1], handle: record[2],
      argument: UInt32(truncatingIfNeeded: record[3] >> 32))
    var index: UInt64 = 0
    while index < continuations {
      index += 1
      sum = check(sum, continuation: self.record(at: position &+ index))
    }
    let isWhole = sum == UInt32(truncatingIfNeeded: record[3])
    return isWhole ? 1 + continuations : nil
  }
}

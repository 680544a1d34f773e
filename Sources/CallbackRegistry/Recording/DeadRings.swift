// SPDX-License-Identifier: Apache-2.0
//
// The rings of a process that has died, copied from their file. It is read and
// not mapped: whatever becomes of the file meanwhile, nothing here can fault.
// Nothing in it is believed that is not checked.

import CPlatform
import Synchronization

/// What a process knew of one of its rings.
package struct DeadArea {
  package let number: UInt32
  /// How far it had come, and events so far: only to find what is missing.
  package let head: UInt64
  package let emitted: UInt64
}

/// A call that a thread was inside when its process died.
struct DeadCall {
  let ring: UInt32
  let depth: UInt32
  let token: UInt64
  /// In ticks; 0 unknown.
  let began: UInt64
}

package struct DeadRings: ~Copyable {
  package enum Problem: Error {
    case noMemory
    /// It is no file of rings, or of another format.
    case unreadable
  }

  package let header: RingFileHeaderPointer
  private(set) var areas = CheckedArray<DeadArea>()
  private(set) var calls = CheckedArray<DeadCall>()
  /// One ring for each number, the last one first.
  package private(set) var rings: RingPointer?
  package private(set) var ringCount: UInt32 = 0
  private let areaCount: UInt64

  private static var mostAreas: UInt64 { 1 << 16 }

  private init(header: RingFileHeaderPointer, areaCount: UInt64) {
    self.header = header
    self.areaCount = areaCount
  }

  /// Reads a file that its process no longer locks.
  static func read(_ file: Int32) throws(Problem) -> DeadRings {
    let bytes = cbr_file_bytes(file)
    guard bytes >= RingFileLayout.firstArea else { throw .unreadable }
    let memory = Memory.allocateBytes(
      Int(RingFileLayout.firstArea), alignment: 64)
    guard let memory else { throw .noMemory }
    let header = memory.bindMemory(to: RingFileHeader.self, capacity: 1)
    guard cbr_file_read(file, memory, 0, RingFileLayout.firstArea),
      header.pointee.identity.isKnown,
      header.pointee.check == UInt64(header.pointee.identity.check)
    else {
      Memory.release(memory)
      throw .unreadable
    }
    let areaCount =
      (bytes - RingFileLayout.firstArea) / header.pointee.identity.areaBytes
    var rings = DeadRings(
      header: header, areaCount: min(areaCount, Self.mostAreas))
    try rings.readAreas(file)
    return rings
  }

  deinit {
    var ring = rings
    while let each = ring {
      ring = each.pointee.next
      each.destroy()
    }
    Memory.release(header)
  }

  /// Gives the rings to a recorder, which destroys them.
  mutating func hand(to recorder: RecorderPointer) {
    recorder.adopt(rings: rings, count: ringCount)
    rings = nil
  }

  private mutating func readAreas(_ file: Int32) throws(Problem) {
    let memory = Memory.allocateBytes(
      Int(RingFileLayout.ringBytes), alignment: 64)
    guard let memory else { throw .noMemory }
    defer { Memory.release(memory) }
    let found = memory.bindMemory(to: Ring.self, capacity: 1)
    var number: UInt64 = 0
    while number < areaCount {
      let offset =
        RingFileLayout.firstArea + number * header.pointee.identity.areaBytes
      number += 1
      guard cbr_file_read(file, memory, offset, RingFileLayout.ringBytes)
      else { throw .unreadable }
      // Reserved and not yet a ring, or not to be recognised as one.
      guard found.pointee.number > ringCount,
        UInt64(found.pointee.number) <= Self.mostAreas,
        found.pointee.capacity == header.pointee.identity.ringRecords
      else { continue }
      try addRing(found, file: file, at: offset + RingFileLayout.ringBytes)
    }
  }

  /// Adds a ring with its records; numbers in between were in memory only.
  private mutating func addRing(
    _ found: RingPointer, file: Int32, at offset: UInt64
  ) throws(Problem) {
    while ringCount + 1 < found.pointee.number { _ = try makeRing(capacity: 1) }
    let ring = try makeRing(capacity: header.pointee.identity.ringRecords)
    let bytes =
      header.pointee.identity.ringRecords * UInt64(EventLayout.recordBytes)
    guard cbr_file_read(file, ring.pointee.words, offset, bytes) else {
      throw .unreadable
    }
    let area = DeadArea(
      number: ringCount, head: found.pointee.head.load(ordering: .relaxed),
      emitted: found.pointee.emitted.load(ordering: .relaxed))
    guard areas.append(area) else { throw .noMemory }
    try addCalls(of: found)
  }

  private mutating func addCalls(of found: RingPointer) throws(Problem) {
    let stack = (UnsafeMutableRawPointer(found) + RingFileLayout.inFlightOffset)
      .assumingMemoryBound(to: InFlight.self)
    for depth in 0..<InFlight.count {
      let token = stack[Int(depth)].token.load(ordering: .relaxed)
      if token == 0 { continue }
      let call = DeadCall(
        ring: ringCount, depth: depth, token: token,
        began: stack[Int(depth)].began.load(ordering: .relaxed))
      guard calls.append(call) else { throw .noMemory }
    }
  }

  private mutating func makeRing(
    capacity: UInt64
  ) throws(Problem) -> RingPointer {
    let ring = RingPointer.make(
      number: ringCount + 1,
      seed: RingPointer.seed(of: header, number: ringCount + 1),
      capacity: capacity, holder: 0, next: rings)
    guard let ring else { throw .noMemory }
    rings = ring
    ringCount += 1
    return ring
  }
}

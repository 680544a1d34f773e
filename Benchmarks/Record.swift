// SPDX-License-Identifier: Apache-2.0
//
// The engine's own step of recording, which is no function of the library: a
// time stamp and a record in a ring. record.c measures it. It is compiled in
// one module with the folders Platform and Recording, embedded as they are in
// the library. The rings are on the heap, and nobody reads them.

import CPlatform
import Synchronization

private let ringRecords: UInt64 = 65_536

/// Makes a recorder without a writer.
@_cdecl("record_recorder")
public func makeRecorder() -> UnsafeMutableRawPointer? {
  guard let monitor = Monitor.make(),
    let recorder = Memory.allocate(Recorder.self)
  else { return nil }
  cbr_platform_start({ _ in }, {}, {}, {})
  recorder.initialize(
    to: Recorder(
      identity: 1, monitor: monitor, writer: monitor, ringRecords: ringRecords,
      blockTimeoutNanoseconds: 0, callPolicy: .abort, eventPolicy: .abort,
      startArgument: nil, start: { _ in }))
  return UnsafeMutableRawPointer(recorder)
}

/// Makes a ring of 2 MiB.
@_cdecl("record_ring")
public func makeRing() -> UnsafeMutableRawPointer? {
  let ring = RingPointer.make(
    number: 1, seed: 1, capacity: ringRecords, holder: 1, next: nil)
  return UnsafeMutableRawPointer(ring)
}

/// Records so many events, each with a time stamp of its own.
@_cdecl("record_events")
public func record(
  by recorder: UnsafeMutableRawPointer, in ring: UnsafeMutableRawPointer,
  count: UInt64
) {
  let recorder = recorder.assumingMemoryBound(to: Recorder.self)
  let ring = ring.assumingMemoryBound(to: Ring.self)
  for _ in 0..<count { recorder.record(.leased, in: ring, handle: count) }
}

/// Makes room, as a writer does that has written everything.
@_cdecl("record_empty")
public func empty(_ ring: UnsafeMutableRawPointer) {
  let ring = ring.assumingMemoryBound(to: Ring.self)
  let head = ring.pointee.head.load(ordering: .relaxed)
  ring.pointee.tail.store(head, ordering: .releasing)
}

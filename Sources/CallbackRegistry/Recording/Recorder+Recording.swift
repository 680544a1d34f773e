// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == Recorder {
  /// Records a call that ends now.
  ///
  /// When there is no room it is counted, or what its policy says. A stamp that
  /// is before its call's begin, of a counter that went back, is not believed.
  @inline(__always)
  package func recordCall(
    in ring: RingPointer, token: UInt64, began: UInt64, ended: UInt64
  ) {
    let ended = max(began, ended)
    guard
      ring.hasRoom(for: 1) || lookForRoom(1, in: ring)
        || makeRoomForCall(in: ring, token: token, began: began, ended: ended)
    else { return }
    var duration = ended &- began
    var shift: UInt8 = 0
    // Longer than 32 bits of ticks (about a second): coarser units.
    while duration > UInt64(UInt32.max) {
      duration >>= 1
      shift += 1
    }
    ring.write(
      kind: .call, flags: shift, time: began, handle: token,
      argument: UInt32(truncatingIfNeeded: duration))
  }

  /// Looks how far the writer has come, and wakes it when half of the ring is
  /// full.
  private func lookForRoom(_ records: UInt64, in ring: RingPointer) -> Bool {
    let room = ring.lookForRoom(for: records)
    if room.isHalfFull, !pointee.isWriterWanted.load(ordering: .relaxed) {
      wakeWriter()
    }
    return room.isThere
  }

  /// Follows the policy for calls without room; true: there is room now.
  private func makeRoomForCall(
    in ring: RingPointer, token: UInt64, began: UInt64, ended: UInt64
  ) -> Bool {
    switch pointee.callPolicy {
    case .block:
      if waitForRoom(1, in: ring) { return true }
      aggregate(token: token, ticks: ended &- began, in: ring, time: ended)
    case .count:
      aggregate(token: token, ticks: ended &- began, in: ring, time: ended)
    case .drop: drop(in: ring, time: ended)
    case .abort: abort()
    }
    return false
  }

  /// Counts a call, exactly, until there is room again.
  private func aggregate(
    token: UInt64, ticks: UInt64, in ring: RingPointer, time: UInt64
  ) {
    Hook.ringFull.reached(token)
    pointee.monitor.locked {
      if pointee.aggregates.add(token: token, ticks: ticks) {
        fileHeader?.pointee.aggregated.wrappingAdd(1, ordering: .releasing)
      } else {
        countLoss(in: ring, time: time, isDropped: false)
      }
    }
    if !pointee.isWriterWanted.load(ordering: .relaxed) { wakeWriter() }
  }

  /// Follows the policy for other events without room; true: there is room
  /// now.
  private func makeRoom(
    for records: UInt64, in ring: RingPointer, time: UInt64
  ) -> Bool {
    switch pointee.eventPolicy {
    case .block, .count:
      if waitForRoom(records, in: ring) { return true }
      pointee.monitor.locked {
        countLoss(in: ring, time: time, isDropped: false)
      }
    case .drop: drop(in: ring, time: time)
    case .abort: abort()
    }
    return false
  }

  private func drop(in ring: RingPointer, time: UInt64) {
    Hook.ringFull.reached(0)
    pointee.monitor.locked { countLoss(in: ring, time: time, isDropped: true) }
    if !pointee.isWriterWanted.load(ordering: .relaxed) { wakeWriter() }
  }

  private func abort() -> Never {
    let sentence: StaticString =
      "callbackregistry: no room for an event, and its policy is to abort\n"
    cbr_print_error(sentence.characters, sentence.utf8CodeUnitCount)
    cbr_abort()
  }

  /// Records an event of the control class; without room what its policy says.
  ///
  /// Must not be called with a lock of the engine held.
  @discardableResult
  package func record(
    _ kind: EventKind, in ring: RingPointer, handle: UInt64,
    argument: UInt32 = 0, time: UInt64 = Ticks.now
  ) -> Bool {
    guard
      ring.hasRoom(for: 1) || lookForRoom(1, in: ring)
        || makeRoom(for: 1, in: ring, time: time)
    else { return false }
    ring.write(
      kind: kind, flags: 0, time: time, handle: handle, argument: argument)
    return true
  }

  /// The same, with payload.
  @discardableResult
  package func record(
    _ kind: EventKind, in ring: RingPointer, handle: UInt64,
    argument: UInt32 = 0, time: UInt64 = Ticks.now,
    payload: UnsafeRawBufferPointer
  ) -> Bool {
    let records =
      1 + UInt64(EventLayout.continuations(forBytes: payload.count))
    guard
      ring.hasRoom(for: records) || lookForRoom(records, in: ring)
        || makeRoom(for: records, in: ring, time: time)
    else { return false }
    ring.write(
      kind: kind, time: time, handle: handle, argument: argument,
      payload: payload)
    return true
  }

  /// The same, with three words of payload.
  @discardableResult
  package func record(
    _ kind: EventKind, in ring: RingPointer, handle: UInt64,
    argument: UInt32 = 0, time: UInt64 = Ticks.now, payload: Payload
  ) -> Bool {
    var payload = payload
    return withUnsafeBytes(of: &payload) { bytes in
      record(
        kind, in: ring, handle: handle, argument: argument, time: time,
        payload: bytes)
    }
  }

  package func wakeWriter() {
    pointee.writer.locked {
      pointee.isWriterWanted.store(true, ordering: .relaxed)
      pointee.writer.wake()
    }
  }

  /// Waits until the writer has made room; false: there was none in time.
  private func waitForRoom(_ records: UInt64, in ring: RingPointer) -> Bool {
    Hook.ringFull.reached(0)
    let deadline = Deadline.after(pointee.blockTimeoutNanoseconds)
    pointee.blocked.wrappingAdd(1, ordering: .relaxed)
    defer { pointee.blocked.wrappingSubtract(1, ordering: .relaxed) }
    wakeWriter()
    return pointee.monitor.locked {
      while !ring.lookForRoom(for: records).isThere {
        let isGood =
          pointee.state.load(ordering: .relaxed)
          == Recorder.State.good.rawValue
        let canFit = records <= ring.pointee.capacity
        guard isGood, canFit, pointee.monitor.wait(until: deadline) else {
          return ring.lookForRoom(for: records).isThere
        }
      }
      return true
    }
  }

  /// Numbers an event that found no room, and remembers that.
  ///
  /// The recorder's monitor is held.
  private func countLoss(in ring: RingPointer, time: UInt64, isDropped: Bool) {
    pointee.lost.wrappingAdd(1, ordering: .relaxed)
    ring.pointee.loss.add(
      sequence: ring.takeSequence(), time: time, isDropped: isDropped)
  }
}

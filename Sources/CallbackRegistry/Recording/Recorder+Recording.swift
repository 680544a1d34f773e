// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension UnsafeMutablePointer where Pointee == Recorder {
  /// Records a call that ends now.
  ///
  /// When there is no room it is counted.
  @inline(__always)
  package func recordCall(
    in ring: RingPointer, token: UInt64, began: UInt64, ended: UInt64
  ) {
    guard ring.hasRoom(for: 1) else {
      return aggregate(
        token: token, ticks: ended &- began, in: ring, time: ended)
    }
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

  /// Counts a call, exactly, until there is room again.
  private func aggregate(
    token: UInt64, ticks: UInt64, in ring: RingPointer, time: UInt64
  ) {
    Hook.ringFull.reached(token)
    pointee.monitor.locked {
      if pointee.aggregates.add(token: token, ticks: ticks) {
        fileHeader?.pointee.aggregated.wrappingAdd(1, ordering: .releasing)
      } else {
        countLoss(in: ring, time: time)
      }
    }
    if !pointee.isWriterWanted.load(ordering: .relaxed) { wakeWriter() }
  }

  /// Records an event of the control class: waits for room, and counts what
  /// finds none in time.
  ///
  /// Must not be called with a lock of the engine held.
  @discardableResult
  package func record(
    _ kind: EventKind, in ring: RingPointer, handle: UInt64,
    argument: UInt32 = 0, time: UInt64 = Ticks.now
  ) -> Bool {
    guard ring.hasRoom(for: 1) || waitForRoom(1, in: ring, time: time) else {
      return false
    }
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
      ring.hasRoom(for: records)
        || waitForRoom(records, in: ring, time: time)
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

  /// Waits until the writer has made room; counts the event when it has not.
  private func waitForRoom(
    _ records: UInt64, in ring: RingPointer, time: UInt64
  ) -> Bool {
    Hook.ringFull.reached(0)
    let deadline = Deadline.after(pointee.blockTimeoutNanoseconds)
    pointee.blocked.wrappingAdd(1, ordering: .relaxed)
    defer { pointee.blocked.wrappingSubtract(1, ordering: .relaxed) }
    wakeWriter()
    return pointee.monitor.locked {
      while !ring.hasRoom(for: records) {
        let isGood =
          pointee.state.load(ordering: .relaxed)
          == Recorder.State.good.rawValue
        let canFit = records <= ring.pointee.capacity
        guard isGood, canFit, pointee.monitor.wait(until: deadline) else {
          if ring.hasRoom(for: records) { return true }
          countLoss(in: ring, time: time)
          return false
        }
      }
      return true
    }
  }

  /// Numbers an event that found no room, and remembers that.
  private func countLoss(in ring: RingPointer, time: UInt64) {
    pointee.lost.wrappingAdd(1, ordering: .relaxed)
    ring.pointee.loss.add(sequence: ring.takeSequence(), time: time)
  }
}

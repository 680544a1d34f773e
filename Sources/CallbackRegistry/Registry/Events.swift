// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension UnsafeMutablePointer where Pointee == Slot {
  /// Whether the history knows a slot: then it is told of its end and its
  /// settling too, whatever the level is by then.
  var isKnownToHistory: Bool {
    pointee.mode.load(ordering: .relaxed) & Mode.wasCounted != 0
  }
}

/// What the registry tells its recorder.
///
/// None of this is done under a lock: an event may have to wait for room.
extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Whether a slot's events go to the history.
  func isRecorded(_ slot: SlotPointer) -> Bool {
    slot.pointee.mode.load(ordering: .relaxed) & Mode.counted != 0
  }

  func record(
    _ kind: EventKind, _ handle: UInt64, argument: UInt32 = 0,
    time: UInt64 = Ticks.now, thread: ThreadPointer
  ) {
    guard let ring = thread.ring(of: pointee.recorder) else { return }
    pointee.recorder.record(
      kind, in: ring, handle: handle, argument: argument, time: time)
  }

  func record(
    _ kind: EventKind, _ handle: UInt64, argument: UInt32 = 0,
    time: UInt64 = Ticks.now, payload: Payload, thread: ThreadPointer
  ) {
    guard let ring = thread.ring(of: pointee.recorder) else { return }
    pointee.recorder.record(
      kind, in: ring, handle: handle, argument: argument, time: time,
      payload: payload)
  }

  func record(
    _ kind: EventKind, _ handle: UInt64, counts: QueueCounts,
    thread: ThreadPointer
  ) {
    guard let ring = thread.ring(of: pointee.recorder) else { return }
    var words: InlineArray<9, UInt64> = [
      counts.posted, counts.delivered, counts.merged, counts.droppedFull,
      counts.droppedStale, counts.droppedRefused, counts.droppedEnded,
      counts.waiting &+ counts.taken, counts.peakItems,
    ]
    withUnsafeBytes(of: &words) { bytes in
      _ = pointee.recorder.record(
        kind, in: ring, handle: handle, payload: bytes)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Switching how much is written to the history.
extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Sets the level of the registry and of all that has none of its own.
  func setLevel(_ level: Level, thread: ThreadPointer) {
    // From here on, new handles have it.
    pointee.level.store(level.rawValue, ordering: .relaxed)
    var cursor = SlotCursor(self)
    while let slot = cursor.next() {
      let word = slot.pointee.word.load(ordering: .acquiring)
      guard Handle.kind(of: word) != nil, Handle.state(ofWord: word) == .live
      else { continue }
      _ = setLevel(level, of: word, slot: slot, isOwn: false, thread: thread)
    }
  }

  /// Sets the level of one live handle.
  ///
  /// False when it is dead. What the history has never heard of is announced,
  /// once, before it is settled: so long the calling thread pins it.
  func setLevel(
    _ level: Level, of handle: UInt64, slot: SlotPointer, isOwn: Bool,
    thread: ThreadPointer
  ) -> Bool {
    guard let pin = thread.pin(handle) else { return false }
    defer { Entering.withdraw(pin, handle, thread: thread) }
    cbr_light_fence()
    guard slot.pointee.word.load(ordering: .acquiring) == handle else {
      return false
    }
    if level != .off, becomesKnown(slot, isOwn: isOwn) {
      announce(handle, thread: thread)
    }
    return pointee.lock.locked {
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      guard slot.pointee.word.load(ordering: .relaxed) == handle else {
        return false
      }
      guard isOwn || mode & Mode.ownLevel == 0 else { return true }
      slot.pointee.mode.store(
        mode & ~Mode.levelMask | level.mode | (isOwn ? Mode.ownLevel : 0),
        ordering: .relaxed)
      return true
    }
  }

  /// Whether the history has not heard of a slot, and shall by the caller.
  private func becomesKnown(_ slot: SlotPointer, isOwn: Bool) -> Bool {
    pointee.lock.locked {
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      guard mode & Mode.wasCounted == 0, isOwn || mode & Mode.ownLevel == 0
      else { return false }
      slot.pointee.mode.store(mode | Mode.wasCounted, ordering: .relaxed)
      return true
    }
  }

  private func announce(_ handle: UInt64, thread: ThreadPointer) {
    guard Handle.kind(of: handle) != .lease,
      let found = description(of: handle)
    else { return }
    record(
      .registered, handle, time: found.registeredTime,
      payload: Payload(
        found.owner, UInt64(found.callback) << 32 | UInt64(found.site),
        found.typeTag),
      thread: thread)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Switching how much is written to the history.
///
/// The history must be able to tell which tokens a switch may have touched: it
/// hears of the switch after the registrations of those, and before they are
/// settled. A registry's switch is recorded when new handles have the level
/// and before others get it; a token's own while it is pinned. Whoever is
/// recording a registration at that time says the level again (Registering).
extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Sets the level of the registry and of all that has none of its own.
  func setLevel(_ level: Level, thread: ThreadPointer) {
    pointee.lock.locked {
      pointee.level.store(level.rawValue, ordering: .relaxed)
    }
    record(
      .leveled, pointee.handle, argument: level.rawValue,
      time: Ticks.afterEffects, thread: thread)
    var cursor = SlotCursor(self)
    while let slot = cursor.next() {
      let word = slot.pointee.word.load(ordering: .acquiring)
      guard Handle.kind(of: word) != nil, Handle.state(ofWord: word) == .live
      else { continue }
      _ = setLevel(nil, of: word, slot: slot, thread: thread)
    }
  }

  /// Sets the level of one live handle; nil: it follows the registry's.
  ///
  /// False when it is dead. What the history has never heard of is announced,
  /// once, before it is settled: so long the calling thread pins it.
  func setLevel(
    _ own: Level?, of handle: UInt64, slot: SlotPointer,
    thread: ThreadPointer
  ) -> Bool {
    guard let pin = thread.pin(handle) else { return false }
    defer { Entering.withdraw(pin, handle, thread: thread) }
    cbr_light_fence()
    guard slot.pointee.word.load(ordering: .acquiring) == handle else {
      return false
    }
    if (own ?? level) != .off, becomesKnown(handle, slot, isOwn: own != nil) {
      announce(handle, thread: thread)
    }
    let isLive: Bool = pointee.lock.locked {
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      guard slot.pointee.word.load(ordering: .relaxed) == handle else {
        return false
      }
      guard own != nil || mode & Mode.ownLevel == 0 else { return true }
      slot.pointee.mode.store(
        mode & ~Mode.levelMask | (own ?? level).mode | Mode.switched
          | (own != nil ? Mode.ownLevel : 0),
        ordering: .relaxed)
      return true
    }
    // Said even when the level is off from here on.
    if isLive, let own {
      record(
        .leveled, handle, argument: own.rawValue, time: Ticks.afterEffects,
        thread: thread)
    }
    return isLive
  }

  /// Whether the history has not heard of a slot, and shall by the caller.
  private func becomesKnown(
    _ handle: UInt64, _ slot: SlotPointer, isOwn: Bool
  ) -> Bool {
    pointee.lock.locked {
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      // Once it is dead its end may have gone untold.
      guard slot.pointee.word.load(ordering: .relaxed) == handle,
        mode & Mode.wasCounted == 0, isOwn || mode & Mode.ownLevel == 0
      else { return false }
      slot.pointee.mode.store(mode | Mode.wasCounted, ordering: .relaxed)
      return true
    }
  }

  private func announce(_ handle: UInt64, thread: ThreadPointer) {
    guard Handle.kind(of: handle) != .lease,
      let found = description(of: handle)
    else { return }
    // Calls before the switch were not told one by one.
    record(
      .registered, handle, argument: Level.lifecycle.rawValue << 16,
      time: found.registeredTime,
      payload: Payload(
        found.owner, UInt64(found.callback) << 32 | UInt64(found.site),
        found.typeTag),
      thread: thread)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What a program asks of a registry's history.
package enum Audit {
  /// Switches how much a registry or one token writes.
  package static func setLevel(_ handle: UInt64, _ level: UInt32) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: nil)
      guard let level = Level(rawValue: level) else {
        throw thread.invalid { text in
          text.append("level is ")
          text.append(level)
          text.append("; levels are 1 to 3")
        }
      }
      let isToken = Handle.kind(of: handle) == .token
      guard isToken || Handle.kind(of: handle) == .registry else {
        throw .kind
      }
      let access = try Access.of(handle, thread: thread)
      let registry = access.registry
      if isToken {
        let slot = Table.knownSlot(at: Handle.index(of: handle))
        guard registry.setLevel(level, of: handle, slot: slot, thread: thread)
        else { throw Access.absent(handle) }
      } else {
        registry.setLevel(level, thread: thread)
      }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// How much a registry writes at this moment; nil with the status.
  package static func level(
    of handle: UInt64
  ) -> (status: Status, level: Level?) {
    guard let thread = Process.currentThread() else { return (.noMemory, nil) }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      let access = try Access.registry(handle, thread: thread)
      return (.ok, access.registry.level)
    } catch {
      return (thread.fail(error, about: handle), nil)
    }
  }

  /// Does something with a registry's history, which stays meanwhile.
  static func withHistory(
    of handle: UInt64, _ body: (HistoryPointer) -> Void
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      let access = try Access.registry(handle, thread: thread)
      body(access.registry.pointee.history)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Adds the program's own remark.
  package static func note(
    in handle: UInt64, about token: UInt64, _ text: UnsafePointer<CChar>?
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      guard let text else { throw thread.invalid("text is NULL") }
      try thread.checkText(text, "text", limit: TextLimit.note, rule: .lines)
      let access = try Access.registry(handle, thread: thread)
      do throws(Status) {
        try check(token, isOf: access)
      } catch {
        throw thread.toThrow(thread.fail(error, about: token))
      }
      let registry = access.registry
      guard let ring = thread.ring(of: registry.pointee.recorder) else {
        throw .noMemory
      }
      let bytes = length(of: text, limit: TextLimit.note)
      let isKept = registry.pointee.recorder.record(
        .note, in: ring, handle: token,
        argument: UInt32(truncatingIfNeeded: bytes),
        payload: UnsafeRawBufferPointer(start: text, count: bytes))
      guard isKept else { throw .audit }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func check(
    _ token: UInt64, isOf access: borrowing Access
  ) throws(Status) {
    guard token != Handle.none else { return }
    try HandleForm.check(token, is: .token)
    guard let chunk = Table.chunk(at: Handle.index(of: token)),
      Access.wasGivenOut(token), Access.absent(token) != .closed
    else { throw Access.absent(token) }
    guard
      chunk.pointee.registry.load(ordering: .acquiring)
        == access.registry.pointee.handle
    else { throw .foreign }
  }

  /// Waits until everything recorded so far is kept.
  ///
  /// Calls that were only counted are written first.
  package static func flush(
    _ handle: UInt64, level: UInt32, until deadline: Deadline,
    achieved: inout UInt64
  ) -> Status {
    achieved = 0
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      guard (1...3).contains(level) else {
        throw thread.invalid("level is not one of CBR_FLUSH_...")
      }
      let access = try Access.registry(handle, thread: thread)
      if level > 1 { access.registry.recordCounts(thread: thread) }
      let status = access.registry.pointee.history.flush(
        level: level, until: deadline, achieved: &achieved)
      if status == .audit {
        return thread.fail(.audit) { text in
          access.registry.pointee.history.appendFault(to: &text)
        }
      }
      if status != .ok { throw status }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }
}

extension Audit {
  /// Records the counts of every registry that is open: the process exits.
  static func recordAllCounts() {
    guard let thread = ThreadPointer.current else { return }
    let chunks = ProcessState.shared.pointee.chunkCount.load(
      ordering: .acquiring)
    for number in 0..<chunks {
      guard let chunk = Table.chunk(at: number * Chunk.slotCount) else {
        continue
      }
      let handle = chunk.pointee.registry.load(ordering: .acquiring)
      // Each registry once: by the chunk that it lies in itself.
      guard handle != Handle.none,
        Handle.index(of: handle) / Chunk.slotCount == number,
        let access = try? Access.registry(handle, thread: thread)
      else { continue }
      access.registry.recordCounts(thread: thread)
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Records the counts of all live tokens that have been called.
  fileprivate func recordCounts(thread: ThreadPointer) {
    var cursor = SlotCursor(self)
    while let slot = cursor.next() {
      let word = slot.pointee.word.load(ordering: .acquiring)
      if Handle.kind(of: word) == .queue, Handle.state(ofWord: word) == .live {
        recordQueue(word, slot: slot, thread: thread)
      }
      guard Handle.kind(of: word) == .token,
        Handle.state(ofWord: word) == .live,
        slot.pointee.mode.load(ordering: .relaxed) & Mode.wasCounted != 0
      else { continue }
      let counts = CallCells.count(word)
      // What is still the token's was the token's while it was counted.
      guard counts.attempts > 0,
        slot.pointee.word.load(ordering: .acquiring) == word
      else { continue }
      record(
        .counted, word, payload: Payload(counts.attempts, counts.unfinished),
        thread: thread)
    }
  }

  /// Records the counts of a queue, which is pinned meanwhile.
  private func recordQueue(
    _ handle: UInt64, slot: SlotPointer, thread: ThreadPointer
  ) {
    guard let pin = thread.pinSpare(handle) else { return }
    cbr_light_fence()
    if slot.pointee.word.load(ordering: .acquiring) == handle,
      slot.isKnownToHistory
    {
      slot.queueRecord?.recordCounts(handle, thread: thread)
    }
    Entering.withdraw(pin, handle, thread: thread)
  }
}

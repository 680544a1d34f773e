// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Telling the life of a handle.
package enum Explaining {
  /// Writes the text, cut to size.
  ///
  /// `needed` gets the bytes for all of it.
  package static func explain(
    _ handle: UInt64, _ start: UnsafeMutablePointer<CChar>?, size: Int,
    needed: inout Int
  ) -> Status {
    needed = 0
    var text = Text(start, size: size)
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      guard Handle.isWellFormed(handle) else { throw .invalid }
      if start == nil, size > 0 {
        throw thread.invalid("text is NULL and size is not 0")
      }
      try explain(handle, thread: thread, into: &text)
      needed = text.length + 1
      guard size > 0, text.isCut else { return .ok }
      let bytes = needed
      return thread.fail(.full) { sentence in
        sentence.append("the text takes ")
        sentence.append(bytes)
        sentence.append(" bytes; size is ")
        sentence.append(size)
      }
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  private static func explain(
    _ handle: UInt64, thread: ThreadPointer, into text: inout Text
  ) throws(Status) {
    if let access = try? Access.of(handle, thread: thread) {
      let registry = access.registry
      registry.recordCount(of: handle, thread: thread)
      if let found = registry.description(of: handle) {
        registry.explain(handle, found, into: &text)
        registry.explainUse(handle, found, thread: thread, into: &text)
        _ = registry.pointee.history.explainCalls(of: handle, into: &text)
        return
      }
      if registry.pointee.history.explain(handle, into: &text) { return }
    }
    // Of an earlier run, or of a registry that was closed: any open history
    // that knows it may answer.
    if Histories.explain(handle, into: &text) { return }
    throw Access.absent(handle)
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  fileprivate func explain(
    _ handle: UInt64, _ found: Description, into text: inout Text
  ) {
    let now = Ticks.now
    Describing.append(number: handle, to: &text)
    append(label: found.callback, to: &text)
    text.append(found.endReason == Reason.none ? ": live\n" : ": dead\n")
    text.append("registered ")
    append(age: now &- found.registeredTime, found.registeredThread, &text)
    if let site = site(found.site) {
      text.append(" at ")
      text.append(site.file)
      text.append(":")
      text.append(site.line)
    }
    if found.kind != .registry {
      text.append("\nbelongs to ")
      append(name: found.owner, to: &text)
    }
    text.append("\n")
    if found.endReason != Reason.none {
      text.append("ended ")
      append(age: now &- found.endedTime, found.endedThread, &text)
      text.append(": ")
      Describing.append(reason: found.endReason, to: &text)
      text.append("\n")
    }
  }

  /// What its kind has beside.
  fileprivate func explainUse(
    _ handle: UInt64, _ found: Description, thread: ThreadPointer,
    into text: inout Text
  ) {
    switch found.kind {
    case .token:
      text.append("calls in flight: ")
      // A destroy that runs is pinned like a call.
      text.append(found.state == .destroying ? 0 : Scan.countPins(handle))
      text.append("; leases: ")
      text.append(found.leases)
      text.append("\n")
    case .signal:
      text.append("connections: ")
      text.append(liveConnections(of: handle))
      text.append("\n")
    case .queue: explainMessages(handle, thread: thread, into: &text)
    default:
      guard found.held != Handle.none else { return }
      text.append("holds ")
      append(name: found.held, to: &text)
      text.append("\n")
    }
  }

  private func liveConnections(of signal: UInt64) -> Int {
    let slot = Table.knownSlot(at: Handle.index(of: signal))
    return pointee.lock.locked {
      guard slot.pointee.word.load(ordering: .relaxed) == signal,
        let list = slot.signalRecord?.pointee.list
      else { return 0 }
      return list.countLive(ofFirst: list.ownCount)
    }
  }

  private func explainMessages(
    _ queue: UInt64, thread: ThreadPointer, into text: inout Text
  ) {
    guard let queue = try? PinnedQueue(queue, thread: thread) else { return }
    let counts = queue.record.pointee.monitor.locked {
      queue.record.countsNow()
    }
    text.append("messages waiting: ")
    text.append(counts.waiting)
    text.append(" of ")
    text.append(counts.waitingBytes)
    text.append(" bytes; posted: ")
    text.append(counts.posted)
    text.append("; delivered: ")
    text.append(counts.delivered)
    text.append("; posters that wait: ")
    text.append(counts.blocked)
    text.append("\n")
  }

  private func append(
    age ticks: UInt64, _ thread: UInt32, _ text: inout Text
  ) {
    text.append(
      nanoseconds: pointee.history.nanoseconds(ofTicks: ticks))
    text.append(" ago on thread ")
    text.append(thread)
  }

  private func append(name handle: UInt64, to text: inout Text) {
    Describing.append(number: handle, to: &text)
    guard let found = description(of: handle) else { return }
    append(label: found.callback, to: &text)
  }

  /// Brings the history's counts of one live token up to date.
  fileprivate func recordCount(of handle: UInt64, thread: ThreadPointer) {
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    guard Handle.kind(of: handle) == .token,
      slot.pointee.word.load(ordering: .acquiring) == handle, isRecorded(slot)
    else { return }
    let counts = CallCells.count(handle)
    guard slot.pointee.word.load(ordering: .acquiring) == handle else {
      return
    }
    record(
      .counted, handle, payload: Payload(counts.attempts, counts.unfinished),
      thread: thread)
  }
}

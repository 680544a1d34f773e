// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

package enum Closing {
  /// Ends everything in a registry and closes its history.
  package static func close(
    _ handle: UInt64, timeoutNanoseconds: UInt64
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    let deadline = Deadline.after(timeoutNanoseconds)
    var history: HistoryPointer?
    var identity: UInt64?
    var leaks = LeakReport()
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      let access = try Access.registry(handle, thread: thread)
      history = access.registry.pointee.history
      history?.retain()
      identity = access.registry.pointee.recorder.pointee.identity
      leaks.collect(access.registry)
    } catch {
      let isPast = error == .closed && Access.wasGivenOut(handle)
      guard isPast else { return thread.fail(error, about: handle) }
      // Whoever closed it may not have come to the end of its history.
      let isOver = Histories.awaitClosing(until: deadline)
      return thread.fail(isOver ? .already : .timeout, about: handle)
    }
    var status = Ending.end(
      handle, reason: Reason.ended, waitingUntil: deadline)
    // The last reference: the history is written to its end.
    if let history {
      let isDone = status == .ok
      let kept = history.release(until: deadline) { history in
        guard isDone else { return }
        _ = thread.fail(.audit) { text in history.appendFault(to: &text) }
      }
      if isDone, kept != .ok {
        status = kept == .audit ? kept : thread.fail(kept)
      }
    }
    // Unless it was another thread's.
    if status == .ok || status == .already,
      !Histories.awaitClosing(of: identity, until: deadline)
    {
      status = thread.fail(.timeout, about: handle)
    }
    if status == .ok { leaks.report(to: thread) }
    return status
  }
}

/// A sentence about what was still live when a registry was closed.
///
/// It is built before anything ends, and said when all is over.
private struct LeakReport: ~Copyable {
  private let start: UnsafeMutablePointer<CChar>?
  private var text: Text
  private var isStrict = false
  private var count = 0

  private static let namedLimit = 4
  private static let size = ThreadRecord.errorBytes

  init() {
    start = Memory.allocate(CChar.self, count: Self.size)
    text = Text(start, size: Self.size)
  }

  deinit { Memory.release(start) }

  mutating func collect(_ registry: RegistryPointer) {
    isStrict =
      registry.pointee.strictness & RegistryOptions.strictLeaks != 0
    var cursor = SlotCursor(registry)
    while let slot = cursor.next() {
      let word = slot.pointee.word.load(ordering: .acquiring)
      guard Handle.state(ofWord: word) == .live,
        Self.isLeak(Handle.kind(of: word)),
        let item = registry.item(word)
      else { continue }
      count += 1
      if count <= Self.namedLimit { name(item) }
    }
    if count > Self.namedLimit {
      text.append("; and ")
      text.append(count - Self.namedLimit)
      text.append(" more")
    }
  }

  /// What the program should have ended itself.
  private static func isLeak(_ kind: HandleKind?) -> Bool {
    kind == .token || kind == .lease || kind == .session
  }

  private mutating func name(_ item: Item) {
    text.append(count == 1 ? "still live at close: " : "; ")
    if item.kind == UInt32(HandleKind.lease.rawValue) {
      text.append("a lease on ")
    }
    if item.kind == UInt32(HandleKind.session.rawValue) {
      text.append("the session ")
    }
    text.append("\"")
    text.append(item.label)
    text.append("\"")
    if item.line > 0 {
      text.append(" at ")
      text.append(item.file)
      text.append(":")
      text.append(item.line)
    }
    text.append(", registered ")
    text.append(nanoseconds: item.ageNanoseconds)
    text.append(" before")
  }

  consuming func report(to thread: ThreadPointer) {
    guard count > 0, let start else { return }
    _ = thread.fail(.ok) { $0.append(UnsafePointer(start)) }
    guard isStrict else { return }
    text.append("\n")
    cbr_print_error(start, length(of: start, limit: Self.size))
  }
}

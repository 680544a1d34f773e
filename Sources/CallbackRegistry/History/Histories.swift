// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The histories of files that this process has open: a list, guarded by
/// Monitor.histories, whose head is a part of the process-wide state.
package enum Histories {
  private static var stateOffset: Int { 256 }
  /// How long opening a path waits for another opening or closing of it.
  private static var patience: UInt64 { 2_000_000_000 }
  private static var exitPatience: UInt64 { 1_000_000_000 }

  /// A number that no other history of this process had or will have.
  static func newIdentity() -> UInt64 {
    let last = (cbr_process_state() + stateOffset + 8)
      .assumingMemoryBound(to: UInt64.self)
    return Monitor.histories.locked {
      last.pointee += 1
      return last.pointee
    }
  }

  private static var head: UnsafeMutablePointer<HistoryPointer?> {
    (cbr_process_state() + stateOffset)
      .assumingMemoryBound(to: HistoryPointer?.self)
  }

  /// Returns the history that is open at the path of `candidate`, with one
  /// more reference; or adds the candidate, which is then to be opened and
  /// settled or removed.
  static func join(_ candidate: HistoryPointer) -> HistoryPointer {
    let deadline = Deadline.after(patience)
    Monitor.histories.lock()
    defer { Monitor.histories.unlock() }
    while let known = find(candidate) {
      if known.pointee.stage == .open {
        known.addReferences(1)
        return known
      }
      guard Monitor.histories.wait(until: deadline) else { break }
    }
    candidate.pointee.next = head.pointee
    head.pointee = candidate
    return candidate
  }

  /// A history of the candidate's path that is not about to be gone.
  private static func find(_ candidate: HistoryPointer) -> HistoryPointer? {
    var history = head.pointee
    while let each = history {
      if let one = each.pointee.path, let other = candidate.pointee.path,
        isSame(one, other)
      {
        return each
      }
      history = each.pointee.next
    }
    return nil
  }

  private static func isSame(
    _ one: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>
  ) -> Bool {
    var index = 0
    while one[index] == other[index] {
      if one[index] == 0 { return true }
      index += 1
    }
    return false
  }

  /// The history can be shared from now on.
  static func settle(_ history: HistoryPointer) {
    Monitor.histories.locked {
      history.pointee.stage = .open
      Monitor.histories.wake()
    }
  }

  /// Takes a history out of the list, if it is there.
  static func remove(_ history: HistoryPointer) {
    Monitor.histories.locked {
      if head.pointee == history {
        head.pointee = history.pointee.next
      } else {
        var before = head.pointee
        while let each = before, each.pointee.next != history {
          before = each.pointee.next
        }
        before?.pointee.next = history.pointee.next
      }
      Monitor.histories.wake()
    }
  }

  /// In a forked child: nothing of the parent's is known or touched.
  ///
  /// The files of rings and the leases are the parent's: a copy of their
  /// descriptors would keep them locked after its death.
  package static func forgetAfterFork() {
    var history = head.pointee
    while let each = history {
      each.recorder.closeFileOnly()
      each.pointee.database?.connection.lease?.pointee.closeFile()
      history = each.pointee.next
    }
    head.pointee = nil
  }

  /// When the process exits: writes what there is, for one second at most.
  package static func flushAtExit() {
    let deadline = Deadline.after(exitPatience)
    var history = firstOpen(after: nil)
    while let each = history {
      _ = each.flushBeforeExit(until: deadline)
      history = firstOpen(after: each)
      _ = each.release(until: deadline)
    }
    // Those that were released shortly before are written to their end, too.
    _ = awaitClosing(until: deadline)
  }

  /// Waits until a history, or without its recorder's identity any, is no
  /// longer being written to its end.
  ///
  /// False: the deadline came first.
  package static func awaitClosing(
    of identity: UInt64? = nil, until deadline: Deadline
  ) -> Bool {
    Monitor.histories.lock()
    defer { Monitor.histories.unlock() }
    while isClosing(identity) {
      guard Monitor.histories.wait(until: deadline) else {
        return !isClosing(identity)
      }
    }
    return true
  }

  private static func isClosing(_ identity: UInt64?) -> Bool {
    var history = head.pointee
    while let each = history {
      let isMeant =
        identity == nil || each.recorder.pointee.identity == identity
      if isMeant, each.pointee.stage == .closing { return true }
      history = each.pointee.next
    }
    return false
  }

  /// Visits the open histories, each of which stays for that time.
  package static func visitOpen(_ visit: (HistoryPointer) -> Void) {
    var history = firstOpen(after: nil)
    while let each = history {
      visit(each)
      history = firstOpen(after: each)
      _ = each.release(until: .after(0))
    }
  }

  /// Adds the label of a handle that memory no longer knows, and how it ended,
  /// from whichever open history knows it.
  package static func describe(_ handle: UInt64, into text: inout Text) {
    var isKnown = false
    visitOpen { history in
      isKnown = isKnown || history.describe(handle, into: &text)
    }
  }

  /// Tells a handle's life from whichever open history knows it.
  package static func explain(
    _ handle: UInt64, into text: inout Text
  ) -> Bool {
    var isKnown = false
    visitOpen { history in
      isKnown = isKnown || history.explain(handle, into: &text)
    }
    return isKnown
  }

  /// The next open history of the list, with one more reference.
  private static func firstOpen(
    after history: HistoryPointer?
  ) -> HistoryPointer? {
    Monitor.histories.locked {
      var next = history.map { $0.pointee.next } ?? head.pointee
      while let each = next, each.pointee.stage != .open {
        next = each.pointee.next
      }
      next?.addReferences(1)
      return next
    }
  }
}

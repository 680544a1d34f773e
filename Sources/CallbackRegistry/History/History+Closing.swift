// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == History {
  /// Drops a reference.
  ///
  /// The last one has the writer thread drain all rings, note in `run` that it
  /// was closed, close the database and free everything, and waits for that
  /// until the deadline; afterwards the thread goes on alone. Nobody may record
  /// any more. `.ok`, `.timeout`, `.audit` when something could not be written,
  /// `.deferred` on that thread itself.
  ///
  /// `explain` is called, before all is freed, when the answer is `.audit`.
  package func release(
    until deadline: Deadline, explain: (HistoryPointer) -> Void = { _ in }
  ) -> Status {
    let isLast = Monitor.histories.locked {
      addReferences(-1)
      if pointee.references > 0 { return false }
      pointee.stage = .closing
      return true
    }
    if !isLast { return .ok }
    let wasUsed = recorder.firstRing != nil
    if wasUsed || pointee.path != nil { startWriter() }
    guard pointee.isStarted.load(ordering: .acquiring) else {
      // There is no thread. Nothing is lost if nothing was recorded.
      let status = closeDatabase(after: wasUsed ? .audit : .ok)
      if status == .audit { explain(self) }
      destroy()
      return status
    }
    _ = order { orders in
      orders.isClosing = true
      orders.closingDeadline = deadline
    }
    return waitForClosing(until: deadline, explain: explain)
  }

  /// Adds which file could not be written, why, and what can be done.
  package func appendFault(to text: inout Text) {
    let code = pointee.faultCode.load(ordering: .relaxed)
    guard code != 0, let path = pointee.path else {
      return text.append(Status.audit.text)
    }
    text.append(.database(DatabaseError(code: code)), path: path)
  }

  /// Whoever of the writer and the caller comes last frees the history.
  private func waitForClosing(
    until deadline: Deadline, explain: (HistoryPointer) -> Void
  ) -> Status {
    if isTellingHere {
      // It goes on when its observer returns.
      pointee.progress.locked { pointee.reached.isAbandoned = true }
      return .deferred
    }
    pointee.progress.lock()
    while !pointee.reached.isClosed {
      guard !pointee.progress.wait(until: deadline) else { continue }
      if pointee.reached.isClosed { break }
      pointee.reached.isAbandoned = true
      let isDegraded =
        recorder.pointee.state.load(ordering: .relaxed)
        == Recorder.State.degraded.rawValue
      // From here on the writer may free it.
      if isDegraded { explain(self) }
      pointee.progress.unlock()
      return isDegraded ? .audit : .timeout
    }
    let status = pointee.reached.status
    pointee.progress.unlock()
    if status == .audit { explain(self) }
    destroy()
    return status
  }

  /// The end of the writer thread.
  func finish(_ status: Status) {
    let status = closeDatabase(after: status)
    pointee.progress.lock()
    pointee.reached.status = status
    pointee.reached.isClosed = true
    let isAbandoned = pointee.reached.isAbandoned
    pointee.progress.wake()
    pointee.progress.unlock()
    if isAbandoned { destroy() }
  }

  /// Closes the database and lets others open it.
  ///
  /// Returns what became of it.
  private func closeDatabase(after status: Status) -> Status {
    var result = status
    pointee.turn.takeAsWriter()
    if let database = pointee.database {
      noteEnding(.closed)
      if status == .ok {
        do throws(DatabaseError) {
          try Run.end(database.run, how: "closed", on: database.connection)
          removeRings()
        } catch { result = .audit }
      }
      if pointee.path != nil {
        // Where a reader is in the way, the log stays for the next opening.
        _ = try? database.connection.checkpoint(truncating: true)
      }
      database.connection.close()
      pointee.database = nil
    }
    pointee.turn.give()
    if pointee.path != nil { Histories.remove(self) }
    return result
  }
}

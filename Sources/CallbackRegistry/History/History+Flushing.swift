// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == History {
  /// Waits until all events that were recorded before are kept: level 1 in
  /// their rings, where they are already; 2 committed; 3 synced.
  ///
  /// `achieved` receives the number of events kept there. `.ok`, `.timeout`,
  /// `.audit` when they cannot be written.
  package func flush(
    level: UInt32, until deadline: Deadline, achieved: inout UInt64
  ) -> Status {
    let before = counts()
    achieved = before.emitted &- min(before.emitted, before.lost)
    if level <= 1 { return .ok }
    achieved = kept
    guard recorder.firstRing != nil else { return .ok }
    if isTellingHere { return .wouldDeadlock }
    startWriter()
    guard pointee.isStarted.load(ordering: .acquiring) else { return .audit }
    let number = order { orders in
      if level >= 3 { orders.syncs = orders.flushes }
    }
    let status = wait(until: deadline) { reached in
      if (level >= 3 ? reached.syncs : reached.flushes) >= number {
        return .ok
      }
      return reached.failed >= number ? .audit : nil
    }
    achieved = kept
    return status
  }

  /// Writes what there is, and that the process exits.
  func flushBeforeExit(until deadline: Deadline) -> Status {
    startWriter()
    guard pointee.isStarted.load(ordering: .acquiring) else { return .audit }
    let number = order { orders in orders.isExiting = true }
    noteEnding(.exit)
    return wait(until: deadline) { reached in
      if reached.isExitNoted { return .ok }
      return reached.failed >= number ? .audit : nil
    }
  }

  /// Events in the database, and calls that were counted there instead.
  private var kept: UInt64 {
    pointee.written.load(ordering: .relaxed)
      &+ pointee.aggregated.load(ordering: .relaxed)
  }

  /// Gives the writer an order, and one to flush; returns that one's number.
  func order(_ change: (inout History.Orders) -> Void) -> UInt64 {
    recorder.pointee.writer.lock()
    // Changed apart, so that no access spans more than the one field.
    var orders = pointee.orders
    orders.flushes += 1
    change(&orders)
    pointee.orders = orders
    recorder.pointee.isWriterWanted.store(true, ordering: .relaxed)
    recorder.pointee.writer.wake()
    recorder.pointee.writer.unlock()
    // The writer may be in a pause after a failure.
    pointee.progress.locked { pointee.progress.wake() }
    return orders.flushes
  }

  /// Waits until the writer has done what `look` looks for.
  func wait(
    until deadline: Deadline, _ look: (History.Reached) -> Status?
  ) -> Status {
    pointee.progress.lock()
    defer { pointee.progress.unlock() }
    while true {
      if let status = look(pointee.reached) { return status }
      guard pointee.progress.wait(until: deadline) else {
        return look(pointee.reached) ?? .timeout
      }
    }
  }

  /// Tells those who wait what the writer has done.
  func report(_ change: (inout History.Reached) -> Void) {
    pointee.progress.locked {
      var reached = pointee.reached
      change(&reached)
      pointee.reached = reached
      pointee.progress.wake()
    }
  }
}

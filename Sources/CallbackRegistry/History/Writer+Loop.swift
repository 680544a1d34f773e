// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension Writer {
  enum Outcome {
    case nothing
    case written
    /// There may be more at once.
    case full
    case failed
  }

  /// How long the writer rests: the fuller it found a ring, the shorter.
  private static var usualRest: UInt64 { 20_000_000 }
  /// After batches of a few rows it grows to this: each transaction writes a
  /// dozen pages, however little it adds, and events are safe in their rings.
  private static var longestRest: UInt64 { 500_000_000 }
  private static var fewRows: Int { 256 }
  private static var shortRest: UInt64 { 5_000_000 }
  private static var shortestRest: UInt64 { 1_000_000 }
  /// After a second without events.
  private static var idleRest: UInt64 { 500_000_000 }
  private static var idleAfter: UInt64 { 1_000_000_000 }
  /// How long closing goes on with a database that cannot be written.
  private static var closingPatience: UInt64 { 5_000_000_000 }
  private static var closingPatienceAfterDeadline: UInt64 { 1_000_000_000 }

  /// Writes until the history is to be closed, and returns how that went; or
  /// until nobody is left who could record or close it: nil.
  mutating func loop() -> Status? {
    waitForClock()
    watchLog()
    while true {
      let orders = recorder.pointee.writer.locked { history.pointee.orders }
      let isNew = orders.flushes > flushing
      flushing = orders.flushes
      let outcome = writeBatch(markingTargets: isNew)
      tellChanges()
      if outcome == .failed {
        if orders.isClosing, givesUp(orders) { return .audit }
        history.pauseAfterFailure(nanoseconds: fault.pause, after: orders)
        continue
      }
      let isDone = hasReachedTargets
      if isDone, !settle(orders) {
        if orders.isClosing { return .audit }
        history.pauseAfterFailure(nanoseconds: fault.pause, after: orders)
        continue
      }
      if orders.isClosing {
        if isDone, isDrained {
          coverRestAtEnd()
          return .ok
        }
        closingSince = closingSince ?? cbr_monotonic_nanoseconds()
        if outcome == .nothing, givesUpClosing { return .audit }
      }
      let isMoreKnown = outcome != .nothing && (!isDone || orders.isClosing)
      if outcome == .full && !isPressed || isMoreKnown { continue }
      if isIdle, cbr_is_left_alone() { return nil }
      lookAround()
      rest(isWaitedFor: !isDone || orders.isClosing)
    }
  }

  /// Closing finds nothing to write, but something is left in rings for which
  /// there is no memory.
  private var givesUpClosing: Bool {
    guard let closingSince else { return false }
    return cbr_monotonic_nanoseconds() &- closingSince > Self.closingPatience
  }

  /// Times cannot be converted before the counter has been measured.
  private func waitForClock() {
    let deadline = clock.isReadyAt
    recorder.pointee.writer.lock()
    while !deadline.hasPassed {
      _ = recorder.pointee.writer.wait(until: deadline)
    }
    recorder.pointee.writer.unlock()
  }

  /// Reads and writes one batch.
  private mutating func writeBatch(markingTargets: Bool) -> Outcome {
    if let sample = clock.adjust() { sync = sample }
    lookAtRings(markingTargets: markingTargets)
    fullness = max(fullness, measureFullness())
    gather()
    if batch.isEmpty && !fault.isThere { return .nothing }
    let isFull = !batch.hasRoom
    history.pointee.turn.takeAsWriter()
    defer { history.pointee.turn.give() }
    do throws(DatabaseError) {
      let before = history.pointee.file
      try keepFile()
      // What has been read is to be read again for another database.
      if history.pointee.file != before { gather() }
      try keepLog()
      try write()
    } catch {
      fail(error)
      mend(error)
      return .failed
    }
    history.setState(.good)
    history.pointee.faultCode.store(0, ordering: .relaxed)
    lastWriting = cbr_monotonic_nanoseconds()
    keepBounds()
    return isFull ? .full : .written
  }

  /// Notes a failure, and tells those who wait for a flush.
  private mutating func fail(_ error: DatabaseError) {
    fault.add(error, lost: recorder.lostEvents)
    history.pointee.faultCode.store(error.code, ordering: .relaxed)
    if fault.isPatient { return }
    fault.isSevere = true
    history.setState(.degraded)
    let number = flushing
    history.report { reached in reached.failed = number }
  }

  /// Everything asked for is committed: syncs it if need be, and says so.
  ///
  /// False: that failed, and is tried again.
  private mutating func settle(_ orders: History.Orders) -> Bool {
    let needsSync = orders.syncs > synced && history.pointee.path != nil
    let needsExit = orders.isExiting && !isExitNoted
    guard needsSync || needsExit || settled < flushing else { return true }
    if needsSync || needsExit {
      history.pointee.turn.takeAsWriter()
      defer { history.pointee.turn.give() }
      do throws(DatabaseError) {
        if needsExit {
          coverRest()
          try Run.end(run, how: "exit", on: connection)
        }
        if needsSync { try connection.sync() }
      } catch {
        fail(error)
        return false
      }
      isExitNoted = isExitNoted || needsExit
    }
    synced = orders.syncs
    settled = flushing
    let number = flushing
    let isExitNoted = isExitNoted
    history.report { reached in
      reached.flushes = number
      reached.syncs = max(reached.syncs, orders.syncs)
      reached.isExitNoted = isExitNoted
    }
    return true
  }

  private func givesUp(_ orders: History.Orders) -> Bool {
    let patience =
      orders.closingDeadline.hasPassed
      ? Self.closingPatienceAfterDeadline : Self.closingPatience
    return cbr_monotonic_nanoseconds() &- fault.beganAt > patience
  }

  private var isIdle: Bool {
    cbr_monotonic_nanoseconds() &- lastWriting > Self.idleAfter
  }

  /// Waits until it is time for the next batch, or the writer is wanted.
  private mutating func rest(isWaitedFor: Bool) {
    let isIdle = isIdle
    if isIdle, hasLog { checkpoint() }
    if isPressed, !isWaitedFor { return restUnderPressure() }
    let time =
      fullness >= 64 || isWaitedFor
      ? Self.shortestRest
      : fullness >= 16
        ? Self.shortRest
        : isIdle ? Self.idleRest : calmRest()
    let deadline = Deadline.after(time)
    fullness = 0
    recorder.pointee.writer.lock()
    while !recorder.pointee.isWriterWanted.load(ordering: .relaxed),
      recorder.pointee.writer.wait(until: deadline)
    {}
    recorder.pointee.isWriterWanted.store(false, ordering: .relaxed)
    recorder.pointee.writer.unlock()
  }

  private mutating func calmRest() -> UInt64 {
    let isCalm = batch.rowCount < Self.fewRows
    restBefore =
      isCalm ? min(restBefore * 2, Self.longestRest) : Self.usualRest
    return restBefore
  }

  /// Calls alone do not end this rest: they are counted where they happen.
  private mutating func restUnderPressure() {
    let deadline = Deadline.after(pressedRest)
    let asked = flushing
    recorder.pointee.writer.lock()
    while recorder.pointee.blocked.load(ordering: .relaxed) == 0,
      history.pointee.orders.flushes == asked,
      recorder.pointee.writer.wait(until: deadline)
    {}
    recorder.pointee.isWriterWanted.store(false, ordering: .relaxed)
    recorder.pointee.writer.unlock()
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Keeps a history within its limits, in steps: what begins, ends or deletes
// something is a transaction of its own, short enough that nobody waits for it.
// After a batch there are as many as it takes to delete no less than was added.

import CPlatform
import Synchronization

extension Writer {
  /// Control events that are deleted at once.
  private static var eventsAtOnce: UInt64 { 2_048 }

  /// How much of each kind is there.
  private struct Usage {
    var calls: UInt64 = 0
    var events: UInt64 = 0
    var bytes: UInt64 = 0
  }

  /// What a rule wants to be deleted.
  private enum Excess {
    case calls
    case events
  }

  /// Called after each batch, with the turn.
  mutating func keepLimitsAfterBatch() {
    var steps = 1 + UInt64(batch.controlCount) / Self.eventsAtOnce
    while steps > 0, keepLimits() { steps -= 1 }
  }

  /// Takes one step, also now and then without a batch, with the turn.
  ///
  /// False when nothing is beyond a limit, or it could not be deleted.
  @discardableResult
  mutating func keepLimits() -> Bool {
    do throws(DatabaseError) {
      if segments.isLastFull { try segments.add(on: connection) }
      var text = scratch.text
      guard let excess = try findExcess(rule: &text) else { return false }
      switch excess {
      case .calls: try dropCalls(because: scratch.start)
      case .events: try deleteEvents(because: scratch.start)
      }
      // Until a block has it, somebody else may have made its row of `purge`.
      coverRest()
      return true
    } catch {
      // Locked, or without room: it is tried again after the next batch.
      return false
    }
  }

  /// What is to be deleted first, and the rule in words; nil: nothing.
  private func findExcess(
    rule: inout Text
  ) throws(DatabaseError) -> Excess? {
    let limits = history.pointee.limits
    if limits.callAge != .max,
      try age(of: .oldestCalls, elseYoung: 0) > limits.callAge
    {
      rule.append("calls are older than ")
      rule.append(nanoseconds: limits.callAge)
      return .calls
    }
    let usage = try measureUsage()
    if usage.calls > limits.calls {
      rule.append("more calls than ")
      rule.append(limits.calls)
      return .calls
    }
    if usage.bytes > limits.bytes {
      rule.append("more bytes than ")
      rule.append(limits.bytes)
      return usage.calls > 0 ? .calls : .events
    }
    if usage.events > limits.events {
      rule.append("more other events than ")
      rule.append(limits.events)
      return .events
    }
    // A part of them at a time, so that not each makes a row of `purge`.
    if limits.eventAge != .max,
      try age(of: .oldestEvent, elseYoung: 0)
        > limits.eventAge &+ limits.eventAge / 8
    {
      rule.append("other events are older than ")
      rule.append(nanoseconds: limits.eventAge)
      return .events
    }
    return nil
  }

  private func measureUsage() throws(DatabaseError) -> Usage {
    let statement = statements[.measureUsage]
    guard try statement.step() else { throw .corrupt }
    defer { statement.reset() }
    var usage = Usage()
    usage.calls = statement.unsigned(0)
    usage.events = statement.unsigned(1)
    // Beside the database may be more than there is room for in all.
    let limit = history.pointee.limits.bytes
    let beside = min(bytesBeside, limit / 4 &* 3)
    usage.bytes = statement.unsigned(2) &+ beside
    return usage
  }

  /// How old the newest of the oldest is, by the clock of this machine's boot;
  /// at least, when it is of an earlier boot.
  private func age(
    of sentence: Sentence, elseYoung none: UInt64
  ) throws(DatabaseError) -> UInt64 {
    let statement = statements[sentence]
    statement.bind(1, run)
    guard try statement.step() else { return none }
    defer { statement.reset() }
    let now = cbr_monotonic_nanoseconds()
    let isOfThisBoot = statement.integer(1) == 1
    return isOfThisBoot ? now &- min(now, statement.unsigned(0)) : now
  }

  private mutating func dropCalls(
    because rule: UnsafePointer<CChar>
  ) throws(DatabaseError) {
    if segments.isOnlyOne {
      // Its calls go with the next step.
      if segments.rowsInLast > 0 { try segments.add(on: connection) }
      return
    }
    try segments.dropFirst(because: rule, run: run, on: connection)
  }

  private mutating func deleteEvents(
    because rule: UnsafePointer<CChar>
  ) throws(DatabaseError) {
    let statement = statements[.boundOfEvents]
    statement.bind(1, Self.eventsAtOnce)
    guard try statement.step() else { return }
    let bound = statement.integer(0)
    let hasCalls = statement.integer(1) == 1
    statement.reset()
    if hasCalls { return try dropCalls(because: rule) }
    let purge = Purge(run: run, rule: rule, connection: connection)
    try connection.transaction { () throws(DatabaseError) in
      try purge.deleteEvents(before: bound)
      try purge.deleteBlocks()
      Hook.rowsPurged.reached(1)
    }
    tokens.clear()
  }
}

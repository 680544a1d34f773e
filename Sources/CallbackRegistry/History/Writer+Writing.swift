// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

extension Writer {
  /// Writes the batch in one transaction.
  ///
  /// On failure nothing is changed.
  mutating func write() throws(DatabaseError) {
    chain.clear()
    do throws(DatabaseError) {
      try connection.lease?.pointee.take()
    } catch {
      revertBatch()
      throw error
    }
    defer { connection.lease?.pointee.give() }
    do throws(DatabaseError) {
      try statements[.begin].run()
      Hook.batchBegan.reached(0)
      if fault.needsRepair { try statements[.repairSequence].run() }
      let first = try takeSequences()
      try writeIdentities(first: first)
      try writeCells(first: first)
      try writeRows(first: first)
      try writeAccounts(first: first)
      try writeBlock(first: first)
      Hook.batchWritten.reached(0)
      try statements[.commit].run()
      Hook.batchCommitted.reached(0)
    } catch {
      revert()
      throw error
    }
    commit()
  }

  /// The number of the batch's first row.
  ///
  /// The numbers are taken anew in each transaction, because other processes
  /// may write in between; and the calls' segment, which they may have ended.
  mutating func takeSequences() throws(DatabaseError) -> UInt64 {
    let statement = statements[.takeSequences]
    statement.bind(1, Int64(batch.rowCount))
    guard try statement.step() else {
      throw .corrupt
    }
    let first = statement.unsigned(0)
    segments.turn(
      to: statement.integer(1)...statement.integer(2),
      rowsInLast: statement.unsigned(3))
    statement.reset()
    if statements.segment != segments.last {
      try statements.turn(to: segments.last, on: connection)
    }
    return first
  }

  private mutating func commit() {
    let written = UInt64(batch.rowCount) + batch.updates
    history.pointee.written.wrappingAdd(written, ordering: .relaxed)
    history.pointee.aggregated.wrappingAdd(
      batch.overBudget + batch.overRing, ordering: .relaxed)
    callbacks.commit()
    sites.commit()
    recorder.noteSaved(callbacks: callbacks.count, sites: sites.count)
    segments.commit(calls: batch.callCount, others: batch.controlCount)
    commitSeal()
    notedUnprotected.commit()
    sync = nil
    wallClock.commit()
    fault = Fault()
    commitRings()
  }

  private mutating func revert() {
    connection.rollBack()
    revertBatch()
  }

  /// What was read is to be read again.
  private mutating func revertBatch() {
    callbacks.revert()
    sites.revert()
    tokens.clear()
    refusals.clear()
    notedUnprotected.revert()
    wallClock.revert()
    sealing.revert()
    revertRings()
  }
}

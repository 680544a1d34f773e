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
  /// may write in between.
  func takeSequences() throws(DatabaseError) -> UInt64 {
    let statement = statements[.takeSequences]
    statement.bind(1, Int64(batch.rowCount))
    guard try statement.step() else {
      throw .corrupt
    }
    defer { statement.reset() }
    return statement.unsigned(0)
  }

  private mutating func commit() {
    let written = UInt64(batch.rowCount) + batch.updates
    history.pointee.written.wrappingAdd(written, ordering: .relaxed)
    history.pointee.aggregated.wrappingAdd(
      batch.overBudget + batch.overRing, ordering: .relaxed)
    callbacks.commit()
    sites.commit()
    recorder.noteSaved(callbacks: callbacks.count, sites: sites.count)
    segments.commit(rows: Int64(batch.callCount))
    notedUnprotected.commit()
    sync = nil
    fault = Fault()
    commitRings()
  }

  private mutating func revert() {
    connection.rollBack()
    callbacks.revert()
    sites.revert()
    tokens.clear()
    refusals.clear()
    notedUnprotected.revert()
    revertRings()
  }
}

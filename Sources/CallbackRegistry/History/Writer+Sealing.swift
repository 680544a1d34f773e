// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Sealing the block of a transaction.
///
/// The key is read and overwritten while the lease is held. A file that lags
/// behind, because somebody was killed after the commit, is ratcheted forward
/// at the next block. Nothing that is wrong with it stops the writer.
extension Writer {
  /// Reads the key of a block to come; a row of `fault` says once if there is
  /// one and it cannot be used.
  mutating func beginSeal(
    of block: Block, isAfterSealed: Bool
  ) throws(DatabaseError) {
    guard let hash = chain.hash else { return }
    let trouble = sealing.begin(
      block.number, isAfterSealed: isAfterSealed, by: hash)
    let isNew = trouble != nil && trouble != sealing.noted.committed
    sealing.noted.working = trouble
    guard isNew, let trouble else { return }
    if !isAfterSealed, try isNoted(trouble) { return }
    try FaultRow(
      cause: trouble.sentence.characters,
      beganAt: cbr_monotonic_nanoseconds()
    ).add(to: run, by: statements[.addFault])
  }

  /// Whether an earlier run, or another process, has said so.
  private func isNoted(
    _ trouble: Sealing.Trouble
  ) throws(DatabaseError) -> Bool {
    let statement = try connection.prepare(
      "SELECT 1 FROM fault WHERE cause = ?1")
    defer { statement.finalize() }
    statement.bind(1, trouble.sentence)
    return try statement.step()
  }

  /// Ends a transaction that may have a block, with the lease.
  mutating func commitSeal() { sealing.commit(by: chain.hash) }
}

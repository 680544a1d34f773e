// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

/// Looking at where the chain begins and ends, and beside it.
extension Verification {
  /// Looks whether blocks are missing before the first and after the last.
  mutating func lookAtEnds(_ reader: borrowing Reader) throws {
    let firstNumber = first?.number ?? 0
    let isCutByRule = arePurged(from: 1, through: firstNumber - 1)
    if firstNumber > 1, !isCutByRule {
      note("head is cut: block ", firstNumber, " is the first")
    }
    let last = block?.number ?? 0
    let blocks = try number("blocks", reader)
    if blocks != last {
      note("tail is cut: block ", last, " is the last of \(blocks ?? 0)")
    }
    if try number("next_sequence", reader) != (block?.last ?? 0) + 1 {
      note("events after block ", last, " are in no block")
    }
  }

  private func number(
    _ name: String, _ reader: borrowing Reader
  ) throws -> Int64? {
    let rows = try reader.rows("SELECT value FROM meta WHERE name = '\(name)'")
    return rows.first.flatMap { Int64($0[0]) }
  }

  /// Looks whether a table has rows that are in no block.
  ///
  /// Of what is not an event, those may be too new.
  mutating func lookForOtherRows(
    in name: String, _ reader: borrowing Reader
  ) throws {
    let coverage = covered[name] ?? Coverage(first: 1)
    guard tables.contains(name), coverage.isRight,
      let table = ChainedTable(named: name)
    else { return }
    var least = Int64.min
    if let first, first.number > 1 {
      least = table.isOfEvents ? first.first : coverage.first
    }
    let most = table.isOfEvents ? Int64.max : coverage.last
    if try reader.count(name, from: least, to: most) > coverage.rows {
      note("rows are in no block: \(table.rows)")
    }
  }

  /// Counts deletions that somebody may have added, until a block has them.
  mutating func countUncovered(_ reader: borrowing Reader) throws {
    let last = covered["purge"]?.last ?? 0
    uncovered = try reader.count("purge", from: last + 1, to: .max)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

/// Looking at the blocks, one after the other.
extension Verification {
  /// Looks at a block's place in the chain.
  mutating func begin(_ row: Row) {
    let before = endBlock()
    let block = ChainedBlock(
      number: row.integer(0), run: row.integer(2), first: row.integer(3),
      last: row.integer(4), previousRoot: row.digest(6) ?? Digest(),
      root: row.digest(7) ?? Digest())
    let number = block.number
    let isAfterPurge = arePurged(
      from: (before?.number ?? 0) + 1, through: number - 1)
    if isAfterPurge {
      // Blocks were deleted by rule that were just before.
    } else if let before {
      if before.number != number - 1 {
        note("blocks before block ", number, " are missing")
      }
      if before.root != block.previousRoot {
        note("block ", number, " does not follow the one before")
      }
    } else if number == 1, block.previousRoot != Digest() {
      note("block ", number, " does not follow the one before")
    }
    let lastSequence = before?.last ?? (number == 1 ? 0 : block.first - 1)
    if block.first != lastSequence + 1, !isAfterPurge {
      note("events before block ", number, " are in no block")
    }
    first = first ?? block
    self.block = block
    blocks += 1
    head = block.root
    if hexadecimal(block.root) == anchor { hasAnchor = true }
    lookAtSeal(row, of: block)
  }

  /// Whether there are numbers, and their blocks were deleted by rule.
  ///
  /// Rules delete from the first block on, and each goes on where the one
  /// before has come to.
  func arePurged(from first: Int64, through last: Int64) -> Bool {
    first <= last
      && purges.contains { $0.table == "block" && $0.last >= last }
  }

  /// Compares the root of the block that all is known of.
  @discardableResult
  mutating func endBlock() -> ChainedBlock? {
    guard let block else { return nil }
    if block.root(by: hash) != block.root {
      note("root of block ", block.number, " differs")
    }
    return block
  }

  /// Looks at what a block has of a table.
  mutating func add(_ row: Row, _ reader: borrowing Reader) throws {
    let part = Part(
      block: row.integer(0), table: row.text(5), first: row.integer(2),
      last: row.integer(3), rows: row.integer(4),
      content: row.digest(6) ?? Digest())
    if block?.number == part.block {
      block?.parts.append(part)
    } else if orphan != part.block {
      orphan = part.block
      note("block ", part.block, " is missing, its content is there")
    }
    let state = try state(of: part, reader)
    noteState(state, of: part)
    var coverage = covered[part.table] ?? Coverage()
    coverage.first = min(coverage.first, part.first)
    coverage.last = max(coverage.last, part.last)
    switch state {
    case .right:
      coverage.rows += part.rows
      rows += part.rows
    case .purged: break
    default: coverage.isRight = false
    }
    covered[part.table] = coverage
  }

  private mutating func noteState(_ state: Part.State, of part: Part) {
    let rows = ChainedTable(named: part.table)?.rows ?? "unknown rows"
    switch state {
    case .right, .purged: break
    case .changed: note("content of block ", part.block, " differs: \(rows)")
    case .missing: note("rows of block ", part.block, " are missing: \(rows)")
    case .added:
      note("rows beside those of block ", part.block, " are there: \(rows)")
    case .dropped: note("table of block ", part.block, " is missing: \(rows)")
    }
  }

  /// Hashes the rows of a part, and finds out what is wrong with them.
  private func state(
    of part: Part, _ reader: borrowing Reader
  ) throws -> Part.State {
    guard tables.contains(part.table),
      let table = ChainedTable(named: part.table)
    else { return isPurged(part) ? .purged : .dropped }
    let query = """
      SELECT \(table.columns) FROM \(part.table) \
      WHERE \(table.condition) \
      AND rowid BETWEEN \(part.first) AND \(part.last) ORDER BY rowid
      """
    query.withCString { hash.begin($0, length: query.utf8.count) }
    try reader.visit(query) { $0.add(to: hash) }
    if hash.end() == part.content { return .right }
    let rows = try reader.count(part.table, from: part.first, to: part.last)
    if rows == 0, isPurged(part) { return .purged }
    return rows == part.rows ? .changed : rows < part.rows ? .missing : .added
  }

  private func isPurged(_ part: Part) -> Bool {
    // Notes go with their events.
    let table = part.table == "note" ? "control_event" : part.table
    return purges.contains { purge in
      purge.table == table && purge.first <= part.first
        && purge.last >= part.last
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

/// Making a block of what a transaction has added.
extension Writer {
  /// Hashes the batch's calls.
  mutating func hashCalls(first: UInt64) {
    guard batch.callCount > 0, let hash = chain.hash else { return }
    let calls = batch.calls
    let count = batch.callCount
    chain.begin(
      .call, segment: statements.segment,
      first: Int64(first) + Int64(calls[0].offset),
      last: Int64(first) + Int64(calls[count - 1].offset))
    for index in 0..<count { add(calls + index, to: hash, first: first) }
    chain.end(.call, rows: count)
  }

  @inline(__always)
  private func add(
    _ call: UnsafeMutablePointer<CallRow>, to hash: Hash, first: UInt64
  ) {
    let cell = batch.cells.pointer(to: Int(call.pointee.cell))
    let cursor = cursors.pointer(to: Int(call.pointee.cursor))
    hash.appendRow(
      (
        Int64(bitPattern: first &+ UInt64(call.pointee.offset)),
        Int64(bitPattern: call.pointee.time),
        cursor.pointee.working.row << 32 + cell.pointee.callback,
        Int64(bitPattern: cell.pointee.handle),
        Int64(bitPattern: call.pointee.duration)
      ))
  }

  /// Begins to hash the batch's control events, which are added when they are
  /// written.
  mutating func beginControlHash(first: UInt64) {
    guard batch.controlCount > 0, chain.isOn else { return }
    chain.begin(
      .controlEvent, first: Int64(first) + Int64(batch.controls[0].offset),
      last: Int64(first)
        + Int64(batch.controls[batch.controlCount - 1].offset))
  }

  mutating func endControlHash() {
    guard batch.controlCount > 0, chain.isOn else { return }
    chain.end(.controlEvent, rows: batch.controlCount)
  }

  /// Adds the block of what this transaction has added, if it has.
  mutating func writeBlock(first: UInt64) throws(DatabaseError) {
    if chain.isOn {
      let block = try beginBlock()
      try hashNotes(first: first)
      try hashNewRows()
      if chain.isOn, !chain.isEmpty { try add(block, first: first) }
    }
    if chain.hasFailed {
      try Run.noteEvidence(of: run, "off: libcrypto failed", on: connection)
    }
  }

  /// Adds a block of what has been added without a batch, in a transaction of
  /// the caller's.
  mutating func writeLastBlock() throws(DatabaseError) {
    batch.clear()
    chain.clear()
    if chain.isOn {
      try writeBlock(first: takeSequences())
    } else {
      try Run.noteEvidence(of: run, BlockChain.missing, on: connection)
    }
  }

  /// The same in a transaction of its own.
  ///
  /// Where it fails, those rows are in no block yet.
  mutating func coverRest() {
    guard chain.isOn else { return }
    let connection = connection
    do throws(DatabaseError) {
      try connection.alone { () throws(DatabaseError) in
        try connection.transaction { () throws(DatabaseError) in
          try writeLastBlock()
        }
        commitSeal()
      }
    } catch { sealing.revert() }
  }

  /// The same when the history is about to be closed.
  mutating func coverRestAtEnd() {
    history.pointee.turn.takeAsWriter()
    coverRest()
    history.pointee.turn.give()
  }

  private mutating func hashNotes(first: UInt64) throws(DatabaseError) {
    var rows: (first: Int64, last: Int64)?
    for index in 0..<batch.controlCount {
      let row = batch.controls + index
      guard row.pointee.kind == EventKind.note.rawValue else { continue }
      let sequence = Int64(first) + Int64(row.pointee.offset)
      rows = (rows?.first ?? sequence, sequence)
    }
    guard let rows else { return }
    try chain.add(.note, first: rows.first, last: rows.last, from: connection)
  }

  /// Hashes what the tables that events refer to, and those of losses, faults
  /// and deletions, have beyond the blocks.
  private mutating func hashNewRows() throws(DatabaseError) {
    let statement = statements[.findUncovered]
    defer { statement.reset() }
    while try statement.step() {
      guard chain.isOn,
        let table = ChainedTable(rawValue: Int(statement.integer(0)))
      else { continue }
      try chain.add(
        table, first: statement.integer(1), last: statement.integer(2),
        from: connection)
    }
  }

  private mutating func add(
    _ next: Block, first: UInt64
  ) throws(DatabaseError) {
    guard let hash = chain.hash else { return }
    var block = next
    block.firstSequence = Int64(first)
    block.lastSequence = Int64(first) + Int64(batch.rowCount) - 1
    guard let root = chain.root(of: block) else { return }
    for index in 0..<ChainedTable.count {
      guard let table = ChainedTable(rawValue: index) else { continue }
      try write(chain[table], of: block)
    }
    let statement = statements[.addBlock]
    statement.bind(1, block.number)
    statement.bind(2, block.run)
    statement.bind(3, block.firstSequence)
    statement.bind(4, block.lastSequence)
    statement.bind(6, sealing.seal(root, by: hash))
    try statement.run(binding: root, to: 5)
    statements[.countBlock].bind(1, block.number)
    try statements[.countBlock].run()
  }

  /// A block after the last one, which may be another process's.
  ///
  /// Its number is that of no block that ever was, also where the last ones
  /// have been removed.
  private mutating func beginBlock() throws(DatabaseError) -> Block {
    let statement = statements[.findLastBlock]
    guard try statement.step() else { throw .corrupt }
    defer { statement.reset() }
    let block = Block(
      number: statement.integer(0) + 1, run: run,
      previousRoot: statement.digest(1) ?? Digest())
    try beginSeal(of: block, isAfterSealed: statement.integer(2) == 1)
    return block
  }

  private func write(
    _ content: Content, of block: Block
  ) throws(DatabaseError) {
    guard content.rows > 0 else { return }
    var name = scratch.text
    name.append(tableOf: content)
    let statement = statements[.addContent]
    statement.bind(1, scratch.start, length: name.length)
    statement.bind(2, block.number)
    statement.bind(3, content.first)
    statement.bind(4, content.last)
    statement.bind(5, content.rows)
    try statement.run(binding: content.digest, to: 6)
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Reads the chain of blocks from its first to its last, and computes each hash
// again from the rows. `packaging/verify.sql` does the same, and says the same,
// in the shell of SQLite.

import CSQLite
import CallbackRegistry

/// What has been found out about a history.
struct Verification {
  /// A kind of fault, with the blocks that have it.
  struct Problem {
    var first: Int64?
    var blocks = 0
    let opening: String
    let ending: String

    var sentence: String {
      let block = first.map { "\($0)" } ?? ""
      let more = blocks > 1 ? " (the first of \(blocks))" : ""
      return opening + block + ending + more
    }
  }

  var problems: [String: Problem] = [:]
  var blocks: Int64 = 0
  var rows: Int64 = 0
  var head = Digest()
  /// Deletions by rule that no block has yet.
  var uncovered: Int64 = 0
  var hasAnchor: Bool

  let anchor: String?
  let hash: Hash
  var tables: Set<String> = []
  var purges: [(table: String, first: Int64, last: Int64)] = []
  /// What the blocks have of each table.
  var covered: [String: Coverage] = [:]
  var block: ChainedBlock?
  var first: ChainedBlock?
  /// Nil: seals are not looked at.
  var seals: SealCheck?
  /// A block that is missing.
  var orphan: Int64?

  struct Coverage {
    var first: Int64 = .max
    var last: Int64 = 0
    var rows: Int64 = 0
    var isRight = true
  }

  /// Nil: there is no libcrypto.
  init?(anchor: String?, key: VerificationKey?) {
    guard let hash = Hash() else { return nil }
    self.hash = hash
    seals = key.flatMap { SealCheck($0) }
    self.anchor = anchor
    hasAnchor = anchor == nil
  }

  func end() { hash.destroy() }

  /// The faults, in the order of the blocks.
  var sentences: [String] {
    problems.values.sorted { one, other in
      let blocks = (one.first ?? .max, other.first ?? .max)
      if blocks.0 != blocks.1 { return blocks.0 < blocks.1 }
      return (one.opening, one.ending) < (other.opening, other.ending)
    }.map(\.sentence)
  }

  /// Looks at everything, in one transaction.
  mutating func verify(
    _ reader: borrowing Reader, progress: (Int64) -> Void
  ) throws {
    _ = try reader.rows("BEGIN")
    try reader.visit(
      "SELECT name FROM sqlite_schema WHERE type = 'table'"
    ) { tables.insert($0.text(0)) }
    try reader.visit(
      "SELECT table_name, first_sequence, last_sequence FROM purge"
    ) { purges.append(($0.text(0), $0.integer(1), $0.integer(2))) }
    try reader.visit(
      """
      SELECT block, 0, run, first_sequence, last_sequence, '' AS name,
        previous_root, root, \(seals == nil ? "NULL" : "seal") FROM block
      UNION ALL
      SELECT block, 1, first_row, last_row, rows, table_name, content, NULL,
        NULL FROM block_content ORDER BY block, 2, name
      """
    ) { row in
      if row.integer(1) == 0 {
        progress(row.integer(0))
        begin(row)
      } else {
        try add(row, reader)
      }
    }
    endBlock()
    try lookAtEnds(reader)
    lookAtSealedEnd()
    for table in tables.union(covered.keys).sorted() {
      try lookForOtherRows(in: table, reader)
    }
    try countUncovered(reader)
    if !hasAnchor { note("anchor is in no block: \(anchor ?? "")") }
    _ = try reader.rows("COMMIT")
  }

  mutating func note(
    _ opening: String, _ block: Int64? = nil, _ ending: String = ""
  ) {
    var problem =
      problems[opening + ending] ?? Problem(opening: opening, ending: ending)
    problem.first = problem.first ?? block
    problem.blocks += block == nil ? 0 : 1
    problems[opening + ending] = problem
  }
}

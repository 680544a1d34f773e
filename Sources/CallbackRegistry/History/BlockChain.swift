// SPDX-License-Identifier: Apache-2.0
//
// Tamper evidence: what a transaction has added becomes a block, whose root is
// a hash of the root before, of the block's numbers, and of a hash of its rows
// of each table. So the last root stands for every row before it.
//
// The hashes are those of `sha3` and `sha3_query` of SQLite's shell, in which
// packaging/verify.sql computes them again.

import CPlatform

/// A row of the table `block`.
struct Block {
  var number: Int64 = 0
  var run: Int64 = 0
  /// One less than the first where it has no events.
  var firstSequence: Int64 = 0
  var lastSequence: Int64 = 0
  var previousRoot = Digest()
}

/// What becomes the next block.
struct BlockChain: ~Copyable {
  /// Nil: the chain is off.
  private(set) var hash: Hash?
  /// It was on, until libcrypto failed.
  private(set) var hasFailed = false
  private let contents: UnsafeMutablePointer<Content>
  private let scratch: Scratch

  private init(
    hash: Hash?, contents: UnsafeMutablePointer<Content>,
    scratch: consuming Scratch
  ) {
    self.hash = hash
    self.contents = contents
    self.scratch = scratch
    clear()
  }

  /// Without libcrypto, and in memory, a chain is off.
  static func make(isInFile: Bool) throws(DatabaseError) -> BlockChain {
    let scratch = try Scratch(bytes: 4_096)
    let isOn = isInFile && cbr_hash_prepare()
    let hash = isOn ? Hash() : nil
    let contents = Memory.allocate(Content.self, count: ChainedTable.count)
    guard hash != nil || !isOn, let contents else {
      hash?.destroy()
      Memory.release(contents)
      throw .noMemory
    }
    return BlockChain(hash: hash, contents: contents, scratch: scratch)
  }

  deinit {
    hash?.destroy()
    Memory.release(contents)
  }

  /// What `run` says where there is no chain for lack of the hash.
  static var missing: StaticString { "off: no libcrypto" }

  var isOn: Bool { hash != nil }

  subscript(table: ChainedTable) -> Content { contents[table.rawValue] }

  var isEmpty: Bool {
    for index in 0..<ChainedTable.count where contents[index].rows > 0 {
      return false
    }
    return true
  }

  /// Forgets what a transaction has added.
  func clear() {
    for index in 0..<ChainedTable.count {
      guard let table = ChainedTable(rawValue: index) else { continue }
      (contents + index).initialize(to: Content(table: table))
    }
  }

  /// Begins to hash rows, whose rowids are from `first` to `last`.
  ///
  /// Returns the query that asks for them.
  @discardableResult
  func begin(
    _ table: ChainedTable, segment: Int64 = 0, first: Int64, last: Int64
  ) -> (text: UnsafePointer<CChar>, length: Int) {
    var content = Content(table: table)
    content.segment = segment
    content.first = first
    content.last = last
    contents[table.rawValue] = content
    var query = scratch.text
    query.append(queryOf: content)
    hash?.begin(scratch.start, length: query.length)
    return (UnsafePointer(scratch.start), query.length)
  }

  mutating func end(_ table: ChainedTable, rows: Int) {
    guard let digest = hash?.end() else { return fail() }
    contents[table.rawValue].rows = Int64(rows)
    contents[table.rawValue].digest = digest
  }

  /// Hashes rows that the database is asked for.
  mutating func add(
    _ table: ChainedTable, first: Int64, last: Int64,
    from connection: Connection
  ) throws(DatabaseError) {
    guard let hash else { return }
    let query = begin(table, first: first, last: last)
    let statement = try connection.prepare(query.text, length: query.length)
    defer { statement.finalize() }
    var rows = 0
    while try statement.step() {
      statement.addRow(to: hash)
      rows += 1
    }
    end(table, rows: rows)
  }

  /// The root of a block with what has been added; nil: libcrypto has failed.
  mutating func root(of block: Block) -> Digest? {
    guard let hash else { return nil }
    var text = scratch.text
    text.append(block.previousRoot)
    text.append(block.number, block.run)
    text.append(block.firstSequence, block.lastSequence)
    for index in 0..<ChainedTable.count where contents[index].rows > 0 {
      text.append(":")
      text.append(tableOf: contents[index])
      text.append(contents[index].first, contents[index].last)
      text.append(":")
      text.append(contents[index].rows)
      text.append(":")
      text.append(contents[index].digest)
    }
    hash.begin()
    hash.append(bytes: scratch.start, count: text.length)
    let root = hash.end()
    if root == nil { fail() }
    return root
  }

  private mutating func fail() {
    hash?.destroy()
    hash = nil
    hasFailed = true
  }
}

extension Text {
  fileprivate mutating func append(_ one: Int64, _ other: Int64) {
    append(":")
    append(one)
    append(":")
    append(other)
  }
}

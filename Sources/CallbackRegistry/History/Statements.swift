// SPDX-License-Identifier: Apache-2.0

/// The writer's prepared statements, on one connection.
struct Statements: ~Copyable {
  /// Rows that one statement inserts.
  static var rowsAtOnce: Int { 32 }

  private let prepared: UnsafeMutablePointer<Statement?>
  /// Inserts one call, and `rowsAtOnce` calls, into the present segment.
  private(set) var addCall: Statement
  private(set) var addManyCalls: Statement
  private(set) var segment: Int64

  private init(
    prepared: UnsafeMutablePointer<Statement?>, segment: Int64,
    addCall: Statement, addManyCalls: Statement
  ) {
    self.prepared = prepared
    self.segment = segment
    self.addCall = addCall
    self.addManyCalls = addManyCalls
  }

  static func prepare(
    on connection: Connection, segment: Int64
  ) throws(DatabaseError) -> Statements {
    guard
      let prepared = Memory.allocate(Statement?.self, count: Sentence.count)
    else { throw .noMemory }
    for index in 0..<Sentence.count {
      (prepared + index).initialize(to: nil)
    }
    do throws(DatabaseError) {
      for index in 0..<Sentence.count {
        prepared[index] = try connection.prepare(
          Sentence(rawValue: index).unsafelyUnwrapped.sql)
      }
      let calls = try insertions(into: segment, on: connection)
      return Statements(
        prepared: prepared, segment: segment, addCall: calls.one,
        addManyCalls: calls.many)
    } catch {
      finalize(prepared)
      throw error
    }
  }

  deinit {
    addCall.finalize()
    addManyCalls.finalize()
    Self.finalize(prepared)
  }

  subscript(sentence: Sentence) -> Statement {
    @inline(__always) get {
      prepared[sentence.rawValue].unsafelyUnwrapped
    }
  }

  /// Makes calls go to another segment from now on.
  mutating func turn(
    to segment: Int64, on connection: Connection
  ) throws(DatabaseError) {
    let calls = try Self.insertions(into: segment, on: connection)
    addCall.finalize()
    addManyCalls.finalize()
    addCall = calls.one
    addManyCalls = calls.many
    self.segment = segment
  }

  private static func insertions(
    into segment: Int64, on connection: Connection
  ) throws(DatabaseError) -> (one: Statement, many: Statement) {
    let one = try insertion(of: 1, into: segment, on: connection)
    do throws(DatabaseError) {
      let many = try insertion(of: rowsAtOnce, into: segment, on: connection)
      return (one, many)
    } catch {
      one.finalize()
      throw error
    }
  }

  private static func finalize(_ prepared: UnsafeMutablePointer<Statement?>) {
    for index in 0..<Sentence.count { prepared[index]?.finalize() }
    Memory.release(prepared)
  }

  /// The insertion of `rows` calls: six parameters each, and a constant kind.
  private static func insertion(
    of rows: Int, into segment: Int64, on connection: Connection
  ) throws(DatabaseError) -> Statement {
    let statement = try Scratch(bytes: 1024)
    var text = statement.text
    text.append("INSERT INTO ")
    text.append(segment: segment)
    text.append(" VALUES (?,?,?,1,?,?,?)")
    for _ in 1..<rows { text.append(",(?,?,?,1,?,?,?)") }
    return try connection.prepare(statement.start, length: text.length)
  }
}

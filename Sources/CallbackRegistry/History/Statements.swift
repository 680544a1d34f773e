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

  init(
    on connection: Connection, segment: Int64
  ) throws(DatabaseError) {
    guard
      let prepared = Memory.allocate(Statement?.self, count: Sentence.count)
    else { throw .noMemory }
    self.prepared = prepared
    self.segment = segment
    for index in 0..<Sentence.count {
      (prepared + index).initialize(to: nil)
    }
    do throws(DatabaseError) {
      for index in 0..<Sentence.count {
        prepared[index] = try connection.prepare(
          Sentence(rawValue: index).unsafelyUnwrapped.sql)
      }
      addCall = try Self.calls(1, segment: segment, on: connection)
      do throws(DatabaseError) {
        addManyCalls = try Self.calls(
          Self.rowsAtOnce, segment: segment, on: connection)
      } catch {
        addCall.finalize()
        throw error
      }
    } catch {
      Self.finalize(prepared)
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
    let one = try Self.calls(1, segment: segment, on: connection)
    let many: Statement
    do throws(DatabaseError) {
      many = try Self.calls(
        Self.rowsAtOnce, segment: segment, on: connection)
    } catch {
      one.finalize()
      throw error
    }
    addCall.finalize()
    addManyCalls.finalize()
    addCall = one
    addManyCalls = many
    self.segment = segment
  }

  private static func finalize(_ prepared: UnsafeMutablePointer<Statement?>) {
    for index in 0..<Sentence.count { prepared[index]?.finalize() }
    Memory.release(prepared)
  }

  /// The insertion of `rows` calls: six parameters each, and a constant kind.
  private static func calls(
    _ rows: Int, segment: Int64, on connection: Connection
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

// SPDX-License-Identifier: Apache-2.0
//
// Calls are kept in tables call_000001, call_000002 and so on, one after the
// other, under the view `call`. Dropping a table is what makes forgetting
// cheap.

extension Schema {
  /// Adds the table of a segment of calls.
  static func addSegment(
    _ number: Int64, on connection: Connection
  ) throws(DatabaseError) {
    try execute(
      """
      CREATE TABLE @ (
        sequence INTEGER PRIMARY KEY,
        time_ns INTEGER NOT NULL,
        ring INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        token INTEGER NOT NULL,
        callback INTEGER NOT NULL,
        argument INTEGER NOT NULL
      ) STRICT;
      CREATE TRIGGER @_keeps_rows BEFORE UPDATE ON @
      BEGIN SELECT RAISE(ABORT, 'calls of a history are not changed'); END;
      CREATE TRIGGER @_is_kept BEFORE DELETE ON @
      BEGIN SELECT RAISE(ABORT, 'calls of a history are not deleted'); END;
      INSERT INTO segment (segment, table_name) VALUES (#, '@');
      """, segment: number, on: connection)
  }

  /// Drops the table of a segment.
  ///
  /// Triggers do not see its rows go.
  static func dropSegment(
    _ number: Int64, on connection: Connection
  ) throws(DatabaseError) {
    try execute(
      "DROP TABLE @; DELETE FROM segment WHERE segment = #;",
      segment: number, on: connection)
  }

  /// Makes `call` show some segments.
  static func viewSegments(
    from first: Int64, through last: Int64, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try Scratch(bytes: 16_384)
    var text = statement.text
    text.append("DROP VIEW IF EXISTS call; CREATE VIEW call AS ")
    for number in first...last {
      if number > first { text.append(" UNION ALL ") }
      text.append("SELECT * FROM ")
      text.append(segment: number)
    }
    try connection.execute(statement.start)
  }

  /// Executes SQL in which `@` is the name of a segment's table and `#` its
  /// number.
  private static func execute(
    _ template: StaticString, segment: Int64, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try Scratch(bytes: 4096)
    var text = statement.text
    let characters = template.characters
    for index in 0..<template.utf8CodeUnitCount {
      switch UInt8(bitPattern: characters[index]) {
      case UInt8(ascii: "@"): text.append(segment: segment)
      case UInt8(ascii: "#"): text.append(segment)
      default: text.append(characters + index, length: 1)
      }
    }
    try connection.execute(statement.start)
  }
}

extension Text {
  /// Appends the name of a segment's table, such as call_000001.
  mutating func append(segment number: Int64) {
    append("call_")
    var bound: Int64 = 100_000
    while bound > number && bound > 1 {
      append("0")
      bound /= 10
    }
    append(number)
  }
}

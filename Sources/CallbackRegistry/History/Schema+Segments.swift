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
    try execute(on: connection) { text in
      text.append("CREATE TABLE ")
      text.append(segment: number)
      text.append(
        """
         (
          sequence INTEGER PRIMARY KEY,
          time_ns INTEGER NOT NULL,
          ring INTEGER NOT NULL,
          kind INTEGER NOT NULL,
          token INTEGER NOT NULL,
          callback INTEGER NOT NULL,
          argument INTEGER NOT NULL
        ) STRICT;
        CREATE TRIGGER 
        """)
      text.append(segment: number)
      text.append("_keeps_rows BEFORE UPDATE ON ")
      text.append(segment: number)
      text.append(
        """
         BEGIN
        SELECT RAISE(ABORT, 'calls of a history are not changed'); END;
        CREATE TRIGGER 
        """)
      text.append(segment: number)
      text.append("_is_kept BEFORE DELETE ON ")
      text.append(segment: number)
      text.append(
        """
         BEGIN
        SELECT RAISE(ABORT, 'calls of a history are not deleted'); END;
        INSERT INTO segment (segment, table_name) VALUES (
        """)
      text.append(number)
      text.append(", '")
      text.append(segment: number)
      text.append("');")
    }
  }

  /// Drops the table of a segment. Its rows go without triggers.
  static func dropSegment(
    _ number: Int64, on connection: Connection
  ) throws(DatabaseError) {
    try execute(on: connection) { text in
      text.append("DROP TABLE ")
      text.append(segment: number)
      text.append("; DELETE FROM segment WHERE segment = ")
      text.append(number)
    }
  }

  /// Makes `call` show some segments.
  static func viewSegments(
    from first: Int64, through last: Int64, on connection: Connection
  ) throws(DatabaseError) {
    try execute(on: connection) { text in
      text.append("DROP VIEW IF EXISTS call; CREATE VIEW call AS ")
      for number in first...last {
        if number > first { text.append(" UNION ALL ") }
        text.append("SELECT * FROM ")
        text.append(segment: number)
      }
    }
  }

  /// Executes SQL that a closure writes, of at most four kilobytes.
  static func execute(
    on connection: Connection, _ write: (inout Text) -> Void
  ) throws(DatabaseError) {
    let size = 4096
    guard let buffer = Memory.allocate(CChar.self, count: size) else {
      throw .noMemory
    }
    defer { Memory.release(buffer) }
    var text = Text(buffer, size: size)
    write(&text)
    if text.isCut { throw .noMemory }
    try connection.execute(buffer)
  }
}

extension Text {
  /// Appends the name of a segment's table.
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

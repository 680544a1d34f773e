// SPDX-License-Identifier: Apache-2.0

/// The tables and views of a history.
///
/// They are public: what they are called and mean changes only together with
/// the format's number.
package enum Schema {
  /// `PRAGMA application_id`: "CBR1".
  package static var applicationIdentifier: Int64 { 0x4342_5231 }
  /// `PRAGMA user_version`.
  package static var format: Int64 { 1 }

  /// Makes everything in an empty database.
  ///
  /// In a transaction of the caller's.
  static func create(on connection: Connection) throws(DatabaseError) {
    try connection.execute(runTables)
    try connection.execute(ringPlaces)
    try connection.execute(eventTables)
    try connection.execute(nameTables)
    try connection.execute(blockTables)
    try connection.execute(
      """
      INSERT INTO meta VALUES ('format', 1), ('next_sequence', 1),
        ('kept_from', 1), ('purged_rows', 0);
      PRAGMA application_id = 0x43425231;
      PRAGMA user_version = 1;
      """)
    try addSegment(1, on: connection)
    try viewSegments(from: 1, through: 1, on: connection)
    try createViews(eventViews, on: connection)
    try createViews(tokenViews, on: connection)
    try createViews(queueViews, on: connection)
    try connection.execute(conservation)
    try connection.execute(violations)
    try connection.execute(health)
  }

  /// Makes views; `{x}` in them is replaced by the time x of run u as text.
  private static func createViews(
    _ template: StaticString, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try Scratch(bytes: 32_768)
    var text = statement.text
    let characters = template.characters
    var index = 0
    while index < template.utf8CodeUnitCount {
      let start = index
      while characters[index] != opening, characters[index] != 0 { index += 1 }
      text.append(characters + start, length: index - start)
      guard characters[index] == opening else { break }
      let operand = index + 1
      while characters[index] != closing { index += 1 }
      append(
        time: characters + operand, length: index - operand, to: &text)
      index += 1
    }
    try connection.execute(statement.start)
  }

  private static var opening: CChar { 0x7B }
  private static var closing: CChar { 0x7D }

  /// ISO 8601 with microseconds.
  private static func append(
    time operand: UnsafePointer<CChar>, length: Int, to text: inout Text
  ) {
    text.append("strftime('%Y-%m-%dT%H:%M:%S', (")
    text.append(operand, length: length)
    text.append(" + u.realtime_offset_ns) / 1000000000, 'unixepoch')")
    text.append(" || printf('.%06dZ', (")
    text.append(operand, length: length)
    text.append(" + u.realtime_offset_ns) % 1000000000 / 1000)")
  }
}

// SPDX-License-Identifier: Apache-2.0

/// A row of the view `history`.
struct Event {
  private static let columns = [
    "sequence", "time", "run", "thread", "event", "token", "label", "detail",
    "duration_ns",
  ]

  private let values: [String?]

  var sequence: Int64 { values[0].flatMap { Int64($0) } ?? 0 }

  /// What tells a history from others: its first run.
  static func origin(_ reader: borrowing Reader) throws -> String {
    try reader.rows("SELECT uuid FROM run ORDER BY run LIMIT 1").first?.first
      ?? ""
  }

  /// The sequence number of the next event.
  static func next(_ reader: borrowing Reader) throws -> Int64 {
    try reader.number("SELECT value FROM meta WHERE name = 'next_sequence'")
  }

  static func after(
    _ sequence: Int64, _ reader: borrowing Reader
  ) throws -> [Event] {
    try reader.optionalRows(
      """
      SELECT \(columns.joined(separator: ", ")) FROM history
      WHERE sequence > \(sequence) ORDER BY sequence
      """
    ).map { Event(values: $0) }
  }

  /// The last ones, of which some numbers may have been removed by rule.
  static func last(
    _ count: Int64, _ reader: borrowing Reader
  ) throws -> [Event] {
    let last = try next(reader) - 1
    var span = count
    while true {
      let events = try after(max(0, last - span), reader)
      if events.count >= count || span >= last {
        return Array(events.suffix(Int(count)))
      }
      span *= 8
    }
  }

  var asJSON: String {
    let pairs = zip(Self.columns, values).map { name, value in
      guard let value else { return "\"\(name)\": null" }
      let isNumber = ["sequence", "run", "duration_ns"].contains(name)
      return "\"\(name)\": \(isNumber ? value : json(value))"
    }
    return "{\(pairs.joined(separator: ", "))}"
  }

  /// All but the numbers of event and run, in one line.
  var line: String {
    let words = [
      values[1], values[3], values[4], values[5],
      values[6].map { "\"\($0)\"" }, values[7], values[8].map { "\($0) ns" },
    ]
    return Self.visible(words.compactMap { $0 }.joined(separator: "  "))
  }

  /// Without what a terminal would obey.
  private static func visible(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      if scalar.properties.generalCategory == .control {
        result += scalar.escaped(asASCII: true)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

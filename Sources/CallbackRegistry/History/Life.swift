// SPDX-License-Identifier: Apache-2.0

/// What is said of a handle, from its rows.
enum Life {
  /// Late callers that are named; the others are counted.
  private static var namedCallers: Int { 8 }

  /// The label, and how it ended, as a part of a sentence.
  static func end(
    of handle: UInt64, _ connection: Connection, into text: inout Text
  ) throws(DatabaseError) -> Bool {
    let row = try connection.prepare(
      """
      SELECT label, ended_time, ended_by, ended_reason FROM token_life
      WHERE registration = (SELECT max(registration) FROM token
        WHERE token = ?1)
      """)
    defer { row.finalize() }
    row.bind(1, handle)
    guard try row.step() else { return false }
    text.append(quoted: row.text(0))
    if row.text(1) != nil {
      text.append(", which ended at ")
      text.append(row.text(1))
      text.append(part: " by ", row.text(2))
      text.append(part: ": ", row.text(3))
    }
    return true
  }

  static func life(
    of handle: UInt64, _ connection: Connection, into text: inout Text
  ) throws(DatabaseError) -> Bool {
    let row = try connection.prepare(
      """
      SELECT l.kind, l.label, l.state, l.registered_time, l.registered_by,
        l.registered_at, l.owner, l.owner_label, l.ended_time, l.ended_by,
        l.ended_reason, l.run, u.executable, u.pid,
        l.run = (SELECT max(run) FROM run), u.ended
      FROM token_life l JOIN run u ON u.run = l.run
      WHERE l.registration = (SELECT max(registration) FROM token
        WHERE token = ?1)
      """)
    defer { row.finalize() }
    row.bind(1, handle)
    guard try row.step() else { return false }
    text.append(row.text(0))
    text.append(" ")
    text.append(hexadecimal: handle)
    text.append(quoted: row.text(1))
    text.append(": ")
    let isLive = row.text(8) == nil
    if isLive, row.text(15) != nil {
      text.append("not ended before its run did: ")
      text.append(row.text(15))
    } else {
      text.append(isLive ? "live" : "dead")
    }
    if row.integer(14) == 0 {
      text.append(", of run ")
      text.append(row.integer(11))
      text.append(" by ")
      text.append(row.text(12))
      text.append(" (process ")
      text.append(row.integer(13))
      text.append(")")
    }
    text.append("\n")
    if row.text(3) != nil {
      text.append("registered ")
      text.append(row.text(3))
      text.append(part: " by ", row.text(4))
      text.append(part: " at ", row.text(5))
      text.append("\n")
    }
    if row.text(6) != nil {
      text.append("belongs to ")
      text.append(row.text(6))
      text.append(quoted: row.text(7))
      text.append("\n")
    }
    if !isLive {
      text.append("ended ")
      text.append(row.text(8))
      text.append(part: " by ", row.text(9))
      text.append(part: ": ", row.text(10))
      text.append("\n")
    }
    return true
  }

  /// False when there is no row of the handle.
  @discardableResult
  static func calls(
    of handle: UInt64, _ connection: Connection, into text: inout Text
  ) throws(DatabaseError) -> Bool {
    let row = try connection.prepare(
      """
      SELECT l.calls, t.calls, t.total_ns, t.max_ns, l.last_call_time,
        t.abandoned, t.leases, t.refusals, t.kind, t.run, t.ended_time_ns
      FROM token t JOIN token_life l ON l.registration = t.registration
      WHERE t.registration = (SELECT max(registration) FROM token
        WHERE token = ?1)
      """)
    defer { row.finalize() }
    row.bind(1, handle)
    guard try row.step() else { return false }
    if row.integer(8) == 2 || row.integer(0) > 0 {
      text.append("calls: ")
      text.append(row.integer(0))
      if row.integer(1) > 0 {
        text.append("; ")
        text.append(nanoseconds: row.unsigned(2) / row.unsigned(1))
        text.append(" on average, ")
        text.append(nanoseconds: row.unsigned(3))
        text.append(" at most, the last begun ")
        text.append(row.text(4))
      }
      text.append(counted: "; abandoned: ", row.integer(5))
      text.append(counted: "; leases: ", row.integer(6))
      text.append("\n")
    }
    if row.integer(7) > 0 {
      try callers(
        of: handle, run: row.integer(9),
        ended: row.isNull(10) ? nil : row.integer(10), connection,
        into: &text)
    }
    return true
  }

  /// Who was refused.
  private static func callers(
    of handle: UInt64, run: Int64, ended: Int64?, _ connection: Connection,
    into text: inout Text
  ) throws(DatabaseError) {
    let row = try connection.prepare(
      """
      SELECT r.refusals, h.title, s.name, r.first_time_ns, r.last_time_ns
      FROM refusal r
      LEFT JOIN thread h ON h.thread = r.thread
      LEFT JOIN status s ON s.status = r.status
      WHERE r.token = ?1 AND r.run = ?2
      ORDER BY r.first_sequence
      """)
    defer { row.finalize() }
    row.bind(1, handle)
    row.bind(2, run)
    var named = 0
    var others: Int64 = 0
    while try row.step() {
      guard named < namedCallers else {
        others += row.integer(0)
        continue
      }
      named += 1
      text.append("refused: ")
      text.append(row.integer(0))
      text.append(part: " by ", row.text(1))
      text.append(part: ", ", row.text(2))
      if let ended, row.integer(4) >= ended {
        text.append(", ")
        text.append(nanoseconds: UInt64(max(0, row.integer(3) - ended)))
        text.append(" after its end")
      }
      text.append("\n")
    }
    if others > 0 {
      text.append("refused: ")
      text.append(others)
      text.append(" by others\n")
    }
  }

  /// A lease has no row of its own: its token's events tell of it.
  static func lease(
    _ handle: UInt64, _ connection: Connection, into text: inout Text
  ) throws(DatabaseError) -> Bool {
    let row = try connection.prepare(
      """
      SELECT o.kind, h.time, h.thread, h.token, h.label
      FROM (SELECT kind, sequence FROM control_event
        WHERE related = ?1 AND kind IN (9, 10) ORDER BY sequence LIMIT 2) o
      JOIN history h ON h.sequence = o.sequence
      """)
    defer { row.finalize() }
    row.bind(1, handle)
    var isKnown = false
    while try row.step() {
      if !isKnown {
        text.append("lease ")
        text.append(hexadecimal: handle)
        text.append(" of token ")
        text.append(row.text(3))
        text.append(quoted: row.text(4))
        text.append("\n")
      }
      isKnown = true
      text.append(row.integer(0) == 9 ? "taken " : "ended ")
      text.append(row.text(1))
      text.append(part: " by ", row.text(2))
      text.append("\n")
    }
    return isKnown
  }
}

extension Text {
  /// Appends a label in quotes, if there is one.
  fileprivate mutating func append(quoted label: UnsafePointer<CChar>?) {
    guard let label else { return }
    append(" \"")
    append(label)
    append("\"")
  }

  /// Appends text after what leads to it, if there is any.
  fileprivate mutating func append(
    part lead: StaticString, _ text: UnsafePointer<CChar>?
  ) {
    guard let text else { return }
    append(lead)
    append(text)
  }

  /// Appends a count after what it counts, unless it is zero.
  fileprivate mutating func append(counted lead: StaticString, _ count: Int64) {
    guard count > 0 else { return }
    append(lead)
    append(count)
  }
}

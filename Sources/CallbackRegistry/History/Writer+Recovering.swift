// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Writing what a process that has died left in its rings.
extension Writer {
  /// Goes on where that process's own writer has come to: what it had read of
  /// each ring, and what its numbers of names mean.
  mutating func resume() throws(DatabaseError) {
    lookAtRings(markingTargets: false)
    if areRingsMissing { throw .noMemory }
    let statement = try connection.prepare(
      """
      SELECT r.number, r.consumed_position, r.consumed_events, r.rows,
        r.updates, r.aggregated, r.lost, r.ring,
        (SELECT max(thread) FROM thread t WHERE t.ring = r.ring)
      FROM ring r WHERE r.run = ?1
      """)
    defer { statement.finalize() }
    statement.bind(1, run)
    while try statement.step() {
      let number = statement.integer(0)
      guard number >= 1, number <= cursors.count else { continue }
      var progress = Progress()
      progress.position = statement.unsigned(1)
      progress.sequence = statement.unsigned(2)
      progress.rows = statement.unsigned(3)
      progress.updates = statement.unsigned(4)
      progress.aggregated = statement.unsigned(5)
      progress.lost = statement.unsigned(6)
      progress.row = statement.integer(7)
      progress.thread = statement.integer(8)
      cursors.pointer(to: Int(number) - 1).pointee.resume(progress)
    }
  }

  /// Takes over the names that are in the database.
  static func savedNames(
    _ kind: NameKind, of run: Int64, on connection: Connection
  ) throws(DatabaseError) -> Names {
    let statement = try connection.prepare(
      """
      SELECT number, name FROM dictionary WHERE run = ?1 AND kind = ?2
      ORDER BY number
      """)
    defer { statement.finalize() }
    statement.bind(1, run)
    statement.bind(2, kind.rawValue)
    var names = Names()
    while try statement.step() {
      guard statement.integer(0) == names.count + 1 else { break }
      guard names.add(row: statement.integer(1)) else { throw .noMemory }
    }
    names.commit()
    return names
  }

  /// Lets be read what is whole in each ring.
  ///
  /// `areas` says what the process itself knew of them.
  mutating func publishWhole(_ areas: borrowing CheckedArray<DeadArea>) {
    for index in 0..<areas.count {
      let area = areas[index]
      let cursor = cursors.pointer(to: Int(area.number) - 1)
      let begin = cursor.pointee.committed
      let whole = cursor.pointee.ring.publishWhole(
        from: begin.position, sequence: begin.sequence)
      cursor.pointee.isDamaged = whole.position < area.head
      // A number that nobody can have counted to is not believed.
      let limit =
        whole.sequence &+ area.head &+ cursor.pointee.ring.pointee.capacity
      guard area.emitted > whole.sequence, area.emitted <= limit else {
        continue
      }
      cursor.pointee.loss.add(
        Loss(
          from: whole.sequence, to: area.emitted - 1, time: whole.time))
    }
  }

  /// Writes the calls that were in flight, in a transaction of the caller's.
  func write(_ calls: borrowing CheckedArray<DeadCall>) throws(DatabaseError) {
    let statement = try connection.prepare(
      """
      INSERT OR IGNORE INTO in_flight
      SELECT ?1, ?2, ?3, ?4, ?5, coalesce((SELECT callback FROM token
        WHERE token = ?5 AND run = ?1), 0), ?6
      """)
    defer { statement.finalize() }
    for index in 0..<calls.count {
      let call = calls[index]
      let progress = cursors.pointer(to: Int(call.ring) - 1).pointee.committed
      statement.bind(1, run)
      statement.bind(2, progress.row)
      statement.bind(3, call.depth)
      statement.bind(4, progress.thread)
      statement.bind(5, call.token)
      if call.began == 0 {
        statement.bindNull(6)
      } else {
        statement.bind(6, clock.nanoseconds(at: call.began))
      }
      try statement.run()
    }
  }

  /// Writes everything, in as many transactions as it takes; nobody else uses
  /// the connection yet.
  mutating func writeAll() throws(DatabaseError) {
    while true {
      lookAtRings(markingTargets: false)
      gather()
      if batch.isEmpty { return }
      try write()
    }
  }
}

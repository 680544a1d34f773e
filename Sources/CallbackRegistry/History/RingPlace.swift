// SPDX-License-Identifier: Apache-2.0
//
// Files of rings that are not beside their history: a directory that the
// program has named may have those of many histories. Each run notes in the
// table `ring_place` where its own is, in the transaction that comes before
// anything is recorded; whoever recovers looks for these files and for no
// other one, so that nobody touches a file of another history.
//
// A copy of the history has the same rows. So they also say where the history
// was: while another file is there, they are that one's.

import CPlatform

/// Where the file of rings of one run is.
struct RingPlace: ~Copyable {
  let run: Int64
  private let memory: Scratch

  private init(run: Int64, memory: consuming Scratch) {
    self.run = run
    self.memory = memory
  }

  /// The name of the file.
  var file: UnsafePointer<CChar> { UnsafePointer(memory.start) }

  /// The place of the first run after another; nil: there is none.
  ///
  /// Those that have been missed already are looked for only when
  /// `missed`.
  static func next(
    after run: Int64, missed: Bool, of path: UnsafePointer<CChar>,
    on connection: Connection
  ) -> RingPlace? {
    // Not one statement for all: while it is open, nothing newer is seen.
    guard
      let statement = try? connection.prepare(
        """
        SELECT p.run, p.directory || u.uuid || '.ring', p.history
        FROM ring_place p JOIN run u ON u.run = p.run
        WHERE p.run > ?1 AND p.missing <= ?2 ORDER BY p.run
        """)
    else { return nil }
    defer { statement.finalize() }
    statement.bind(1, run)
    statement.bind(2, missed ? Int64(1) : 0)
    while (try? statement.step()) == true {
      guard let file = statement.text(1), let history = statement.text(2),
        isOurs(history, path), let memory = try? Scratch(bytes: 8_192)
      else { continue }
      var text = memory.text
      text.append(file)
      return RingPlace(run: statement.integer(0), memory: memory)
    }
    return nil
  }

  /// Whether what was noted by a history is of the one at a path: that one was
  /// there, or nothing is there any more.
  private static func isOurs(
    _ noted: UnsafePointer<CChar>, _ path: UnsafePointer<CChar>
  ) -> Bool {
    guard let former = FileIdentity(of: noted) else { return true }
    return former == FileIdentity(of: path)
  }

  /// Notes where the file of a run is.
  ///
  /// In a transaction of the caller's.
  static func note(
    _ run: Int64, in directory: UnsafePointer<CChar>,
    of path: UnsafePointer<CChar>, on connection: Connection
  ) throws(DatabaseError) {
    // A history of an earlier library has no such table.
    try connection.execute(Schema.ringPlaces)
    let statement = try connection.prepare(
      "INSERT OR REPLACE INTO ring_place VALUES (?1, ?2, ?3, 0)")
    defer { statement.finalize() }
    statement.bind(1, run)
    statement.bind(2, directory)
    statement.bind(3, path)
    try statement.run()
  }

  /// The file is there no more, and is not missed.
  static func forget(_ run: Int64, on connection: Connection) {
    try? connection.alone { () throws(DatabaseError) in
      try change("DELETE FROM ring_place WHERE run = ?1", run, on: connection)
    }
  }

  /// There is no such file.
  ///
  /// Where its run has ended, all of it had been written. Otherwise it is
  /// missed, and that is said once.
  func settle(database: Database) {
    let connection = database.connection
    let isNew = try? connection.transaction { () throws(DatabaseError) in
      try Self.change(
        """
        DELETE FROM ring_place WHERE run = ?1
          AND run IN (SELECT run FROM run WHERE ended IS NOT NULL)
        """, run, on: connection)
      try Self.change(
        "UPDATE ring_place SET missing = 1 WHERE run = ?1 AND missing = 0",
        run, on: connection)
      return connection.changes > 0
    }
    guard isNew == true, let scratch = try? Scratch(bytes: 8_192) else {
      return
    }
    var text = scratch.text
    text.append("the rings of run ")
    text.append(run)
    text.append(" are not where they were: if it has died, what it had not")
    text.append(" written is lost (")
    text.append(file)
    text.append(")")
    Recovery.note(UnsafePointer(scratch.start), code: 0, database: database)
  }

  private static func change(
    _ sql: StaticString, _ run: Int64, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    statement.bind(1, run)
    try statement.run()
  }
}

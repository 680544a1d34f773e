// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite

/// Which run a process is, in whatever file it writes.
struct RunIdentity {
  let identifier: RingFileIdentity.Identifier
  /// What the run began in, and why it goes on in another file.
  var predecessor: UnsafePointer<CChar>?

  /// A random UUID, version 4, variant 1.
  init() {
    var identifier: RingFileIdentity.Identifier = (0, 0, 0, 0, 0)
    withUnsafeMutableBytes(of: &identifier) { bytes in
      Self.write(
        to: bytes.baseAddress!.assumingMemoryBound(to: CChar.self),
        size: bytes.count)
    }
    self.identifier = identifier
  }

  /// That of a run that is known.
  init(_ identifier: RingFileIdentity.Identifier) {
    self.identifier = identifier
  }

  /// Binds the identifier, and runs a statement while it is in place.
  func bind<Result>(
    _ index: Int32, of statement: Statement,
    _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try withUnsafeBytes(of: identifier) { bytes throws(DatabaseError) in
      statement.bind(
        index, bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
        length: RingFileIdentity.textBytes)
      return try body()
    }
  }

  private static func write(
    to buffer: UnsafeMutablePointer<CChar>, size: Int
  ) {
    var numbers = (UInt64(0), UInt64(0), UInt64(0), UInt64(0), UInt64(0))
    withUnsafeMutableBytes(of: &numbers) { bytes in
      let digits = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
      var text = Text(digits, size: bytes.count)
      text.append(hexadecimal: cbr_random() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000)
      text.append(
        hexadecimal: cbr_random() & 0x3FFF_FFFF_FFFF_FFFF
          | 0x8000_0000_0000_0000)
      // Both numbers begin with 0x.
      let high = digits + 2
      let low = digits + 20
      text = Text(buffer, size: size)
      text.append(high, length: 8)
      text.append("-")
      text.append(high + 8, length: 4)
      text.append("-")
      text.append(high + 12, length: 4)
      text.append("-")
      text.append(low, length: 4)
      text.append("-")
      text.append(low + 4, length: 12)
    }
  }
}

/// The row of one process that writes a history.
enum Run {
  /// The row of this process, added when there is none; returns its number.
  static func begin(
    _ identity: RunIdentity, on connection: Connection
  ) throws(DatabaseError) -> Int64 {
    if let number = try find(identity, on: connection) { return number }
    return try add(identity, on: connection)
  }

  /// The row of a run; nil: it has none here.
  static func find(
    _ identity: RunIdentity, on connection: Connection
  ) throws(DatabaseError) -> Int64? {
    let statement = try connection.prepare(
      "SELECT run FROM run WHERE uuid = ?1")
    defer { statement.finalize() }
    return try identity.bind(1, of: statement) { () throws(DatabaseError) in
      try statement.step() ? statement.integer(0) : nil
    }
  }

  private static func add(
    _ identity: RunIdentity, on connection: Connection
  ) throws(DatabaseError) -> Int64 {
    let statement = try connection.prepare(
      """
      INSERT INTO run (uuid, host, boot, pid, executable, library_version,
        sqlite_version, clock, began_time_ns, realtime_offset_ns, predecessor)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
      """)
    defer { statement.finalize() }
    let scratch = try Scratch(bytes: 8192)
    let host = scratch.start
    let boot = host + 256
    let executable = boot + 64
    cbr_host_name(host, 256)
    cbr_boot_identity(boot, 64)
    cbr_executable_path(executable, 4097)
    let now = cbr_monotonic_nanoseconds()
    statement.bind(2, host)
    statement.bind(3, boot)
    statement.bind(4, Int64(cbr_process_number()))
    statement.bind(5, executable)
    statement.bind(6, Library.version)
    statement.bind(7, sqlite3_libversion())
    let clock: StaticString =
      cbr_counter_is_trusted()
      ? "time-stamp counter" : "clock_gettime"
    statement.bind(8, clock)
    statement.bind(9, now)
    statement.bind(10, cbr_realtime_nanoseconds() &- now)
    statement.bind(11, identity.predecessor)
    try identity.bind(1, of: statement, statement.run)
    return connection.lastRow
  }

  /// Says whether the run's rings survive a crash.
  static func noteProtection(
    of run: Int64, _ protection: StaticString, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try connection.prepare(
      "UPDATE run SET crash_protection = ?2 WHERE run = ?1")
    defer { statement.finalize() }
    statement.bind(1, run)
    statement.bind(2, protection)
    try connection.alone(statement.run)
  }

  /// Says whether the run's rows become blocks.
  static func noteEvidence(
    of run: Int64, _ evidence: StaticString, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try connection.prepare(
      "UPDATE run SET tamper_evidence = ?2 WHERE run = ?1")
    defer { statement.finalize() }
    statement.bind(1, run)
    statement.bind(2, evidence)
    try statement.run()
  }

  /// Says how a run ended, on the connection of that run.
  static func end(
    _ run: Int64, how: StaticString, on connection: Connection
  ) throws(DatabaseError) {
    let statement = try connection.prepare(
      "UPDATE run SET ended = ?2, ended_time_ns = ?3 WHERE run = ?1")
    defer { statement.finalize() }
    statement.bind(1, run)
    statement.bind(2, how)
    statement.bind(3, cbr_monotonic_nanoseconds())
    try connection.alone(statement.run)
  }
}

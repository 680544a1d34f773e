// SPDX-License-Identifier: Apache-2.0

import CPlatform
import CSQLite

/// The row of one process that writes a history.
enum Run {
  /// Adds the row of this process; returns its number.
  static func begin(on connection: Connection) throws(DatabaseError) -> Int64 {
    let statement = try connection.prepare(
      """
      INSERT INTO run (uuid, host, boot, pid, executable, library_version,
        sqlite_version, clock, began_time_ns, realtime_offset_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
      """)
    defer { statement.finalize() }
    let scratch = try Scratch(bytes: 8192)
    let uuid = scratch.start
    let host = uuid + 128
    let boot = host + 256
    let executable = boot + 64
    writeIdentifier(to: uuid, size: 128)
    cbr_host_name(host, 256)
    cbr_boot_identity(boot, 64)
    cbr_executable_path(executable, 4097)
    let now = cbr_monotonic_nanoseconds()
    statement.bind(1, uuid)
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
    try statement.run()
    return connection.lastRow
  }

  /// The run's identifier as text.
  static func identifier(
    _ run: Int64, on connection: Connection
  ) throws(DatabaseError) -> RingFileIdentity.Identifier {
    let statement = try connection.prepare(
      "SELECT uuid FROM run WHERE run = ?1")
    defer { statement.finalize() }
    statement.bind(1, run)
    guard try statement.step(), let text = statement.text(0) else {
      throw .corrupt
    }
    defer { statement.reset() }
    var identifier: RingFileIdentity.Identifier = (0, 0, 0, 0, 0)
    withUnsafeMutableBytes(of: &identifier) { bytes in
      bytes.baseAddress?.copyMemory(
        from: text, byteCount: RingFileIdentity.textBytes)
    }
    return identifier
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
    try statement.run()
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
    try statement.run()
  }

  /// Writes a random UUID, version 4, variant 1.
  private static func writeIdentifier(
    to buffer: UnsafeMutablePointer<CChar>, size: Int
  ) {
    let digits = buffer + size / 2
    var text = Text(digits, size: size / 2)
    text.append(hexadecimal: cbr_random() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000)
    text.append(
      hexadecimal: cbr_random() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    // Both numbers begin with 0x.
    let high = digits + 2
    let low = digits + 20
    text = Text(buffer, size: size / 2)
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

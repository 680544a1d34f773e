// SPDX-License-Identifier: Apache-2.0

import CSQLite

/// A prepared statement.
///
/// A copy names the same one. Parameters and columns are numbered as in SQLite:
/// parameters from 1, columns from 0.
struct Statement {
  private let raw: OpaquePointer

  init(raw: OpaquePointer) { self.raw = raw }

  func finalize() { sqlite3_finalize(raw) }

  // Binding fails only for a wrong number or, with text that SQLite copies,
  // without memory. Neither happens: the text stays the caller's.

  @inline(__always)
  func bind(_ index: Int32, _ value: Int64) {
    sqlite3_bind_int64(raw, index, value)
  }

  /// Binds all 64 bits; SQLite's integers have a sign.
  @inline(__always)
  func bind(_ index: Int32, _ value: UInt64) {
    sqlite3_bind_int64(raw, index, Int64(bitPattern: value))
  }

  func bind(_ index: Int32, _ value: UInt32) {
    sqlite3_bind_int64(raw, index, Int64(value))
  }

  func bindNull(_ index: Int32) { sqlite3_bind_null(raw, index) }

  /// Binds text that must stay in place until the statement has run.
  func bind(_ index: Int32, _ text: UnsafePointer<CChar>?, length: Int = -1) {
    sqlite3_bind_text(raw, index, text, Int32(truncatingIfNeeded: length), nil)
  }

  func bind(_ index: Int32, _ text: StaticString) {
    bind(index, text.characters, length: text.utf8CodeUnitCount)
  }

  /// Goes on to the next row; false when there is none, and the statement can
  /// be bound and run again.
  func step() throws(DatabaseError) -> Bool {
    let code = sqlite3_step(raw)
    if code == SQLITE_ROW { return true }
    sqlite3_reset(raw)
    if code == SQLITE_DONE { return false }
    throw DatabaseError(code: code)
  }

  /// Runs a statement of which no row is wanted.
  @inline(__always)
  func run() throws(DatabaseError) {
    let code = sqlite3_step(raw)
    sqlite3_reset(raw)
    if code != SQLITE_DONE, code != SQLITE_ROW {
      throw DatabaseError(code: code)
    }
  }

  /// Ends a row before the last one.
  func reset() { sqlite3_reset(raw) }

  var columns: Int32 { sqlite3_column_count(raw) }

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(raw, column) }

  func unsigned(_ column: Int32) -> UInt64 {
    UInt64(bitPattern: integer(column))
  }

  func isNull(_ column: Int32) -> Bool {
    sqlite3_column_type(raw, column) == SQLITE_NULL
  }

  /// A hash; nil when the column is none.
  func digest(_ column: Int32) -> Digest? {
    guard sqlite3_column_bytes(raw, column) == Int32(Digest.bytes),
      let bytes = sqlite3_column_blob(raw, column)
    else { return nil }
    return Digest(bytes)
  }

  /// Binds a hash that must stay in place until the statement has run, or
  /// NULL.
  func bind(_ index: Int32, _ digest: UnsafePointer<Digest>?) {
    sqlite3_bind_blob(raw, index, digest, Int32(Digest.bytes), nil)
  }

  /// Binds a hash for the run that follows.
  func run(
    binding digest: Digest, to index: Int32
  ) throws(DatabaseError) {
    try digest.withBytes { bytes throws(DatabaseError) in
      sqlite3_bind_blob(
        raw, index, bytes.baseAddress, Int32(Digest.bytes), nil)
      try run()
    }
  }

  /// Adds the row's columns, which are integers, text or NULL, to a hash.
  func addRow(to hash: Hash) {
    hash.appendRow()
    for column in 0..<columns {
      switch sqlite3_column_type(raw, column) {
      case SQLITE_INTEGER: hash.append(integer(column))
      case SQLITE_NULL: hash.appendNull()
      default:
        guard let text = text(column) else { return hash.appendNull() }
        let length = Int(sqlite3_column_bytes(raw, column))
        hash.append(text: text, length: length)
      }
    }
  }

  /// Text that is valid until the next step or reset; nil for NULL.
  func text(_ column: Int32) -> UnsafePointer<CChar>? {
    guard let text = sqlite3_column_text(raw, column) else { return nil }
    return UnsafeRawPointer(text).assumingMemoryBound(to: CChar.self)
  }
}

// SPDX-License-Identifier: Apache-2.0

/// The columns of a row of `control_event`, which are bound and hashed.
///
/// Numbered as a statement's parameters are; NULL until they are set.
struct ControlColumns {
  static var count: Int32 { 13 }

  private typealias Values = (
    Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64,
    Int64, Int64, Int64
  )
  private var values: Values = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
  /// A bit for each column.
  private var present: UInt32 = 0

  mutating func set(_ index: Int32, _ value: Int64) {
    withUnsafeMutableBytes(of: &values) { bytes in
      bytes.storeBytes(
        of: value, toByteOffset: Int(index - 1) * MemoryLayout<Int64>.size,
        as: Int64.self)
    }
    present |= 1 << UInt32(index)
  }

  /// Sets all 64 bits; SQLite's integers have a sign.
  mutating func set(_ index: Int32, _ value: UInt64) {
    set(index, Int64(bitPattern: value))
  }

  mutating func set(_ index: Int32, _ value: UInt32) {
    set(index, Int64(value))
  }

  subscript(index: Int32) -> Int64? {
    if present & 1 << UInt32(index) == 0 { return nil }
    return withUnsafeBytes(of: values) { bytes in
      bytes.load(
        fromByteOffset: Int(index - 1) * MemoryLayout<Int64>.size,
        as: Int64.self)
    }
  }

  func bind(to statement: Statement) {
    for index in 1...Self.count {
      if let value = self[index] {
        statement.bind(index, value)
      } else {
        statement.bindNull(index)
      }
    }
  }

  func add(to hash: Hash) {
    hash.appendRow()
    for index in 1...Self.count {
      if let value = self[index] {
        hash.append(value)
      } else {
        hash.appendNull()
      }
    }
  }
}

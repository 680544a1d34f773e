// SPDX-License-Identifier: Apache-2.0

/// The rows of a dictionary's entries.
///
/// `working` goes ahead in a batch and becomes `committed` with it, or goes
/// back to it.
struct Names: ~Copyable {
  private var rows = CheckedArray<Int64>()
  private var committed = 0

  var count: Int { rows.count }

  /// The row of an entry; 0 when there is none.
  subscript(number: UInt32) -> Int64 {
    number >= 1 && Int(number) <= rows.count ? rows[Int(number) - 1] : 0
  }

  /// Adds the next entry's row; false without memory.
  mutating func add(row: Int64) -> Bool { rows.append(row) }

  mutating func commit() { committed = rows.count }
  mutating func revert() { rows.keep(committed) }
}

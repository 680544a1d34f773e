// SPDX-License-Identifier: Apache-2.0

/// CRC-32C by a table: not the library's own, which it is to judge.
struct Checksum {
  private static let table: [UInt32] = (0..<256).map { byte in
    var sum = UInt32(byte)
    for _ in 0..<8 {
      sum = sum & 1 == 1 ? sum >> 1 ^ 0x82F6_3B78 : sum >> 1
    }
    return sum
  }

  private(set) var value: UInt32 = 0

  mutating func add(_ word: UInt64) {
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      let byte = value ^ UInt32(truncatingIfNeeded: word >> shift)
      value = value >> 8 ^ Self.table[Int(byte & 0xFF)]
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Text that events name by number: labels of callbacks, and sites (a file and
/// a line).
///
/// The same text has the same number. Numbers start at 1 and have no gaps, so
/// that a reader can go on from the last one it knows. Guarded by the
/// recorder's monitor; the text itself never moves.
package struct Dictionary: ~Copyable {
  package struct Entry {
    package let text: UnsafePointer<CChar>
    package let length: Int
    package let line: UInt32
    let hash: UInt32
  }

  private var entries: UnsafeMutablePointer<Entry>?
  private var capacity = 0
  private var used = 0
  /// The last number that another process gave; their texts are not here.
  private let before: Int
  /// Open addressing: places of entries, from 1; 0 where free.
  ///
  /// Twice `capacity` places.
  private var places: UnsafeMutablePointer<UInt32>?

  /// Goes on behind `before` numbers that are known elsewhere.
  package init(after before: Int = 0) { self.before = before }

  package var count: Int { before + used }

  deinit {
    for index in 0..<used {
      Memory.release(UnsafeMutableRawPointer(mutating: entries![index].text))
    }
    Memory.release(entries)
    Memory.release(places)
  }

  package subscript(number: UInt32) -> Entry? {
    guard Int(number) > before, Int(number) <= count, let entries else {
      return nil
    }
    return entries[Int(number) - before - 1]
  }

  /// Returns the number of the text, a new one if need be; nil without memory.
  mutating func intern(
    _ text: UnsafePointer<CChar>, length: Int, line: UInt32,
    isNew: inout Bool
  ) -> UInt32? {
    let hash = Self.hash(text, length: length, line: line)
    if let known = find(text, length: length, line: line, hash: hash) {
      return known
    }
    guard used < capacity || grow() else { return nil }
    guard let copy = Memory.copy(text, length: length) else { return nil }
    entries![used] = Entry(
      text: UnsafePointer(copy), length: length, line: line, hash: hash)
    used += 1
    place(UInt32(used), hash: hash)
    isNew = true
    return UInt32(count)
  }

  private func find(
    _ text: UnsafePointer<CChar>, length: Int, line: UInt32, hash: UInt32
  ) -> UInt32? {
    guard let places, let entries else { return nil }
    let mask = capacity * 2 - 1
    var index = Int(hash) & mask
    while places[index] != 0 {
      let entry = entries[Int(places[index]) - 1]
      if entry.hash == hash, entry.line == line, entry.length == length,
        cbr_bytes_are_equal(entry.text, text, length)
      {
        return UInt32(before) + places[index]
      }
      index = (index + 1) & mask
    }
    return nil
  }

  private mutating func place(_ number: UInt32, hash: UInt32) {
    let mask = capacity * 2 - 1
    var index = Int(hash) & mask
    while places![index] != 0 { index = (index + 1) & mask }
    places![index] = number
  }

  private mutating func grow() -> Bool {
    let larger = max(64, capacity * 2)
    let newEntries = Memory.allocate(Entry.self, count: larger)
    let newPlaces = Memory.allocate(UInt32.self, count: larger * 2)
    guard let newEntries, let newPlaces else {
      Memory.release(newEntries)
      Memory.release(newPlaces)
      return false
    }
    if let entries { newEntries.update(from: entries, count: used) }
    Memory.release(entries)
    Memory.release(places)
    entries = newEntries
    places = newPlaces
    capacity = larger
    for index in 0..<used {
      place(UInt32(index + 1), hash: newEntries[index].hash)
    }
    return true
  }

  /// A multiplication by an odd number for each eight bytes, the line and the
  /// bytes left over; which of it is used depends on all of them.
  private static func hash(
    _ text: UnsafePointer<CChar>, length: Int, line: UInt32
  ) -> UInt32 {
    let bytes = UnsafeRawPointer(text)
    var hash = UInt64(line) << 32 | UInt64(truncatingIfNeeded: length)
    var index = 0
    while index + 8 <= length {
      mix(&hash, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      index += 8
    }
    var rest: UInt64 = 0
    while index < length {
      rest = rest << 8 | UInt64(UInt8(bitPattern: text[index]))
      index += 1
    }
    mix(&hash, rest)
    return UInt32(truncatingIfNeeded: hash)
  }

  @inline(__always)
  private static func mix(_ hash: inout UInt64, _ word: UInt64) {
    // 2^64 divided by the golden ratio.
    hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
    hash ^= hash >> 32
  }
}

/// Whether two texts have the same first `length` bytes.
package func areEqual(
  _ one: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>, length: Int
) -> Bool {
  for index in 0..<length where one[index] != other[index] { return false }
  return true
}

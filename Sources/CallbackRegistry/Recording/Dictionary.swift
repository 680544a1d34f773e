// SPDX-License-Identifier: Apache-2.0

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
  package private(set) var count = 0
  /// Open addressing: numbers, 0 where free.
  ///
  /// Twice `capacity` places.
  private var places: UnsafeMutablePointer<UInt32>?

  package init() {}

  deinit {
    for index in 0..<count {
      Memory.release(UnsafeMutableRawPointer(mutating: entries![index].text))
    }
    Memory.release(entries)
    Memory.release(places)
  }

  package subscript(number: UInt32) -> Entry? {
    guard number >= 1, Int(number) <= count, let entries else { return nil }
    return entries[Int(number) - 1]
  }

  /// Returns the number of the text, a new one if need be; nil without memory.
  package mutating func intern(
    _ text: UnsafePointer<CChar>, length: Int, line: UInt32 = 0
  ) -> UInt32? {
    let hash = Self.hash(text, length: length, line: line)
    if let known = find(text, length: length, line: line, hash: hash) {
      return known
    }
    guard count < capacity || grow() else { return nil }
    guard let copy = Memory.copy(text, length: length) else { return nil }
    entries![count] = Entry(
      text: UnsafePointer(copy), length: length, line: line, hash: hash)
    count += 1
    place(UInt32(count), hash: hash)
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
        areEqual(entry.text, text, length: length)
      {
        return places[index]
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
    if let entries { newEntries.update(from: entries, count: count) }
    Memory.release(entries)
    Memory.release(places)
    entries = newEntries
    places = newPlaces
    capacity = larger
    for index in 0..<count {
      place(UInt32(index + 1), hash: newEntries[index].hash)
    }
    return true
  }

  /// FNV-1a over the bytes and the line.
  private static func hash(
    _ text: UnsafePointer<CChar>, length: Int, line: UInt32
  ) -> UInt32 {
    var hash = UInt32(2_166_136_261) ^ line
    for index in 0..<length {
      hash = (hash ^ UInt32(UInt8(bitPattern: text[index]))) &* 16_777_619
    }
    return hash ^ hash >> 15
  }
}

/// Whether two texts have the same first `length` bytes.
package func areEqual(
  _ one: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>, length: Int
) -> Bool {
  for index in 0..<length where one[index] != other[index] { return false }
  return true
}

// SPDX-License-Identifier: Apache-2.0

@testable import CallbackRegistry

/// The bytes of a file of rings, read by a reader that shares nothing with
/// the library's but the layout.
struct RingFileImage {
  var bytes: [UInt8]

  static var firstArea: Int { 327_680 }
  static var recordsOffset: Int { 4_096 }
  static var recordBytes: Int { 32 }

  /// Places in the header, in words.
  private enum Word {
    static let magic = 0
    static let format = 1
    static let areaBytes = 2
    static let ringRecords = 3
    static let epoch = 4
    static let run = 7
    static let check = 17
  }

  /// A word of the file; 0 behind its end.
  func word(at offset: Int) -> UInt64 {
    guard offset + 8 <= bytes.count else { return 0 }
    return bytes.withUnsafeBytes {
      $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
  }

  mutating func set(_ word: UInt64, at offset: Int) {
    guard offset + 8 <= bytes.count else { return }
    bytes.withUnsafeMutableBytes {
      $0.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
    }
  }

  mutating func cut(to length: Int) {
    if length < bytes.count { bytes.removeLast(bytes.count - length) }
  }

  private subscript(_ word: Int) -> UInt64 {
    get { self.word(at: word * 8) }
    set { set(newValue, at: word * 8) }
  }

  var ringRecords: Int { Int(truncatingIfNeeded: self[Word.ringRecords]) }

  private var areaBytes: Int {
    (Self.recordsOffset + ringRecords * Self.recordBytes + 65_535) & ~65_535
  }

  /// Where areas begin that are in the file as a whole.
  var areas: [Int] {
    guard ringRecords > 0, ringRecords <= 1 << 24 else { return [] }
    return Array(
      stride(
        from: Self.firstArea, through: bytes.count - areaBytes, by: areaBytes))
  }

  /// Makes the file one of a run's.
  mutating func set(run: RingFileIdentity.Identifier) {
    let words = [run.0, run.1, run.2, run.3, run.4]
    for index in 0..<5 { self[Word.run + index] = words[index] }
  }

  /// Makes a file that the library knows of what may be anything.
  mutating func repairIdentity() {
    self[Word.magic] = 0x5347_4E49_5252_4243
    self[Word.format] = 1
    if ringRecords <= 0 || ringRecords & (ringRecords - 1) != 0
      || ringRecords > 1 << 15
    {
      self[Word.ringRecords] = 1 << (self[Word.ringRecords] & 7)
    }
    self[Word.areaBytes] = UInt64(areaBytes)
    repairCheck()
  }

  mutating func repairCheck() {
    var sum = Checksum()
    for index in 0..<Word.check { sum.add(self[index]) }
    self[Word.check] = UInt64(sum.value)
  }

  /// The number of the ring in an area, on which its checks depend.
  func number(ofArea area: Int) -> UInt32 {
    UInt32(truncatingIfNeeded: word(at: area + 48))
  }

  /// The check of a record that begins an event, and whether it is of one
  /// that the library may have recorded; the first lap of a ring.
  private func check(
    _ index: Int, area: Int
  ) -> (sum: UInt32, records: Int)? {
    let offset = area + Self.recordsOffset + index * Self.recordBytes
    let head = word(at: offset)
    let kind = UInt8(truncatingIfNeeded: head >> 8)
    let more = kind == 1 ? 0 : Int(head & 0xFF)
    guard (1...16).contains(kind), index + more < ringRecords else {
      return nil
    }
    var sum = Checksum()
    sum.add(self[Word.epoch])
    sum.add(UInt64(number(ofArea: area)))
    sum.add(UInt64(index))
    for each in 0..<3 { sum.add(word(at: offset + each * 8)) }
    sum.add(word(at: offset + 24) >> 32)
    for each in 0..<more * 4 {
      sum.add(word(at: offset + Self.recordBytes + each * 8))
    }
    return (sum.value, 1 + more)
  }

  /// Vouches for whatever is in the records.
  mutating func repairRecords() {
    for area in areas {
      var index = 0
      while index < ringRecords {
        guard let found = check(index, area: area) else { break }
        let offset = area + Self.recordsOffset + index * Self.recordBytes + 24
        let argument = word(at: offset) & 0xFFFF_FFFF_0000_0000
        set(argument | UInt64(found.sum), at: offset)
        index += found.records
      }
    }
  }

  /// The bytes that mean something, and every 509th of the others.
  var places: [Int] {
    var parts = [0..<208, 1_024..<1_072, 65_536..<65_700]
    var records = 48
    for area in areas {
      let first = area + Self.recordsOffset
      parts += [
        area..<(area + 136), (area + 1_024)..<(area + 1_060),
        first..<(first + records * Self.recordBytes),
      ]
      // The other threads have recorded less.
      records = 8
    }
    return bytes.indices.filter { place in
      place % 509 == 0 || parts.contains { $0.contains(place) }
    }
  }

  /// An event as far as a history must have it right.
  struct Event: Hashable {
    let kind: Int64
    let handle: Int64
  }

  /// The events whose check holds.
  var events: [Event: Int] {
    var events: [Event: Int] = [:]
    for area in areas {
      for index in 0..<ringRecords {
        let offset = area + Self.recordsOffset + index * Self.recordBytes
        guard let found = check(index, area: area),
          found.sum == UInt32(truncatingIfNeeded: word(at: offset + 24))
        else { continue }
        let event = Event(
          kind: Int64(word(at: offset) >> 8 & 0xFF),
          handle: Int64(bitPattern: word(at: offset + 16)))
        events[event, default: 0] += 1
      }
    }
    return events
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Names in a file of rings: those that the recorder has numbered and that are
// not yet in the database. They are appended to one half; when it is full, the
// ones that are still needed are written to the other half, and that one takes
// its place by one store. In words:
//
//     check 32 | bytes 32     CRC-32C of the epoch and all that follows
//     kind 32 | number 32
//     line
//     text, filled up with zeros

import CPlatform
import Synchronization

/// What a dictionary's text names.
package enum NameKind: UInt32 {
  case callback = 1
  case site = 2
}

/// A name as it is in the file.
package struct FiledName {
  package let kind: NameKind
  package let number: UInt32
  package let line: UInt32
  package let text: UnsafePointer<CChar>
  package let length: Int

  package init(
    kind: NameKind, number: UInt32, line: UInt32,
    text: UnsafePointer<CChar>, length: Int
  ) {
    self.kind = kind
    self.number = number
    self.line = line
    self.text = text
    self.length = length
  }
}

extension UnsafeMutablePointer where Pointee == RingFileHeader {
  private static var wordsBefore: Int { 3 }

  private static func words(forBytes bytes: Int) -> Int {
    wordsBefore + (bytes + 7) / 8
  }

  private func half(_ number: UInt64) -> UnsafeMutablePointer<UInt64> {
    (UnsafeMutableRawPointer(self)
      + Int(RingFileLayout.headerBytes + number * RingFileLayout.halfBytes))
      .assumingMemoryBound(to: UInt64.self)
  }

  private func used(ofHalf number: UInt64) -> Int {
    let words =
      number == 0
      ? pointee.usedOfFirst.load(ordering: .acquiring)
      : pointee.usedOfSecond.load(ordering: .acquiring)
    return Int(min(words, RingFileLayout.halfBytes / 8))
  }

  private func setUsed(_ words: Int, ofHalf number: UInt64) {
    if number == 0 {
      pointee.usedOfFirst.store(UInt64(words), ordering: .releasing)
    } else {
      pointee.usedOfSecond.store(UInt64(words), ordering: .releasing)
    }
  }

  private var activeHalf: UInt64 {
    pointee.active.load(ordering: .acquiring) & 1
  }

  private func check(_ words: UnsafePointer<UInt64>, count: Int) -> UInt32 {
    var sum = cbr_check(0, pointee.identity.epoch)
    sum = cbr_check(sum, words[0] >> 32)
    for index in 1..<count { sum = cbr_check(sum, words[index]) }
    return sum
  }

  /// Appends a name to the active half; false when it is full.
  func append(_ name: FiledName) -> Bool {
    append(name, toHalf: activeHalf)
  }

  private func append(_ name: FiledName, toHalf half: UInt64) -> Bool {
    let used = used(ofHalf: half)
    let count = Self.words(forBytes: name.length)
    guard used + count <= Int(RingFileLayout.halfBytes / 8) else {
      return false
    }
    let words = self.half(half) + used
    words[count - 1] = 0
    words[1] = UInt64(name.kind.rawValue) << 32 | UInt64(name.number)
    words[2] = UInt64(name.line)
    UnsafeMutableRawPointer(words + Self.wordsBefore).copyMemory(
      from: name.text, byteCount: name.length)
    words[0] = UInt64(name.length) << 32
    words[0] |= UInt64(check(words, count: count))
    setUsed(used + count, ofHalf: half)
    return true
  }

  /// Begins the other half, with what `fill` appends to it, and makes it the
  /// active one.
  func turn(_ fill: (_ append: (FiledName) -> Bool) -> Void) {
    let other = activeHalf ^ 1
    setUsed(0, ofHalf: other)
    fill { name in append(name, toHalf: other) }
    pointee.active.store(other, ordering: .releasing)
  }

  /// Visits the names of the active half, up to the first one that is not
  /// whole.
  package func visitNames(_ visit: (FiledName) -> Void) {
    let half = activeHalf
    let used = used(ofHalf: half)
    var index = 0
    while index + Self.wordsBefore <= used {
      let words = self.half(half) + index
      let length = Int(words[0] >> 32)
      let count = Self.words(forBytes: length)
      guard count <= used - index,
        UInt32(truncatingIfNeeded: words[0]) == check(words, count: count),
        let kind = NameKind(
          rawValue: UInt32(truncatingIfNeeded: words[1] >> 32))
      else { return }
      visit(
        FiledName(
          kind: kind, number: UInt32(truncatingIfNeeded: words[1]),
          line: UInt32(truncatingIfNeeded: words[2]),
          text: UnsafeRawPointer(words + Self.wordsBefore)
            .assumingMemoryBound(to: CChar.self),
          length: length))
      index += count
    }
  }
}

extension UnsafeMutablePointer where Pointee == Recorder {
  /// Numbers a text; nil without memory.
  ///
  /// The recorder's monitor is held. A number is in the file before anything
  /// can be recorded that uses it.
  package func intern(
    _ kind: NameKind, _ text: UnsafePointer<CChar>, length: Int,
    line: UInt32 = 0
  ) -> UInt32? {
    var isNew = false
    let number =
      kind == .callback
      ? pointee.callbacks.intern(
        text, length: length, line: line, isNew: &isNew)
      : pointee.sites.intern(text, length: length, line: line, isNew: &isNew)
    if isNew, let number {
      file(
        FiledName(
          kind: kind, number: number, line: line, text: text, length: length))
    }
    return number
  }

  private func count(of kind: NameKind) -> Int {
    kind == .callback ? pointee.callbacks.count : pointee.sites.count
  }

  /// The names up to these numbers are in the database.
  package func noteSaved(callbacks: Int, sites: Int) {
    pointee.monitor.locked {
      pointee.savedCallbacks = callbacks
      pointee.savedSites = sites
    }
  }

  /// What finds no room is without a name after a crash; but the writer saves
  /// names with its next batch.
  private func file(_ name: FiledName) {
    guard let header = fileHeader, !header.append(name) else { return }
    header.turn { append in
      fileUnsaved(.callback, from: pointee.savedCallbacks, append)
      fileUnsaved(.site, from: pointee.savedSites, append)
    }
  }

  private func fileUnsaved(
    _ kind: NameKind, from saved: Int, _ append: (FiledName) -> Bool
  ) {
    var number = saved + 1
    while number <= count(of: kind) {
      let entry =
        kind == .callback
        ? pointee.callbacks[UInt32(number)] : pointee.sites[UInt32(number)]
      guard let entry,
        append(
          FiledName(
            kind: kind, number: UInt32(number), line: entry.line,
            text: entry.text, length: entry.length))
      else { return }
      number += 1
    }
  }
}

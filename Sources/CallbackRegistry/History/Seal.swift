// SPDX-License-Identifier: Apache-2.0
//
// The key that seals blocks, in a file beside the history, <history>.seal. The
// key of each block is a hash of the one before, which is overwritten: whoever
// finds the present key cannot compute what sealed earlier blocks. Whoever
// kept the first one elsewhere can.
//
//     magic 64 | format 64 | block 64 | key 256 | check 64
//
// in the byte order of the machine. The check is the CRC-32C of all before.

import CPlatform

/// A key, and the number of the block that it seals, in memory that is
/// overwritten at the end.
package struct SealKey: ~Copyable {
  package static var bytes: Int { 32 }
  private static var fileBytes: Int { 64 }
  private static var magic: UInt64 { 0x4C41_4553_2D52_4243 }
  private static var format: UInt64 { 1 }

  private let words: UnsafeMutablePointer<UInt64>

  /// Nil without memory.
  package init?() {
    guard let words = Memory.allocate(UInt64.self, count: 8) else { return nil }
    self.words = words
  }

  deinit {
    wipe()
    Memory.release(words)
  }

  package func wipe() { cbr_secret_wipe(words, Self.fileBytes) }

  /// The block that the key is for.
  package var block: Int64 { Int64(bitPattern: words[2]) }

  package var key: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: words + 3, count: Self.bytes)
  }

  package func set(block: Int64, key: UnsafeRawBufferPointer) {
    words[2] = UInt64(bitPattern: block)
    UnsafeMutableRawPointer(words + 3)
      .copyMemory(from: key.baseAddress!, byteCount: Self.bytes)
  }

  /// Makes a key that nobody knows; false: the system cannot.
  func makeSecret(block: Int64) -> Bool {
    words[2] = UInt64(bitPattern: block)
    return cbr_secret_make(words + 3, Self.bytes)
  }

  /// Makes it the next block's; false: libcrypto has failed.
  package func ratchet(by hash: Hash) -> Bool {
    let purpose: StaticString = "ratchet"
    begin(purpose, by: hash)
    let isDone = hash.end(into: words + 3)
    hash.forget()
    words[2] &+= 1
    return isDone
  }

  /// What the block has for a seal; nil: libcrypto has failed.
  package func seal(of root: Digest, by hash: Hash) -> Digest? {
    let purpose: StaticString = "seal"
    begin(purpose, by: hash)
    root.withBytes { hash.append(bytes: $0.baseAddress!, count: $0.count) }
    let seal = hash.end()
    hash.forget()
    return seal
  }

  private func begin(_ purpose: StaticString, by hash: Hash) {
    hash.begin()
    hash.append(bytes: purpose.utf8Start, count: purpose.utf8CodeUnitCount)
    hash.append(bytes: words + 3, count: Self.bytes)
  }

  /// Reads it from a file; false: what is there is none.
  func read(from file: Int32) -> Bool {
    cbr_file_bytes(file) == UInt64(Self.fileBytes)
      && cbr_file_read(file, words, 0, UInt64(Self.fileBytes))
      && words[0] == Self.magic && words[1] == Self.format
      && words[7] == check && block > 0
  }

  /// Overwrites the one in a file.
  func write(to file: Int32) -> Bool {
    complete()
    return cbr_secret_write(file, words, Self.fileBytes)
  }

  /// Makes its file, which belongs to whom the history does; or
  /// CBR_FILE_IN_USE: there is one; what errno was.
  func create(
    at path: UnsafePointer<CChar>, of history: UnsafePointer<CChar>
  ) -> Int32 {
    complete()
    return cbr_secret_create(path, history, words, Self.fileBytes)
  }

  private func complete() {
    words[0] = Self.magic
    words[1] = Self.format
    words[7] = check
  }

  private var check: UInt64 {
    var sum: UInt32 = 0
    for index in 0..<7 { sum = cbr_check(sum, words[index]) }
    return UInt64(sum)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The seal of a history: its file is looked at for each block, so that it can
/// be made and removed while programs run.
///
/// The file is open, and the key known, only while the lease is held: other
/// processes go on from what is there.
struct Sealing: ~Copyable {
  /// Why a block is not sealed, although the history has a seal or had one.
  enum Trouble: Equatable {
    case gone
    case unreadable
    case ahead
    case behind
    case notOverwritten

    var sentence: StaticString {
      switch self {
      case .gone: "the seal's file is gone: blocks are not sealed"
      case .unreadable:
        "the seal's file cannot be read and written: blocks are not sealed"
      case .ahead: "the seal is ahead of the blocks: they are not sealed"
      case .behind: "the seal is far behind the blocks: they are not sealed"
      case .notOverwritten: "a key of the seal could not be overwritten"
      }
    }
  }

  /// A file that is further behind was not written by this chain's writers,
  /// and is not worth the time.
  private static var farthest: Int64 { 1 << 16 }

  private let path: Scratch
  private let key: SealKey
  private let seal: UnsafeMutablePointer<Digest>
  private var file: Int32 = -1
  /// It has sealed a block.
  private var isUsed = false
  private var wasNotOverwritten = false
  /// What `fault` has a row of.
  var noted = Ahead<Trouble?>(nil)

  /// That of the history whose lease it is; of none in memory.
  init(_ lease: FileLeasePointer?) throws(DatabaseError) {
    let path = try Scratch(bytes: 8_192)
    guard let key = SealKey(), let seal = Memory.allocate(Digest.self) else {
      throw .noMemory
    }
    if let lease {
      var text = path.text
      lease.pointee.appendHistory(to: &text)
      text.append(".seal")
    }
    self.path = path
    self.key = key
    self.seal = seal
  }

  deinit {
    if file >= 0 { cbr_file_close(file) }
    Memory.release(seal)
  }

  /// Reads the key and makes it that of a block; nil: it is, or there is
  /// nothing to seal by.
  mutating func begin(
    _ block: Int64, isAfterSealed: Bool, by hash: Hash
  ) -> Trouble? {
    close()
    guard path.start[0] != 0 else { return nil }
    file = cbr_secret_open(path.start)
    if file == CBR_FILE_GONE { return isAfterSealed ? .gone : nil }
    let trouble = read(block, by: hash)
    if trouble != nil { close() }
    return trouble ?? (wasNotOverwritten ? .notOverwritten : nil)
  }

  private func read(_ block: Int64, by hash: Hash) -> Trouble? {
    guard file >= 0, key.read(from: file) else { return .unreadable }
    if key.block > block { return .ahead }
    if block - key.block > Self.farthest { return .behind }
    while key.block < block {
      guard key.ratchet(by: hash) else { return .unreadable }
    }
    return nil
  }

  /// The seal of the block that it was begun for, until the next; nil: it is
  /// not sealed.
  mutating func seal(
    _ root: Digest, by hash: Hash
  ) -> UnsafePointer<Digest>? {
    guard file >= 0, let found = key.seal(of: root, by: hash) else {
      return nil
    }
    isUsed = true
    seal.initialize(to: found)
    return UnsafePointer(seal)
  }

  /// Overwrites the key, after the block is committed.
  mutating func commit(by hash: Hash?) {
    noted.commit()
    if isUsed, let hash, key.ratchet(by: hash) {
      wasNotOverwritten = !key.write(to: file)
    }
    close()
  }

  mutating func revert() {
    noted.revert()
    close()
  }

  private mutating func close() {
    if file >= 0 { cbr_file_close(file) }
    file = -1
    isUsed = false
    key.wipe()
  }
}

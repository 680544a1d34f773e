// SPDX-License-Identifier: Apache-2.0

/// Memory to build a statement or a value in.
///
/// Its size is more than what is put there can take, so that nothing is ever
/// cut.
struct Scratch: ~Copyable {
  let start: UnsafeMutablePointer<CChar>
  let bytes: Int

  init(bytes: Int) throws(DatabaseError) {
    guard let start = Memory.allocate(CChar.self, count: bytes) else {
      throw .noMemory
    }
    self.start = start
    self.bytes = bytes
  }

  deinit { Memory.release(start) }

  /// Empty text at its beginning.
  ///
  /// It must not outlive the memory.
  var text: Text { Text(start, size: bytes) }
}

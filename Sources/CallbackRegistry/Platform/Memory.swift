// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// Checked memory of the engine.
///
/// Running out of it is an answer, not a trap.
package enum Memory {
  /// Returns zeroed, uninitialized room for values, or nil without memory.
  package static func allocate<Value: ~Copyable>(
    _ type: Value.Type, count: Int = 1
  ) -> UnsafeMutablePointer<Value>? {
    cbr_allocate(
      MemoryLayout<Value>.stride * count, MemoryLayout<Value>.alignment
    )?.assumingMemoryBound(to: Value.self)
  }

  /// Returns zeroed bytes, or nil without memory.
  package static func allocateBytes(
    _ count: Int, alignment: Int = 16
  ) -> UnsafeMutableRawPointer? {
    cbr_allocate(count, alignment)
  }

  package static func release(_ memory: UnsafeMutableRawPointer?) {
    cbr_release(memory)
  }

  /// Returns a copy of zero-terminated text, or nil without memory.
  package static func copy(
    _ text: UnsafePointer<CChar>, length: Int
  ) -> UnsafeMutablePointer<CChar>? {
    guard let copy = allocate(CChar.self, count: length + 1) else { return nil }
    copy.update(from: text, count: length)
    return copy
  }
}

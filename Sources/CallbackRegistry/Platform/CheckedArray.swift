// SPDX-License-Identifier: Apache-2.0

/// A growing array of plain values, whose growth can fail.
///
/// No element is ever deinitialized.
struct CheckedArray<Value>: ~Copyable {
  private var start: UnsafeMutablePointer<Value>?
  private var capacity = 0
  private(set) var count = 0

  init() {}

  deinit { Memory.release(start) }

  subscript(index: Int) -> Value {
    @inline(__always) get { start.unsafelyUnwrapped[index] }
    @inline(__always) set { start.unsafelyUnwrapped[index] = newValue }
  }

  /// Where an element lies, until the array grows.
  @inline(__always)
  func pointer(to index: Int) -> UnsafeMutablePointer<Value> {
    start.unsafelyUnwrapped + index
  }

  /// Makes room for `count` elements in all; false without memory.
  mutating func reserve(_ count: Int) -> Bool {
    if count <= capacity { return true }
    let larger = max(16, capacity * 2, count)
    guard let grown = Memory.allocate(Value.self, count: larger) else {
      return false
    }
    if let start { grown.update(from: start, count: self.count) }
    Memory.release(start)
    start = grown
    capacity = larger
    return true
  }

  /// Adds an element; false without memory.
  mutating func append(_ value: Value) -> Bool {
    guard reserve(count + 1) else { return false }
    start.unsafelyUnwrapped[count] = value
    count += 1
    return true
  }

  /// Makes it longer by zeroed elements, which must be set; there is room.
  mutating func extend(to count: Int) { self.count = count }

  /// Forgets what lies beyond the first `count` elements.
  mutating func keep(_ count: Int) { self.count = min(count, self.count) }
}

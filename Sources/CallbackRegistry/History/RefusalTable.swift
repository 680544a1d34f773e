// SPDX-License-Identifier: Apache-2.0

/// Refusals of a batch that have handle, status and thread in common.
struct RefusalSum {
  var handle: UInt64 = 0
  var status: Int32 = 0
  var thread: Int64 = 0
  var count: UInt64 = 0
  var firstSequence: UInt64 = 0
  var lastSequence: UInt64 = 0
  var firstTime: UInt64 = 0
  var lastTime: UInt64 = 0
}

/// Adds up refusals, so that a caller who does not give up costs one row a
/// batch.
///
/// What finds its place taken by others puts them out.
struct RefusalTable: ~Copyable {
  private static var count: Int { 256 }

  private let sums: UnsafeMutablePointer<RefusalSum>

  /// Nil without memory.
  init?() {
    guard let sums = Memory.allocate(RefusalSum.self, count: Self.count) else {
      return nil
    }
    self.sums = sums
  }

  deinit { Memory.release(sums) }

  /// Adds one refusal; returns the sum that it puts out.
  mutating func add(
    handle: UInt64, status: Int32, thread: Int64, sequence: UInt64,
    time: UInt64
  ) -> RefusalSum? {
    let key =
      (handle ^ UInt64(UInt32(bitPattern: status)) << 32
        ^ UInt64(truncatingIfNeeded: thread))
      &* 0x9E37_79B9_7F4A_7C15
    let sum = sums + Int(truncatingIfNeeded: key >> 56)
    var out: RefusalSum?
    if sum.pointee.count == 0 || sum.pointee.handle != handle
      || sum.pointee.status != status || sum.pointee.thread != thread
    {
      if sum.pointee.count > 0 { out = sum.pointee }
      sum.pointee = RefusalSum(
        handle: handle, status: status, thread: thread,
        firstSequence: sequence, firstTime: time)
    }
    sum.pointee.count += 1
    sum.pointee.lastSequence = sequence
    sum.pointee.lastTime = time
    return out
  }

  /// Takes out a sum that is left; nil when none is.
  mutating func takeOut(from index: inout Int) -> RefusalSum? {
    while index < Self.count {
      defer { index += 1 }
      if sums[index].count > 0 {
        let sum = sums[index]
        sums[index].count = 0
        return sum
      }
    }
    return nil
  }

  mutating func clear() {
    sums.update(repeating: RefusalSum(), count: Self.count)
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// The pin stack of a thread: which handles it is inside at this moment. An
// ender that sees a pin leaves destruction to whoever leaves; one that misses
// a pin has fenced, so that the pin's thread is refused (Protocol.swift).
//
// Shared variables
//   cell      the owner stores a handle to enter and 0 to leave (releasing,
//             plain moves on x86): what it did before leaving is visible to
//             an ender that loads the 0 or anything later (acquiring)
//   depth     how many cells from the bottom may be in use. The owner raises
//             it with the pin and lowers it after the clear (releasing); a
//             scan loads it (acquiring) before the cells. While a thread is
//             inside a call at depth d, depth is above d, however it nests.
//             The bit above its 32 says that entering takes a full fence: one
//             load tells the short path both
//   deepPins  the first of a chain of blocks for cells past the inline ones;
//             stored once (releasing) before a pin in it
//   next      of a block, likewise
//   stamps    one for each cell, the owner's alone: it changes when the cell is
//             cleared. A call remembers that of its cell, so that a copy which
//             is left again, or on another thread, is not taken for another
//             call of the same token
// Memory: blocks are never freed while the record lives.
// Tried to break by: Tests/Model, Tests/C (fences.c, pairs.c, stress.c).

import CPlatform
import Synchronization

package enum Pins {
  static let inlineCount: UInt32 = 16
  static let fenceBit: UInt64 = 1 << 32
  /// Cells that are there above every pin that could be refused for want of
  /// memory: so many pins of the library's own cannot be.
  static let spareCount: UInt32 = 8
}

typealias PinCell = UnsafeMutablePointer<Atomic<UInt64>>

/// Cells past the inline ones.
struct PinBlock: ~Copyable {
  static let count: UInt32 = 112
  static let cellsOffset = 64
  static let stampsOffset = cellsOffset + Int(count) * 8
  static let bytes = stampsOffset + Int(count) * 8

  /// The depth of its first cell.
  let base: UInt32
  let previous: PinBlockPointer?
  let next = Atomic<UInt>(0)
}

typealias PinBlockPointer = UnsafeMutablePointer<PinBlock>

extension UnsafeMutablePointer where Pointee == PinBlock {
  static func make(
    base: UInt32, previous: PinBlockPointer?, stamp: UInt64
  ) -> PinBlockPointer? {
    let memory = Memory.allocateBytes(PinBlock.bytes, alignment: 64)
    guard let memory else { return nil }
    let block = memory.bindMemory(to: PinBlock.self, capacity: 1)
    block.initialize(to: PinBlock(base: base, previous: previous))
    for index in 0..<PinBlock.count {
      block.cell(index).initialize(to: Atomic(0))
      block.stamp(index).initialize(to: stamp)
    }
    return block
  }

  func stamp(_ index: UInt32) -> UnsafeMutablePointer<UInt64> {
    (UnsafeMutableRawPointer(self) + PinBlock.stampsOffset)
      .assumingMemoryBound(to: UInt64.self) + Int(index)
  }

  func cell(_ index: UInt32) -> PinCell {
    (UnsafeMutableRawPointer(self) + PinBlock.cellsOffset)
      .assumingMemoryBound(to: Atomic<UInt64>.self) + Int(index)
  }

  var next: PinBlockPointer? {
    PinBlockPointer(bitPattern: pointee.next.load(ordering: .acquiring))
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  @inline(__always)
  func inlineCell(_ index: UInt32) -> PinCell {
    (UnsafeMutableRawPointer(self) + ThreadRecord.pinsOffset)
      .assumingMemoryBound(to: Atomic<UInt64>.self)
      + Int(truncatingIfNeeded: index)
  }

  @inline(__always)
  func inlineStamp(_ index: UInt32) -> UnsafeMutablePointer<UInt64> {
    (UnsafeMutableRawPointer(self) + ThreadRecord.stampsOffset)
      .assumingMemoryBound(to: UInt64.self)
      + Int(truncatingIfNeeded: index)
  }

  func initializePins() {
    for index in 0..<Pins.inlineCount {
      inlineCell(index).initialize(to: Atomic(0))
      inlineStamp(index).initialize(to: pointee.firstStamp)
    }
  }

  /// The stamp of a cell that is in use.
  @inline(__always)
  func stamp(of index: UInt32) -> UnsafeMutablePointer<UInt64>? {
    if index < Pins.inlineCount { return inlineStamp(index) }
    guard deepCell(index) != nil, let block = pointee.topBlock else {
      return nil
    }
    return block.stamp(index - block.pointee.base)
  }

  /// What a call at this depth is to remember.
  @inline(__always)
  func ownStamp(_ index: UInt32) -> UInt64 { stamp(of: index)?.pointee ?? 0 }

  /// The depth of the pin stack, as its owner sees it.
  @inline(__always)
  package var ownDepth: UInt32 {
    UInt32(truncatingIfNeeded: pointee.depth.load(ordering: .relaxed))
  }

  @inline(__always)
  func setDepth(_ depth: UInt32) {
    let fence = pointee.depth.load(ordering: .relaxed) & Pins.fenceBit
    pointee.depth.store(UInt64(depth) | fence, ordering: .releasing)
  }

  /// Empties the stack of a record that a thread begins to use.
  func resetDepth() {
    pointee.depth.store(
      cbr_is_asymmetric() ? 0 : Pins.fenceBit, ordering: .releasing)
  }

  /// The owner's cell at a depth; nil when it needs memory and there is none.
  @inline(__always)
  func ownCell(_ index: UInt32) -> PinCell? {
    index < Pins.inlineCount ? inlineCell(index) : deepCell(index)
  }

  private func deepCell(_ index: UInt32) -> PinCell? {
    var block = pointee.topBlock ?? firstBlock()
    while let each = block {
      pointee.topBlock = each
      if index < each.pointee.base {
        block = each.pointee.previous
      } else if index < each.pointee.base + PinBlock.count {
        return each.cell(index - each.pointee.base)
      } else {
        block = each.next ?? addBlock(after: each)
      }
    }
    return nil
  }

  private func firstBlock() -> PinBlockPointer? {
    let known = PinBlockPointer(
      bitPattern: pointee.deepPins.load(ordering: .relaxed))
    if let known { return known }
    let made = PinBlockPointer.make(
      base: Pins.inlineCount, previous: nil, stamp: pointee.firstStamp)
    guard let made else { return nil }
    pointee.deepPins.store(UInt(bitPattern: made), ordering: .releasing)
    return made
  }

  private func addBlock(after block: PinBlockPointer) -> PinBlockPointer? {
    let made = PinBlockPointer.make(
      base: block.pointee.base + PinBlock.count, previous: block,
      stamp: pointee.firstStamp)
    guard let made else { return nil }
    block.pointee.next.store(UInt(bitPattern: made), ordering: .releasing)
    return made
  }

  /// Visits the thread's pins from the bottom, from any thread, until `visit`
  /// answers false.
  ///
  /// Answers whether all were visited.
  @inline(__always)
  @discardableResult
  package func visitPins(_ visit: (UInt64) -> Bool) -> Bool {
    // Model: scan reads depth before the cells.
    let depth = UInt32(
      truncatingIfNeeded: pointee.depth.load(ordering: .acquiring))
    for index in 0..<min(depth, Pins.inlineCount) {
      let pin = inlineCell(index).pointee.load(ordering: .acquiring)
      if pin != 0, !visit(pin) { return false }
    }
    guard depth > Pins.inlineCount else { return true }
    var block = PinBlockPointer(
      bitPattern: pointee.deepPins.load(ordering: .acquiring))
    while let each = block, each.pointee.base < depth {
      for index in 0..<min(depth - each.pointee.base, PinBlock.count) {
        let pin = each.cell(index).pointee.load(ordering: .acquiring)
        if pin != 0, !visit(pin) { return false }
      }
      block = each.next
    }
    return true
  }

  /// Puts a pin on top.
  ///
  /// Nil without memory; else its depth, for `unpin`.
  @inline(__always)
  package func pin(_ handle: UInt64) -> UInt32? {
    hasSpareCells ? pinSpare(handle) : nil
  }

  /// Whether a pin would find all of its spare cells above it.
  @inline(__always)
  private var hasSpareCells: Bool {
    let last = ownDepth &+ Pins.spareCount
    return last < Pins.inlineCount || deepCell(last) != nil
  }

  /// The same, for what must not fail: it may take a spare cell.
  @inline(__always)
  package func pinSpare(_ handle: UInt64) -> UInt32? {
    let index = ownDepth
    guard let cell = ownCell(index) else { return nil }
    setDepth(index &+ 1)
    cell.pointee.store(handle, ordering: .releasing)  // Model: enter.pin
    return index
  }

  /// Clears the pin at a depth, and lowers the depth as far as cells are
  /// empty: pins may be cleared in any order.
  @inline(__always)
  package func unpin(_ index: UInt32) {
    guard let cell = ownCell(index) else { return }
    cell.pointee.store(0, ordering: .releasing)  // Model: leave.clear
    stamp(of: index)?.pointee &+= 1
    guard index &+ 1 == ownDepth else { return }
    setDepth(index)
    if index > 0 { lowerDepth() }
  }

  /// Lowers the depth past cells that were cleared out of order.
  @inline(__always)
  private func lowerDepth() {
    var depth = ownDepth
    while depth > 0,
      let cell = ownCell(depth &- 1),
      cell.pointee.load(ordering: .relaxed) == 0
    {
      depth = depth &- 1
      setDepth(depth)
    }
  }

  /// The pin at a depth of the calling thread's own stack; 0 when there is
  /// none.
  @inline(__always)
  package func ownPin(_ index: UInt32) -> UInt64 {
    guard index < ownDepth, let cell = ownCell(index) else { return 0 }
    return cell.pointee.load(ordering: .relaxed)
  }
}

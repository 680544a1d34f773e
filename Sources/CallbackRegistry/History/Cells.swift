// SPDX-License-Identifier: Apache-2.0

/// Calls that are counted instead of written.
struct CallSum {
  var calls: UInt64 = 0
  var nanoseconds: UInt64 = 0
  var longest: UInt64 = 0

  @inline(__always)
  mutating func add(calls: UInt64 = 1, nanoseconds: UInt64, longest: UInt64) {
    self.calls &+= calls
    self.nanoseconds &+= nanoseconds
    self.longest = max(self.longest, longest)
  }
}

/// What one batch says about one handle, to be added to its row.
struct Cell {
  let handle: UInt64
  /// The handle's row and its callback's; 0 unknown.
  var registration: Int64 = 0
  var callback: Int64 = 0

  /// Calls that became rows; the sum is that of all calls of the batch.
  var callRows: UInt64 = 0
  var all = CallSum()
  var lastTime: UInt64 = 0
  var overBudget = CallSum()
  var overRing = CallSum()
  var firstAggregated: UInt64 = .max

  var refusals: UInt64 = 0
  var abandoned: UInt64 = 0
  var leases: UInt64 = 0
  var leasesEnded: UInt64 = 0

  /// The engine's own count of calls, if the batch has one.
  var isCounted = false
  var attempts: UInt64 = 0
  var outstanding: UInt64 = 0

  /// Control rows of the batch, by index + 1.
  var registered: UInt32 = 0
  var ended: UInt32 = 0
  var settled: UInt32 = 0

  init(handle: UInt64) { self.handle = handle }

  var aggregated: UInt64 { overBudget.calls + overRing.calls }

  var hasLife: Bool {
    refusals | abandoned | leases | leasesEnded | UInt64(ended)
      | UInt64(settled) != 0 || isCounted
  }

  /// Whether the handle is known to have been given out.
  var exists: Bool {
    all.calls | abandoned | leases | leasesEnded | UInt64(registered)
      | UInt64(ended) | UInt64(settled) != 0 || isCounted
  }
}

/// The cells of a batch, found by handle: open addressing in places that are
/// stamped with the batch, so that nothing has to be cleared between two.
struct Cells: ~Copyable {
  static var limit: Int { 8192 }
  private static var placeBits: UInt64 { 15 }

  private let cells: UnsafeMutablePointer<Cell>
  /// Stamp << 32 | index.
  private let places: UnsafeMutablePointer<UInt64>
  private(set) var count = 0
  private var stamp: UInt64 = 0

  /// Nil without memory.
  init?() {
    let cells = Memory.allocate(Cell.self, count: Self.limit)
    let places = Memory.allocate(UInt64.self, count: 1 << Self.placeBits)
    guard let cells, let places else {
      Memory.release(cells)
      Memory.release(places)
      return nil
    }
    self.cells = cells
    self.places = places
  }

  deinit {
    Memory.release(cells)
    Memory.release(places)
  }

  var isFull: Bool { count == Self.limit }

  @inline(__always)
  func pointer(to index: Int) -> UnsafeMutablePointer<Cell> { cells + index }

  mutating func clear() {
    count = 0
    stamp &+= 1
    // Once in 2^32 batches old stamps could be taken for new ones.
    if stamp >> 32 != 0 {
      places.update(repeating: 0, count: 1 << Self.placeBits)
      stamp = 1
    }
  }

  /// The index of a handle's cell, a new one if need be.
  ///
  /// There is room.
  @inline(__always)
  mutating func index(of handle: UInt64) -> Int {
    let mask = (1 << Self.placeBits) - 1
    var place = Int(
      truncatingIfNeeded: (handle &* 0x9E37_79B9_7F4A_7C15)
        &>> (64 - Self.placeBits))
    while places[place] >> 32 == stamp {
      let index = Int(truncatingIfNeeded: places[place] & 0xFFFF_FFFF)
      if cells[index].handle == handle { return index }
      place = (place &+ 1) & mask
    }
    places[place] = stamp << 32 | UInt64(count)
    (cells + count).initialize(to: Cell(handle: handle))
    count += 1
    return count - 1
  }
}

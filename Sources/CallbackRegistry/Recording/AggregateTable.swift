// SPDX-License-Identifier: Apache-2.0

/// Calls of one token that were counted instead of recorded one by one.
package struct AggregatedCalls {
  package var token: UInt64
  package var count: UInt64
  package var totalTicks: UInt64
  package var longestTicks: UInt64
}

/// Counts of calls by token.
///
/// The writer takes them out with each batch. Guarded by the recorder's
/// monitor.
package struct AggregateTable: ~Copyable {
  private var places: UnsafeMutablePointer<AggregatedCalls>?
  private var capacity = 0
  private var used = 0
  /// All calls that were ever added.
  package private(set) var total: UInt64 = 0

  package init() {}

  deinit { Memory.release(places) }

  package var isEmpty: Bool { used == 0 }

  /// Adds one call.
  ///
  /// False without memory.
  package mutating func add(token: UInt64, ticks: UInt64) -> Bool {
    guard used * 2 < capacity || grow() else { return false }
    let place = place(of: token)
    if place.pointee.token == 0 {
      place.pointee.token = token
      used += 1
    }
    place.pointee.count += 1
    place.pointee.totalTicks &+= ticks
    place.pointee.longestTicks = max(place.pointee.longestTicks, ticks)
    total += 1
    return true
  }

  /// Moves every token's calls into a table that is empty.
  ///
  /// The total stays.
  package mutating func moveAll(to other: inout AggregateTable) {
    Memory.release(other.places)
    other.places = places
    other.capacity = capacity
    other.used = used
    places = nil
    capacity = 0
    used = 0
  }

  /// The calls of one token at or after a place, which becomes the next one.
  package func next(from place: inout Int) -> AggregatedCalls? {
    while place < capacity {
      defer { place += 1 }
      if places![place].token != 0 { return places![place] }
    }
    return nil
  }

  /// Whether a place is behind all others.
  package func isPast(_ place: Int) -> Bool { place >= capacity }

  package mutating func removeAll() {
    Memory.release(places)
    places = nil
    capacity = 0
    used = 0
  }

  private func place(
    of token: UInt64
  ) -> UnsafeMutablePointer<AggregatedCalls> {
    // Indexes of tokens are dense; the multiplier spreads them.
    var index = Int(
      truncatingIfNeeded: (token &* 0x9E37_79B9_7F4A_7C15) >> 32)
    while true {
      index &= capacity - 1
      let place = places! + index
      if place.pointee.token == token || place.pointee.token == 0 {
        return place
      }
      index += 1
    }
  }

  private mutating func grow() -> Bool {
    let larger = max(64, capacity * 2)
    let former = places
    let formerCapacity = capacity
    guard let made = Memory.allocate(AggregatedCalls.self, count: larger)
    else { return false }
    places = made
    capacity = larger
    for index in 0..<formerCapacity where former![index].token != 0 {
      place(of: former![index].token).pointee = former![index]
    }
    Memory.release(former)
    return true
  }
}

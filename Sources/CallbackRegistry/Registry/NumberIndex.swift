// SPDX-License-Identifier: Apache-2.0

/// Finds a number by another one that is not zero.
///
/// Guarded by the registry's lock.
struct NumberIndex: ~Copyable {
  private struct Place {
    var key: UInt64
    var value: UInt64
  }

  private var places: UnsafeMutablePointer<Place>?
  private var capacity = 0
  private var count = 0

  init() {}

  deinit { Memory.release(places) }

  subscript(key: UInt64) -> UInt64? {
    guard let place = find(key), place.pointee.key != 0 else { return nil }
    return place.pointee.value
  }

  /// Makes sure that one more fits.
  ///
  /// False without memory.
  mutating func reserve() -> Bool {
    if (count + 1) * 2 <= capacity { return true }
    let larger = max(16, capacity * 2)
    guard let made = Memory.allocate(Place.self, count: larger) else {
      return false
    }
    let former = places
    let formerCapacity = capacity
    places = made
    capacity = larger
    for index in 0..<formerCapacity where former![index].key != 0 {
      find(former![index].key)!.pointee = former![index]
    }
    Memory.release(former)
    return true
  }

  /// Sets what is there, or what `reserve` made room for.
  mutating func set(_ key: UInt64, to value: UInt64) {
    guard let place = find(key) else { return }
    if place.pointee.key == 0 { count += 1 }
    place.pointee = Place(key: key, value: value)
  }

  mutating func remove(_ key: UInt64) {
    guard let found = find(key), let places, found.pointee.key == key else {
      return
    }
    // Closes the gap: what follows may have been pushed along by this one.
    var gap = found - places
    var index = gap
    while true {
      index = (index + 1) & (capacity - 1)
      if places[index].key == 0 { break }
      let home = home(of: places[index].key)
      let distance = (index - home) & (capacity - 1)
      if distance >= (index - gap) & (capacity - 1) {
        places[gap] = places[index]
        gap = index
      }
    }
    places[gap] = Place(key: 0, value: 0)
    count -= 1
  }

  private func home(of key: UInt64) -> Int {
    Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> 32)
      & (capacity - 1)
  }

  /// The place of a key, or the free one where it would go.
  private func find(_ key: UInt64) -> UnsafeMutablePointer<Place>? {
    guard let places else { return nil }
    var index = home(of: key)
    while places[index].key != 0, places[index].key != key {
      index = (index + 1) & (capacity - 1)
    }
    return places + index
  }
}

// SPDX-License-Identifier: Apache-2.0

/// Finds the owner of a living object.
///
/// An address is a key only from `owner_for_object` to the end of that owner
/// (G18): then it is taken out, and a new object there gets a new owner.
/// Guarded by the registry's lock.
struct ObjectIndex: ~Copyable {
  private struct Place {
    var address: UInt64
    var owner: UInt32
  }

  private var places: UnsafeMutablePointer<Place>?
  private var capacity = 0
  private var count = 0

  init() {}

  deinit { Memory.release(places) }

  func owner(of address: UInt64) -> UInt32? {
    guard let place = find(address), place.pointee.address != 0 else {
      return nil
    }
    return place.pointee.owner
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
    for index in 0..<formerCapacity where former![index].address != 0 {
      find(former![index].address)!.pointee = former![index]
    }
    Memory.release(former)
    return true
  }

  /// Adds what `reserve` made room for.
  mutating func add(_ address: UInt64, owner: UInt32) {
    guard let place = find(address) else { return }
    if place.pointee.address == 0 { count += 1 }
    place.pointee = Place(address: address, owner: owner)
  }

  /// Takes out the object of an owner, if it is one's.
  mutating func remove(owner: UInt32) {
    let address = Table.knownDetail(at: owner).pointee.typeTag
    guard address != 0, let found = find(address), let places,
      found.pointee.address == address, found.pointee.owner == owner
    else { return }
    // Closes the gap: what follows may have been pushed along by this one.
    var gap = found - places
    var index = gap
    while true {
      index = (index + 1) & (capacity - 1)
      if places[index].address == 0 { break }
      let home = home(of: places[index].address)
      let distance = (index - home) & (capacity - 1)
      if distance >= (index - gap) & (capacity - 1) {
        places[gap] = places[index]
        gap = index
      }
    }
    places[gap] = Place(address: 0, owner: 0)
    count -= 1
  }

  private func home(of address: UInt64) -> Int {
    Int(truncatingIfNeeded: (address &* 0x9E37_79B9_7F4A_7C15) >> 32)
      & (capacity - 1)
  }

  /// The place of an address, or the free one where it would go.
  private func find(_ address: UInt64) -> UnsafeMutablePointer<Place>? {
    guard let places else { return nil }
    var index = home(of: address)
    while places[index].address != 0, places[index].address != address {
      index = (index + 1) & (capacity - 1)
    }
    return places + index
  }
}

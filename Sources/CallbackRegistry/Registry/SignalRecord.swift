// SPDX-License-Identifier: Apache-2.0
//
// What a signal's handle stands for: its connections in a list that emissions
// read, and the same connections in no order, which are all that are not yet
// free.
//
// Everything but a list's `count` is guarded by the registry's lock. A list has
// a handle of its own, which belongs to the signal: an emission pins it, and
// reads as many connections as there were when it began. Connecting at the end
// adds to the list in place; connecting before others makes another list, and
// ends the old one, whose memory goes when the last emission has left it.
//
// A connection holds a lease on its signal's slot, so the record outlives it.

import Synchronization

package struct SignalRecord: ~Copyable {
  /// The list that emissions begin with; nil: nothing was ever connected.
  var list: ConnectionListPointer?
  var listHandle: UInt64 = Handle.none
  package var first: ConnectionPointer?
  /// How many times it is blocked.
  package var blocks: UInt32 = 0
  /// How many emissions a thread may be inside at a time.
  package let emissionLimit: UInt32
  /// The type of the argument, where that is known; 0: it is not.
  package let typeTag: UInt64

  package init(emissionLimit: UInt32, typeTag: UInt64) {
    self.emissionLimit = emissionLimit
    self.typeTag = typeTag
  }
}

package typealias SignalRecordPointer = UnsafeMutablePointer<SignalRecord>

package typealias CopyArgument =
  @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?

package typealias CopyForHandler =
  @convention(c) (
    UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
  ) -> UnsafeMutableRawPointer?

/// Where a connection is called, if not by who emits.
package struct DeliveryPlace {
  package var queue = Handle.none
  /// Makes a payload of an emission's argument; nil: it is that itself.
  package var copy: CopyArgument?
  /// The same, also given the handler's context, and in place of it.
  package var copyForHandler: CopyForHandler?
  package var free: FreePayload?
  package var bytes: UInt64 = 0

  package init() {}

  /// Whether a payload is its message's own.
  var copies: Bool { copy != nil || copyForHandler != nil }

  /// Makes a payload for a handler that is pinned.
  func payload(
    of argument: UnsafeMutableRawPointer?, for slot: SlotPointer
  ) -> UnsafeMutableRawPointer? {
    if let copyForHandler {
      return copyForHandler(slot.pointee.context, argument)
    }
    guard let copy else { return argument }
    return copy(argument)
  }
}

/// What a token is as a signal's connection.
package struct SignalConnection {
  package let index: UInt32
  let signal: UInt64
  let priority: Int32
  package let delivery: DeliveryPlace
  var blocks: UInt32 = 0
  var previous: ConnectionPointer?
  package var next: ConnectionPointer?

  init(
    index: UInt32, signal: UInt64, priority: Int32, delivery: DeliveryPlace
  ) {
    self.index = index
    self.signal = signal
    self.priority = priority
    self.delivery = delivery
  }
}

package typealias ConnectionPointer = UnsafeMutablePointer<SignalConnection>

/// The order in which an emission calls.
package struct ConnectionList: ~Copyable {
  package struct Entry {
    package let token: UInt64
    package let slot: SlotPointer
    let priority: Int32
  }

  package let count = Atomic<Int>(0)
  let capacity: Int
  package let entries: UnsafeMutablePointer<Entry>

  init(capacity: Int, entries: UnsafeMutablePointer<Entry>) {
    self.capacity = capacity
    self.entries = entries
  }
}

package typealias ConnectionListPointer = UnsafeMutablePointer<ConnectionList>

extension UnsafeMutablePointer where Pointee == ConnectionList {
  /// Nil without memory.
  static func make(capacity: Int) -> ConnectionListPointer? {
    let list = Memory.allocate(ConnectionList.self)
    let entries = Memory.allocate(ConnectionList.Entry.self, count: capacity)
    guard let list, let entries else {
      Memory.release(list)
      Memory.release(entries)
      return nil
    }
    list.initialize(to: ConnectionList(capacity: capacity, entries: entries))
    return list
  }

  func destroy() {
    Memory.release(pointee.entries)
    deinitialize(count: 1)
    Memory.release(self)
  }

  var ownCount: Int { pointee.count.load(ordering: .relaxed) }

  /// How many of the connections that were there are live.
  func countLive(ofFirst count: Int) -> Int {
    var live = 0
    for index in 0..<count {
      let entry = pointee.entries[index]
      if entry.slot.pointee.word.load(ordering: .relaxed) == entry.token {
        live += 1
      }
    }
    return live
  }

  /// Adds one at the end, where there is room.
  func append(_ entry: ConnectionList.Entry) {
    let count = ownCount
    (pointee.entries + count).initialize(to: entry)
    pointee.count.store(count + 1, ordering: .releasing)
  }

  /// Whether one of this priority has its place behind all others.
  func endsBefore(_ priority: Int32) -> Bool {
    let count = ownCount
    return count == 0 || pointee.entries[count - 1].priority >= priority
  }

  /// Adds those of another list that are live, and a new one in its place.
  func fill(
    from former: ConnectionListPointer?, adding new: ConnectionList.Entry?
  ) {
    var new = new
    for index in 0..<(former?.ownCount ?? 0) {
      let entry = former.unsafelyUnwrapped.pointee.entries[index]
      if let added = new, added.priority > entry.priority {
        append(added)
        new = nil
      }
      let word = entry.slot.pointee.word.load(ordering: .relaxed)
      if word == entry.token { append(entry) }
    }
    if let new { append(new) }
  }
}

extension UnsafeMutablePointer where Pointee == SignalRecord {
  func destroy() {
    deinitialize(count: 1)
    Memory.release(self)
  }
}

extension UnsafeMutablePointer where Pointee == SlotDetail {
  /// The list that a signal's emissions begin with.
  package var currentList: UInt64 {
    get { pointee.attempts.load(ordering: .acquiring) }
    nonmutating set { pointee.attempts.store(newValue, ordering: .releasing) }
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a signal.
  package var signalRecord: SignalRecordPointer? {
    pointee.body?.assumingMemoryBound(to: SignalRecord.self)
  }

  /// Of a list.
  package var connectionList: ConnectionListPointer? {
    pointee.body?.assumingMemoryBound(to: ConnectionList.self)
  }

  /// Of a token that is one.
  package var connection: ConnectionPointer? {
    guard
      pointee.mode.load(ordering: .relaxed) & Mode.connection != 0
    else { return nil }
    return pointee.body?.assumingMemoryBound(to: SignalConnection.self)
  }
}

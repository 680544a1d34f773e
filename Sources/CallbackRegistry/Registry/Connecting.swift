// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Where a signal calls what is about to be registered.
struct ConnectionPlace {
  let signal: UInt64
  let priority: Int32
  let delivery: DeliveryPlace
  /// What the token becomes as a connection.
  let room: ConnectionPointer
}

/// A slot that was taken and names nothing yet.
typealias TakenSlot = (index: UInt32, generation: UInt32)

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Gives a token its place in its signal's list, before it is live: as its
  /// last failure.
  ///
  /// A list that has no room there is made anew in the spare slot, and the old
  /// one is marked; else the spare slot is given back. The lock is held.
  func reserve(
    _ place: ConnectionPlace, _ token: UInt64, in spare: TakenSlot,
    thread: ThreadPointer, retired: inout Chain
  ) -> Status {
    let signal = Table.knownSlot(at: Handle.index(of: place.signal))
    let entry = ConnectionList.Entry(
      token: token, slot: Table.knownSlot(at: Handle.index(of: token)),
      priority: place.priority)
    if let list = signal.signalRecord?.pointee.list,
      list.ownCount < list.pointee.capacity, list.endsBefore(place.priority)
    {
      list.append(entry)
      pointee.free.giveBack(spare.index, generation: spare.generation)
      return .ok
    }
    return renew(
      place.signal, adding: entry, in: spare, thread: thread,
      retired: &retired)
  }

  /// Makes a signal's list anew, without those that are gone.
  ///
  /// The lock is held.
  func renew(
    _ signal: UInt64, adding entry: ConnectionList.Entry?,
    in spare: TakenSlot, thread: ThreadPointer, retired: inout Chain
  ) -> Status {
    let index = Handle.index(of: signal)
    let made = Table.knownSlot(at: index).signalRecord.flatMap { record in
      ConnectionListPointer.make(
        from: record.pointee.list, adding: entry
      ).map { (record: record, list: $0) }
    }
    guard let made else {
      pointee.free.giveBack(spare.index, generation: spare.generation)
      return .noMemory
    }
    let former = made.record.pointee.listHandle
    let handle = Handle.make(
      generation: spare.generation, index: spare.index, kind: .list)
    let slot = Table.knownSlot(at: spare.index)
    slot.pointee.body = UnsafeMutableRawPointer(made.list)
    slot.pointee.mode.store(Mode.notCallable, ordering: .relaxed)
    link(spare.index, slot: slot, owner: index)
    slot.pointee.word.store(handle, ordering: .releasing)
    made.record.pointee.list = made.list
    made.record.pointee.listHandle = handle
    Table.knownDetail(at: index).currentList = handle
    if former != Handle.none {
      let former = Handle.index(of: former)
      _ = markOne(
        former, slot: Table.knownSlot(at: former), reason: Reason.replaced,
        thread: thread, time: Ticks.now, into: &retired)
    }
    return .ok
  }

  /// Makes a token that has its place a connection.
  ///
  /// The lock is held.
  func connect(
    _ place: ConnectionPlace, at index: UInt32, _ slot: SlotPointer,
    _ detail: SlotDetailPointer
  ) {
    let signal = Table.knownSlot(at: Handle.index(of: place.signal))
    guard let record = signal.signalRecord else { return }
    place.room.initialize(
      to: SignalConnection(
        index: index, signal: place.signal, priority: place.priority,
        delivery: place.delivery))
    place.room.pointee.next = record.pointee.first
    record.pointee.first?.pointee.previous = place.room
    record.pointee.first = place.room
    slot.pointee.body = UnsafeMutableRawPointer(place.room)
    detail.pointee.typeTag = place.signal
    Protocol.addLease(signal, handle: place.signal)
  }

  /// Takes a connection that is gone from its signal.
  ///
  /// Returns the signal, on which the caller has a lease then. The lock is held.
  func unlinkConnection(_ slot: SlotPointer) -> UInt64? {
    guard let connection = slot.connection else { return nil }
    let signal = connection.pointee.signal
    let next = connection.pointee.next
    next?.pointee.previous = connection.pointee.previous
    if let previous = connection.pointee.previous {
      previous.pointee.next = next
    } else {
      Table.knownSlot(at: Handle.index(of: signal))
        .signalRecord?.pointee.first = next
    }
    Memory.release(connection)
    return signal
  }
}

extension ConnectionListPointer {
  /// Makes a list of the live ones of another, and a new one in its place, with
  /// room for as many again; nil without memory.
  fileprivate static func make(
    from former: ConnectionListPointer?, adding new: ConnectionList.Entry?
  ) -> ConnectionListPointer? {
    let live = former.map { $0.countLive(ofFirst: $0.ownCount) } ?? 0
    let kept = live + (new == nil ? 0 : 1)
    guard let list = make(capacity: Swift.max(4, 2 * kept)) else { return nil }
    list.fill(from: former, adding: new)
    return list
  }
}

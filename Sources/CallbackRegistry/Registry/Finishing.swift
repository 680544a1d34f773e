// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What happens to a slot that one thread has claimed: its word is
/// `destroying`, nothing is inside it, and nobody else will touch it.
package enum Finishing {
  /// Finishes what a thread claimed when it cleared a pin or dropped a lease.
  package static func finish(_ handle: UInt64, thread: ThreadPointer) {
    if Handle.kind(of: handle) == .registry {
      return finishRegistry(handle, thread: thread)
    }
    // A slot that is not free keeps its registry live.
    guard let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    finish(handle, access)
  }

  /// The same of a token whose registry is accessed already.
  static func finish(_ token: UInt64, _ access: borrowing Access) {
    let index = Handle.index(of: token)
    let slot = Table.knownSlot(at: index)
    slot.pointee.chain = Slot.noIndex
    finish(index, slot: slot, access)
  }

  /// Finishes claimed slots, one by one.
  ///
  /// While a destroy runs, those whose turn comes later are found through its
  /// own slot's `chain`: by the thread itself when it jumps out of it, and by
  /// those that look for a ring of waiters. A destroy that ends other things
  /// finishes those alone, so that a long chain does not nest.
  static func finish(_ claimed: Chain, _ access: borrowing Access) {
    finishAll(from: claimed.first, access)
  }

  private static func finishAll(
    from first: UInt32, _ access: borrowing Access
  ) {
    var index = first
    while index != Slot.noIndex {
      let slot = Table.knownSlot(at: index)
      let next = slot.pointee.chain
      finish(index, slot: slot, access)
      index = next
    }
  }

  /// Destroys and frees a claimed slot, then what it was the last part of.
  static func finish(
    _ index: UInt32, slot: SlotPointer, _ access: borrowing Access
  ) {
    var index = index
    var slot = slot
    while true {
      guard destroy(slot, access) else { return }
      guard let owner = release(index, slot: slot, access) else { return }
      index = owner
      slot = Table.knownSlot(at: owner)
    }
  }

  /// False when the slot is another thread's now, which is to destroy it.
  private static func destroy(
    _ slot: SlotPointer, _ access: borrowing Access
  ) -> Bool {
    let handle = Handle.handle(
      ofWord: slot.pointee.word.load(ordering: .relaxed))
    let destroy = slot.pointee.destroy
    if Handle.kind(of: handle) == .queue {
      let pin = access.thread.pinSpare(handle)
      slot.queueRecord?.dropAll(handle, thread: access.thread)
      if let errands = slot.queueRecord?.takeErrands() {
        finish(errands, access)
      }
      while let (handle, step) = slot.queueRecord?.takeAlarm(upTo: .max) {
        step(handle)
      }
      while let (handle, step) = slot.queueRecord?.takeWanted() {
        step(handle)
      }
      if let pin { access.thread.unpin(pin) }
    }
    if let destroy {
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      if mode & Mode.destroyedOnQueue != 0,
        access.registry.handOver(handle, slot: slot, thread: access.thread)
      {
        return false
      }
      // Marks the thread as being inside, for those that wait (Waiting.swift).
      let pin = access.thread.pinSpare(handle)
      destroy(slot.pointee.context)
      if let pin { access.thread.unpin(pin) }
    }
    Hook.destroyed.reached(handle)
    recordSettled(handle, slot: slot, ranDestroy: destroy != nil, access)
    return true
  }

  /// Frees what the library itself made for a handle.
  ///
  /// The registry's lock is held.
  private static func freeRecord(of handle: UInt64, _ slot: SlotPointer) {
    switch Handle.kind(of: handle) {
    case .token
    where slot.pointee.mode.load(ordering: .relaxed) & Mode.interface != 0:
      Memory.release(UnsafeMutableRawPointer(mutating: slot.pointee.function))
    case .signal: slot.signalRecord?.destroy()
    case .list: slot.connectionList?.destroy()
    case .queue: slot.queueRecord?.destroy()
    case .session, .task, .reply, .thunk:
      if let record = slot.recordHeader { record.pointee.free(record) }
    default: break
    }
  }

  /// A destroy from which the thread jumped away has run as far as it will;
  /// what had to wait for it goes on.
  package static func abandonDestroy(
    _ handle: UInt64, thread: ThreadPointer
  ) {
    guard let access = try? Access.of(handle, thread: thread, bySpare: true)
    else { return }
    let index = Handle.index(of: handle)
    let slot = Table.knownSlot(at: index)
    let next = slot.pointee.chain
    slot.pointee.destroy = nil
    finish(index, slot: slot, access)
    finishAll(from: next, access)
  }

  private static func recordSettled(
    _ handle: UInt64, slot: SlotPointer, ranDestroy: Bool,
    _ access: borrowing Access
  ) {
    guard slot.isKnownToHistory else { return }
    if let queue = slot.queueRecord, Handle.kind(of: handle) == .queue {
      queue.recordCounts(handle, thread: access.thread)
    }
    let counts =
      Handle.kind(of: handle) == .token
      ? CallCells.settle(handle) : CallCounts()
    access.registry.record(
      .settled, handle,
      argument: UInt32(truncatingIfNeeded: counts.unfinished),
      payload: Payload(counts.attempts, ranDestroy ? 1 : 0),
      thread: access.thread)
  }

  /// Frees a slot, and wakes who waits for that.
  ///
  /// Returns the owner that was waiting for this last part of it, claimed.
  private static func release(
    _ index: UInt32, slot: SlotPointer, _ access: borrowing Access
  ) -> UInt32? {
    let registry = access.registry
    let handle = Handle.handle(
      ofWord: slot.pointee.word.load(ordering: .relaxed))
    var signal: UInt64?
    let owner = registry.pointee.lock.locked {
      registry.unlink(index, slot: slot)
      let owner = slot.pointee.owner.load(ordering: .relaxed)
      signal = registry.unlinkConnection(slot)
      freeRecord(of: handle, slot)
      slot.clear()
      registry.freeSlot(index, slot: slot, handle: handle)
      return owner
    }
    Hook.slotFreed.reached(handle)
    cbr_full_fence()
    Waiting.wakeAll()
    if let signal { leaveSignal(signal, access) }
    if owner == registry.index {
      closeIfEmpty(access)
      return nil
    }
    return claimOwner(owner)
  }

  /// A connection that is gone holds its signal no longer.
  private static func leaveSignal(
    _ signal: UInt64, _ access: borrowing Access
  ) {
    let slot = Table.knownSlot(at: Handle.index(of: signal))
    if Protocol.dropLease(slot, handle: signal) == .claimed {
      finish(signal, access)
    }
  }

  /// An owner or signal that is draining and has nothing left is claimed by whoever
  /// freed the last of its belongings.
  private static func claimOwner(_ index: UInt32) -> UInt32? {
    let slot = Table.knownSlot(at: index)
    let word = slot.pointee.word.load(ordering: .sequentiallyConsistent)
    let handle = Handle.handle(ofWord: word)
    guard Handle.state(ofWord: word) == .draining,
      Handle.isContainer(handle),
      Protocol.claim(slot, handle: handle)
    else { return nil }
    return index
  }
}

extension Finishing {
  /// Ends a closing registry to which nothing belongs any more.
  ///
  /// The access itself is a pin on it, so it is finished when the access goes.
  static func closeIfEmpty(_ access: borrowing Access) {
    let registry = access.registry
    let handle = registry.pointee.handle
    let slot = Table.knownSlot(at: registry.index)
    // A closer that sets this later looks for children itself, afterwards.
    guard registry.isClosing else { return }
    let isEmpty = registry.pointee.lock.locked {
      !Protocol.hasChildren(handle)
    }
    guard isEmpty else { return }
    let (isMarked, _) = slot.pointee.word.compareExchange(
      expected: handle, desired: Handle.dying(handle),
      ordering: .sequentiallyConsistent)
    guard isMarked else { return }
    Scan.fence()
    slot.pointee.word.store(
      Handle.draining(handle), ordering: .sequentiallyConsistent)
  }

  /// Frees a claimed registry: its history ends with its last event.
  package static func finishRegistry(_ handle: UInt64, thread: ThreadPointer) {
    let index = Handle.index(of: handle)
    let slot = Table.knownSlot(at: index)
    guard let body = slot.pointee.body else { return }
    let registry = body.assumingMemoryBound(to: RegistryRecord.self)
    if slot.isKnownToHistory {
      registry.record(.closed, handle, thread: thread)
    }
    let history = registry.pointee.history
    if let observer = registry.pointee.observer {
      history.endObserving(observer)
    }
    registry.freeInterfaces()
    let chunks = registry.pointee.chunks
    registry.pointee.lock.destroy()
    slot.clear()
    registry.deinitialize(count: 1)
    Memory.release(registry)
    // Before the handle is seen to be free: the thread that waits for that has
    // the last reference then, and writes the history to its end.
    _ = history.release(until: Deadline.after(0))
    // Its handle is gone for good once the generation moves on.
    slot.pointee.word.store(
      Handle.freeWord(
        generation: Handle.generation(of: handle) &+ 1, next: Slot.noIndex),
      ordering: .sequentiallyConsistent)
    Table.returnChunks(chunks)
    cbr_full_fence()
    Waiting.wakeAll()
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Empties a slot that is no longer anybody's.
  func clear() {
    let detail = Table.knownDetail(
      at: Handle.index(of: pointee.word.load(ordering: .relaxed)))
    pointee.function = nil
    pointee.context = nil
    pointee.destroy = nil
    pointee.body = nil
    pointee.mode.store(0, ordering: .relaxed)
    pointee.owner.store(Slot.noIndex, ordering: .relaxed)
    detail.pointee.attempts.store(0, ordering: .relaxed)
    detail.pointee.link.store(Slot.noIndex, ordering: .relaxed)
    detail.pointee.typeTag = 0
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Adds a slot to what belongs to `owner`.
  ///
  /// The lock is held.
  func link(_ index: UInt32, slot: SlotPointer, owner: UInt32) {
    let detail = Table.knownDetail(at: owner)
    let first = detail.pointee.link.load(ordering: .relaxed)
    slot.pointee.owner.store(owner, ordering: .relaxed)
    slot.pointee.next = first
    slot.pointee.previous = Slot.noIndex
    if first != Slot.noIndex {
      Table.knownSlot(at: first).pointee.previous = index
    }
    detail.pointee.link.store(index, ordering: .relaxed)
  }

  /// Takes a slot out of what its owner has.
  ///
  /// The lock is held.
  fileprivate func unlink(_ index: UInt32, slot: SlotPointer) {
    let next = slot.pointee.next
    let previous = slot.pointee.previous
    if next != Slot.noIndex {
      Table.knownSlot(at: next).pointee.previous = previous
    }
    if previous != Slot.noIndex {
      Table.knownSlot(at: previous).pointee.next = next
    } else {
      let owner = slot.pointee.owner.load(ordering: .relaxed)
      // Pairs with the look at the children in Protocol.claim.
      Table.knownDetail(at: owner).pointee.link.store(
        next, ordering: .sequentiallyConsistent)
    }
  }
}

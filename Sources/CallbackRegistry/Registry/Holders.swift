// SPDX-License-Identifier: Apache-2.0
//
// Which slots hold which token. A slot reads as empty from the moment its token
// is marked: the mark and the clearing are under one lock. What is told of it,
// to the history and to an observer, is told outside the lock, by the thread
// that ended the token, before its call returns (G19).
// Tried to break by: Tests/C (slots.c).

import Synchronization

package typealias SlotObserver =
  @convention(c) (UnsafeMutableRawPointer?, UInt64, UInt64) -> Void

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a slot that holds a token: with the lock of its registry held.
  fileprivate var holder: HolderPointer? {
    get { pointee.context?.assumingMemoryBound(to: Holder.self) }
    nonmutating set { pointee.context = UnsafeMutableRawPointer(newValue) }
  }

  /// The token that is told when a slot is cleared.
  var observer: UInt64 {
    get { UInt64(UInt(bitPattern: pointee.body)) }
    nonmutating set {
      pointee.body = UnsafeMutableRawPointer(bitPattern: UInt(newValue))
    }
  }
}

extension HandleKind {
  /// Whether it may have a holder.
  var holdsToken: Bool { self == .slot || self == .session || self == .task }
}

extension UnsafeMutablePointer where Pointee == SlotDetail {
  /// The token that a slot holds.
  package var heldToken: UInt64 {
    get { pointee.attempts.load(ordering: .acquiring) }
    nonmutating set { pointee.attempts.store(newValue, ordering: .releasing) }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Makes room for one more token that is held.
  ///
  /// False without memory. The lock is held.
  func reserveHolder() -> Bool { pointee.holders.reserve() }

  /// Makes a slot hold a live token, by a holder that is its own then.
  ///
  /// There is room for it. Who reads meanwhile finds the former one or this one,
  /// and never none. The lock is held.
  func hold(_ holder: HolderPointer, slot: SlotPointer, handle: UInt64) {
    holder.pointee.slot = handle
    if let former = unlink(slot) { Memory.release(former) }
    let token = holder.pointee.token
    let first = firstHolder(of: token)
    holder.pointee.next = first
    first?.pointee.previous = holder
    pointee.holders.set(token, to: UInt64(UInt(bitPattern: holder)))
    Table.knownSlot(at: Handle.index(of: token)).pointee.mode.bitwiseOr(
      Mode.held, ordering: .relaxed)
    slot.holder = holder
    Table.knownDetail(at: Handle.index(of: handle)).heldToken = token
  }

  /// Empties a slot: it dies, or is about to hold another token.
  ///
  /// The lock is held.
  func letGo(_ slot: SlotPointer) {
    guard let holder = unlink(slot) else { return }
    empty(slot, holder)
    Memory.release(holder)
  }

  /// Takes a slot's holder, if it has one, from those of its token.
  private func unlink(_ slot: SlotPointer) -> HolderPointer? {
    guard let holder = slot.holder else { return nil }
    let next = holder.pointee.next
    next?.pointee.previous = holder.pointee.previous
    if let previous = holder.pointee.previous {
      previous.pointee.next = next
    } else if let next {
      pointee.holders.set(
        holder.pointee.token, to: UInt64(UInt(bitPattern: next)))
    } else {
      pointee.holders.remove(holder.pointee.token)
      Table.knownSlot(at: Handle.index(of: holder.pointee.token))
        .pointee.mode.bitwiseAnd(~Mode.held, ordering: .relaxed)
    }
    return holder
  }

  /// Empties every slot that holds a token which is being marked.
  ///
  /// The lock is held.
  func clearHolders(
    of token: UInt64, slot: SlotPointer, reason: UInt32, into chain: inout Chain
  ) {
    guard slot.pointee.mode.load(ordering: .relaxed) & Mode.held != 0 else {
      return
    }
    var each = firstHolder(of: token)
    pointee.holders.remove(token)
    while let holder = each {
      each = holder.pointee.next
      let slot = Table.knownSlot(at: Handle.index(of: holder.pointee.slot))
      if Handle.kind(of: holder.pointee.slot) == .slot {
        holder.pointee.observer = slot.observer
      }
      holder.pointee.reason = reason
      holder.pointee.isTold =
        slot.isKnownToHistory
        && Handle.kind(of: holder.pointee.slot) == .slot
      empty(slot, holder)
      chain.cleared.append(holder)
    }
  }

  private func empty(_ slot: SlotPointer, _ holder: HolderPointer) {
    slot.holder = nil
    Table.knownDetail(at: Handle.index(of: holder.pointee.slot)).heldToken =
      Handle.none
  }

  private func firstHolder(of token: UInt64) -> HolderPointer? {
    pointee.holders[token].flatMap { HolderPointer(bitPattern: UInt($0)) }
  }

  /// Tells the history and observers which slots were cleared.
  ///
  /// No lock is held.
  func tell(_ cleared: inout ClearedSlots, thread: ThreadPointer) {
    while let holder = cleared.takeFirst() {
      let told = holder.pointee
      Memory.release(holder)
      if told.isTold {
        record(
          .slotCleared, told.slot, argument: told.reason,
          payload: Payload(told.token), thread: thread)
      }
      told.step?(told.slot)
      guard told.observer != Handle.none else { continue }
      var call = CallRecord.empty
      guard
        Entering.enterFully(told.observer, .function, call: &call) == .ok
      else { continue }
      let function = unsafeBitCast(call.function, to: SlotObserver?.self)
      function?(call.context, told.slot, told.token)
      // The observer has forked: in the child nothing is the thread's any more.
      guard ThreadPointer.current == thread else { return }
      _ = Leaving.leave(&call)
    }
  }
}

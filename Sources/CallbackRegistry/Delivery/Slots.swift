// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Slots: the delegate properties of objects.
///
/// A slot holds one token, and is empty when that token is dead (G19).
package enum Slots {
  package static func create(
    in handle: UInt64, label: UnsafePointer<CChar>?, owner: UInt64,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    Creating.create(.slot, in: handle, label: label, owner: owner, out: out)
  }

  /// Makes a slot hold a token; none empties it.
  package static func set(_ handle: UInt64, to token: UInt64) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .slot)
      if token != Handle.none {
        guard Handle.isWellFormed(token) else {
          throw thread.invalid("token is not a handle")
        }
        guard Handle.kind(of: token) == .token else {
          throw thread.toThrow(thread.fail(.kind, about: token))
        }
      }
      let access = try Access.of(handle, thread: thread)
      try access.registry.set(handle, to: token, thread: thread)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// The token that a slot holds; none when it is empty.
  package static func get(_ handle: UInt64) -> UInt64 {
    guard let thread = Process.currentThread() else { return Handle.none }
    do throws(Status) {
      return try token(of: handle)
    } catch {
      _ = thread.fail(error, about: handle)
      return Handle.none
    }
  }

  /// Begins a call of the token that a slot holds.
  package static func enter(
    _ handle: UInt64, _ interface: InterfaceDescription?, method: UInt32,
    call: CallPointer
  ) -> Status {
    call.pointee = .empty
    guard let thread = Process.currentThread() else { return .noMemory }
    let held: UInt64
    do throws(Status) {
      guard interface != nil || method == 0 else {
        throw thread.invalid("method is given without an interface")
      }
      held = try token(of: handle)
    } catch {
      return thread.fail(error, about: handle)
    }
    guard held != Handle.none else {
      call.pointee.disposition = interface?.defaultDisposition(of: method) ?? 0
      return thread.fail(.empty, about: handle)
    }
    guard let interface else {
      return Status(rawValue: Entering.enter(held, call: call)) ?? .stale
    }
    return Entering.enterFully(held, .method(interface, method), call: call)
  }

  /// Names the token that is told when the slot's token dies; none: nobody is.
  package static func observe(
    _ handle: UInt64, by observer: UInt64
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .slot)
      if observer != Handle.none {
        try HandleForm.check(observer, is: .token)
      }
      let access = try Access.of(handle, thread: thread)
      let registry = access.registry
      let slot = Table.knownSlot(at: Handle.index(of: handle))
      var culprit = handle
      let status: Status = registry.pointee.lock.locked {
        guard slot.pointee.word.load(ordering: .relaxed) == handle else {
          return Access.absent(handle)
        }
        culprit = observer
        let status = registry.checkToken(observer)
        guard status == .ok else { return status }
        slot.observer = observer
        return .ok
      }
      guard status == .ok else {
        throw thread.toThrow(thread.fail(status, about: culprit))
      }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Reads without a lock: what the slot held while it was live.
  private static func token(of handle: UInt64) throws(Status) -> UInt64 {
    try HandleForm.check(handle, is: .slot)
    guard let slot = Table.slot(of: handle) else {
      throw Access.absent(handle)
    }
    let detail = Table.knownDetail(at: Handle.index(of: handle))
    let token = detail.heldToken
    guard slot.pointee.word.load(ordering: .acquiring) == handle else {
      throw Access.absent(handle)
    }
    return token
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  fileprivate func set(
    _ handle: UInt64, to token: UInt64, thread: ThreadPointer
  ) throws(Status) {
    var holder: HolderPointer?
    if token != Handle.none {
      holder = Memory.allocate(Holder.self)
      guard let holder else { throw .noMemory }
      holder.initialize(to: Holder(token: token))
    }
    let index = Handle.index(of: handle)
    let slot = Table.knownSlot(at: index)
    var former = Handle.none
    var culprit = handle
    let status: Status = pointee.lock.locked {
      guard slot.pointee.word.load(ordering: .relaxed) == handle else {
        return Access.absent(handle)
      }
      former = Table.knownDetail(at: index).heldToken
      guard let holder else {
        letGo(slot)
        return .ok
      }
      culprit = token
      let status = checkToken(token)
      guard status == .ok else { return status }
      guard reserveHolder() else { return .noMemory }
      hold(holder, slot: slot, handle: handle)
      return .ok
    }
    guard status == .ok else {
      Memory.release(holder)
      throw status == .noMemory
        ? status : thread.toThrow(thread.fail(status, about: culprit))
    }
    if slot.isKnownToHistory {
      record(
        .slotSet, handle, payload: Payload(token, former), thread: thread)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Leases: holds on a token that are not tied to a thread or a scope.
///
/// A lease has a slot of its own, which belongs to nothing and whose `typeTag`
/// is the token; the token's slot counts its leases.
package enum Leasing {
  package static func begin(
    _ token: UInt64, out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    let slot: SlotPointer
    do throws(Status) {
      slot = try Entering.slot(of: token)
    } catch {
      return thread.fail(error, about: token)
    }
    guard let pin = thread.pin(token) else { return thread.fail(.noMemory) }
    Hook.enterPinned.reached(token)
    cbr_light_fence()
    guard slot.pointee.word.load(ordering: .acquiring) == token else {
      let reason = Entering.reason(of: token, slot)
      Entering.withdraw(pin, token, thread: thread)
      return Entering.refuse(token, reason, thread: thread)
    }
    Hook.enterChecked.reached(token)
    var status = Status.ok
    do throws(Status) {
      try take(token, slot: slot, thread: thread, out: out)
    } catch {
      status = thread.fail(error, about: token)
    }
    Entering.withdraw(pin, token, thread: thread)
    return status
  }

  /// Counts a lease on a token that is pinned and live.
  private static func take(
    _ token: UInt64, slot: SlotPointer, thread: ThreadPointer,
    out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let access = try Access.of(token, thread: thread, bySpare: true)
    Protocol.addLease(slot, handle: token)
    let detail = Table.knownDetail(at: Handle.index(of: token))
    var new = NewSlot(
      kind: .lease,
      origin: Origin(
        callback: detail.pointee.callback, site: detail.pointee.site),
      owner: Handle.none, mode: Mode.notCallable, thread: thread)
    do throws(Status) {
      try access.registry.add(&new, access, out: out) { _, detail, _ in
        detail.pointee.typeTag = token
      }
    } catch {
      // The pin is still there: this cannot be the last hold.
      _ = Protocol.dropLease(slot, handle: token)
      throw error
    }
    if access.registry.isRecorded(slot) {
      access.registry.record(
        .leased, token, payload: Payload(out.pointee), thread: thread)
    }
  }

  package static func end(_ lease: UInt64) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(lease, is: .lease)
      let access = try Access.of(lease, thread: thread)
      guard let token = access.registry.freeLease(lease) else {
        throw Access.absent(lease)
      }
      let slot = Table.knownSlot(at: Handle.index(of: token))
      if access.registry.isRecorded(slot) {
        access.registry.record(
          .leaseEnded, token, payload: Payload(lease), thread: thread)
      }
      if Protocol.dropLease(slot, handle: token) == .claimed {
        Finishing.finish(token, access)
      }
      return .ok
    } catch {
      let isPast = error == .stale && Access.wasGivenOut(lease)
      return thread.fail(isPast ? .already : error, about: lease)
    }
  }

  /// Fills in what a lease holds.
  package static func get(_ lease: UInt64, call: CallPointer) -> Status {
    call.pointee = .empty
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(lease, is: .lease)
      let access = try Access.of(lease, thread: thread)
      try access.registry.readLease(lease, call: call)
      return .ok
    } catch {
      return thread.fail(error, about: lease)
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Frees a lease's slot.
  ///
  /// Returns its token, which it held until now; nil when the lease is over.
  fileprivate func freeLease(_ lease: UInt64) -> UInt64? {
    let index = Handle.index(of: lease)
    let slot = Table.knownSlot(at: index)
    return pointee.lock.locked {
      guard slot.pointee.word.load(ordering: .relaxed) == lease else {
        return nil
      }
      let token = Table.knownDetail(at: index).pointee.typeTag
      slot.clear()
      freeSlot(index, slot: slot, handle: lease)
      pointee.live.change(.lease, by: -1)
      return token
    }
  }

  fileprivate func readLease(
    _ lease: UInt64, call: CallPointer
  ) throws(Status) {
    let index = Handle.index(of: lease)
    let slot = Table.knownSlot(at: index)
    let status: Status = pointee.lock.locked {
      guard slot.pointee.word.load(ordering: .relaxed) == lease else {
        return Access.absent(lease)
      }
      let token = Table.knownDetail(at: index).pointee.typeTag
      let held = Table.knownSlot(at: Handle.index(of: token))
      let mode = held.pointee.mode.load(ordering: .relaxed)
      guard mode & Mode.interface == 0 else { return .interface }
      call.pointee.function = held.pointee.function
      call.pointee.context = held.pointee.context
      return .ok
    }
    if status != .ok { throw status }
  }
}

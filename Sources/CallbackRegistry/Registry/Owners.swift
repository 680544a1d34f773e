// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Owners: what callbacks belong to.
///
/// A registry or another owner is theirs.
package enum Owners {
  package static func create(
    in handle: UInt64, kind: HandleKind, label: UnsafePointer<CChar>?,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: kind)
      try thread.checkText(label, "label", limit: TextLimit.label)
      let access = try Access.of(handle, thread: thread)
      try access.registry.addOwner(
        label: label, parent: kind == .owner ? handle : Handle.none,
        object: 0, access, out: out)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Returns the owner of a living object, a new one if it has none (G18).
  package static func ofObject(
    _ object: UInt64, in handle: UInt64, label: UnsafePointer<CChar>?,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      guard object != 0 else { throw thread.invalid("object is NULL") }
      try thread.checkText(label, "label", limit: TextLimit.label)
      let access = try Access.registry(handle, thread: thread)
      do throws(Status) {
        try access.registry.addOwner(
          label: label, parent: Handle.none, object: object, access, out: out)
      } catch {
        // When it has one already, that is in `out`.
        if error != .already { throw error }
      }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  package static func objectDied(
    _ object: UInt64, in handle: UInt64
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      guard object != 0 else { throw thread.invalid("object is NULL") }
      let owner = try Access.registry(handle, thread: thread).registry
        .owner(of: object)
      guard let owner else { return .ok }
      return Ending.end(
        owner, reason: Reason.objectDied, waitingUntil: nil)
    } catch {
      return thread.fail(error, about: handle)
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// The owner of an object, from its making to its end.
  fileprivate func owner(of object: UInt64) -> UInt64? {
    pointee.lock.locked { ownerLocked(of: object) }
  }

  /// Makes room for a new owner of an object.
  ///
  /// `.already`, with that owner, when the object has one. The lock is held.
  func claimObject(
    _ object: UInt64, out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    if let known = ownerLocked(of: object) {
      out.pointee = known
      return .already
    }
    return pointee.objects.reserve() ? .ok : .noMemory
  }

  /// Takes the object of an owner out of the index, if it has one.
  ///
  /// A new object at its address then gets a new owner (G18). The lock is held.
  func forgetObject(ofOwner index: UInt32) {
    let object = Table.knownDetail(at: index).pointee.typeTag
    guard object != 0, pointee.objects[object] == UInt64(index) else { return }
    pointee.objects.remove(object)
  }

  private func ownerLocked(of object: UInt64) -> UInt64? {
    guard let index = pointee.objects[object] else { return nil }
    let word = Table.knownSlot(at: UInt32(index)).pointee.word.load(
      ordering: .relaxed)
    return Handle.state(ofWord: word) == .live ? word : nil
  }

  fileprivate func addOwner(
    label: UnsafePointer<CChar>?, parent: UInt64, object: UInt64,
    _ access: borrowing Access, out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let origin = try internOrigin(label: label, file: nil, line: 0)
    var new = NewSlot(
      kind: .owner, origin: origin, owner: parent,
      mode: Mode.notCallable | level.mode, thread: access.thread,
      object: object)
    try add(&new, access, out: out) { _, detail, _ in
      detail.pointee.typeTag = object
    }
  }
}

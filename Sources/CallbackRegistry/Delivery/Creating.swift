// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Making handles that are neither callbacks nor owners.
enum Creating {
  /// Makes a handle of a kind that has a label and belongs to an owner, or to
  /// the registry when that is none.
  static func create(
    _ kind: HandleKind, in handle: UInt64, label: UnsafePointer<CChar>?,
    owner: UInt64, out: UnsafeMutablePointer<UInt64>,
    fill: (SlotPointer, RegistryPointer, UInt64) -> Void = { _, _, _ in }
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      try thread.checkText(label, "label", limit: TextLimit.label)
      try Registering.checkForm(ofOwner: owner, thread: thread)
      let access = try Access.registry(handle, thread: thread)
      let registry = access.registry
      let origin = try registry.internOrigin(label: label, file: nil, line: 0)
      var new = NewSlot(
        kind: kind, origin: origin, owner: owner,
        mode: Mode.notCallable | registry.level.mode, thread: thread)
      try registry.add(&new, access, out: out) { slot, _, handle in
        fill(slot, registry, handle)
      }
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }
}

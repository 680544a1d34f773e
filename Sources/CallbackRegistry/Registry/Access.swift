// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// Keeps a registry from being freed while an operation works on it: a pin on
/// the registry's handle, under the same protocol as a call.
///
/// Who claims the registry on leaving finishes it.
package struct Access: ~Copyable {
  package let registry: RegistryPointer
  package let thread: ThreadPointer
  private let pin: UInt32

  deinit {
    let handle = registry.pointee.handle
    if thread.withdraw(pin, handle: handle) == .claimed {
      Finishing.finishRegistry(handle, thread: thread)
    } else {
      Self.wakeClosers(of: handle)
    }
  }

  /// A registry's word is live until it is empty.
  ///
  /// So whoever waits for it from inside, and for this access to go, is not
  /// found by the word.
  private static func wakeClosers(of handle: UInt64) {
    guard let slot = Table.slot(of: handle),
      slot.pointee.mode.load(ordering: .relaxed) & Mode.closing != 0
    else { return }
    cbr_full_fence()
    Waiting.wakeAll()
  }

  /// Accesses a registry by its handle, whose form has been checked.
  ///
  /// What must not fail for want of memory takes a spare pin.
  static func registry(
    _ handle: UInt64, thread: ThreadPointer, bySpare: Bool = false
  ) throws(Status) -> Access {
    guard let slot = Table.slot(of: handle) else { throw absent(handle) }
    let made = bySpare ? thread.pinSpare(handle) : thread.pin(handle)
    guard let pin = made else { throw .noMemory }
    cbr_light_fence()
    guard slot.pointee.word.load(ordering: .acquiring) == handle,
      let body = slot.pointee.body
    else {
      if thread.withdraw(pin, handle: handle) == .claimed {
        Finishing.finishRegistry(handle, thread: thread)
      }
      throw absent(handle)
    }
    return Access(
      registry: body.assumingMemoryBound(to: RegistryRecord.self),
      thread: thread, pin: pin)
  }

  /// Accesses the registry that a handle of any kind belongs to.
  ///
  /// The handle may be dead, but its slot not yet reused.
  static func of(
    _ handle: UInt64, thread: ThreadPointer, bySpare: Bool = false
  ) throws(Status) -> Access {
    if Handle.kind(of: handle) == .registry {
      return try registry(handle, thread: thread, bySpare: bySpare)
    }
    guard let chunk = Table.chunk(at: Handle.index(of: handle)) else {
      throw absent(handle)
    }
    let owner = chunk.pointee.registry.load(ordering: .acquiring)
    guard owner != Handle.none else { throw absent(handle) }
    let access = try registry(owner, thread: thread, bySpare: bySpare)
    // While the registry is pinned the chunk stays with it.
    guard chunk.pointee.registry.load(ordering: .acquiring) == owner else {
      throw absent(handle)
    }
    return access
  }

  /// Accesses the registry that would record something about a handle that may
  /// be long gone; nil when that registry has been closed.
  static func forRecording(
    _ handle: UInt64, thread: ThreadPointer
  ) -> Access? {
    guard wasGivenOut(handle),
      let access = try? of(handle, thread: thread, bySpare: true),
      absent(handle) != .closed
    else { return nil }
    return access
  }

  /// Why a handle of good form names nothing.
  static func absent(_ handle: UInt64) -> Status {
    guard let chunk = Table.chunk(at: Handle.index(of: handle)) else {
      return Table.isInherited(handle) ? .forked : .stale
    }
    guard wasGivenOut(handle) else { return .stale }
    let age = Table.age(ofGeneration: Handle.generation(of: handle))
    let isOfClosedRegistry =
      chunk.pointee.registry.load(ordering: .acquiring) == Handle.none
      || age < chunk.pointee.base.load(ordering: .relaxed)
      || Handle.kind(of: handle) == .registry
    return isOfClosedRegistry ? .closed : .stale
  }

  /// Whether the handle's generation of its slot has been given out.
  ///
  /// A word that is not free is its last one.
  static func wasGivenOut(_ handle: UInt64) -> Bool {
    guard let slot = Table.slot(of: handle) else { return false }
    let word = slot.pointee.word.load(ordering: .acquiring)
    if Handle.handle(ofWord: word) == handle { return true }
    let age = Table.age(ofGeneration: Handle.generation(of: handle))
    let present = Table.age(ofGeneration: Handle.generation(of: word))
    return age < present
  }
}

/// The form of a handle, checked before anything is looked up.
enum HandleForm {
  static func check(
    _ handle: UInt64, is kind: HandleKind?
  ) throws(Status) {
    if let kind, Handle.hasForm(handle, of: kind) { return }
    guard Handle.isWellFormed(handle) else { throw .invalid }
    if let kind, Handle.kind(of: handle) != kind { throw .kind }
  }
}

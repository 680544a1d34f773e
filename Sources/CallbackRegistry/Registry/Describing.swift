// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What memory knows of a handle, copied under the registry's lock.
struct Description {
  var kind: HandleKind
  var state: SlotState
  var callback: UInt32
  var site: UInt32
  var owner: UInt64
  var registeredTime: UInt64
  var registeredThread: UInt32
  var endedTime: UInt64
  var endedThread: UInt32
  var endReason: UInt32
  var leases: UInt32
  /// The token that a slot holds, or that a session or task has for a delegate.
  var held: UInt64
  var typeTag: UInt64
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Nil when the slot is no longer the handle's; or, `remembering`, when it has
  /// had another holder since.
  func description(
    of handle: UInt64, remembering: Bool = false
  ) -> Description? {
    let index = Handle.index(of: handle)
    guard let kind = Handle.kind(of: handle) else { return nil }
    let slot = Table.knownSlot(at: index)
    let detail = Table.knownDetail(at: index)
    return pointee.lock.locked {
      let word = slot.pointee.word.load(ordering: .relaxed)
      let isPresent = Handle.handle(ofWord: word) == handle
      guard isPresent || remembering && isLastHolder(handle, word: word)
      else { return nil }
      return Description(
        kind: kind, state: Handle.state(ofWord: word),
        callback: detail.pointee.callback, site: detail.pointee.site,
        owner: handleOfSlot(slot.pointee.owner.load(ordering: .relaxed)),
        registeredTime: detail.pointee.registeredTime,
        registeredThread: detail.pointee.registeredThread,
        endedTime: detail.pointee.endedTime,
        endedThread: detail.pointee.endedThread,
        endReason: detail.pointee.endReason.load(ordering: .relaxed),
        // A signal's are its connections.
        leases: kind == .token
          ? slot.pointee.leases.load(ordering: .relaxed) : 0,
        held: kind.holdsToken ? detail.heldToken : Handle.none,
        typeTag: detail.pointee.typeTag)
    }
  }

  /// Whether a free slot was the handle's before: what is told of it is still
  /// there.
  private func isLastHolder(_ handle: UInt64, word: UInt64) -> Bool {
    let age = Table.age(ofGeneration: Handle.generation(of: handle))
    return !Handle.hasKind(word)
      && Table.age(ofGeneration: Handle.generation(of: word)) == age &+ 1
  }

  /// The handle of an owner's slot; the registry's own for none.
  func handleOfSlot(_ index: UInt32) -> UInt64 {
    guard index != Slot.noIndex else { return pointee.handle }
    return Handle.handle(
      ofWord: Table.knownSlot(at: index).pointee.word.load(
        ordering: .relaxed))
  }

  /// Text of the dictionaries stays where it is while the registry is pinned.
  func label(_ number: UInt32) -> UnsafePointer<CChar>? {
    pointee.recorder.pointee.monitor.locked {
      pointee.recorder.pointee.callbacks[number]?.text
    }
  }

  func site(_ number: UInt32) -> (file: UnsafePointer<CChar>, line: UInt32)? {
    pointee.recorder.pointee.monitor.locked {
      pointee.recorder.pointee.sites[number].map { ($0.text, $0.line) }
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Appends a label in quotes, after a space.
  func append(label number: UInt32, to text: inout Text) {
    guard let label = label(number) else { return }
    text.append(" \"")
    text.append(label)
    text.append("\"")
  }
}

/// A few words that name a handle in a message: from memory while it is there,
/// else from the history.
enum Describing {
  static func describe(
    _ handle: UInt64, thread: ThreadPointer, into text: inout Text
  ) {
    append(number: handle, to: &text)
    guard Handle.isWellFormed(handle) else { return }
    guard let access = try? Access.of(handle, thread: thread) else {
      return Histories.describe(handle, into: &text)
    }
    let known = access.registry.description(of: handle, remembering: true)
    guard let found = known else {
      _ = access.registry.pointee.history.describe(handle, into: &text)
      return
    }
    access.registry.append(label: found.callback, to: &text)
    guard found.endReason != Reason.none else { return }
    text.append(", which ended ")
    text.append(
      nanoseconds: access.registry.pointee.history.nanoseconds(
        ofTicks: Ticks.now &- found.endedTime))
    text.append(" ago on thread ")
    text.append(found.endedThread)
    text.append(" (")
    append(reason: found.endReason, to: &text)
    text.append(")")
  }

  /// Appends the kind and the number, as "token 0x0123456789abcdef".
  static func append(number handle: UInt64, to text: inout Text) {
    if Handle.isWellFormed(handle), let kind = Handle.kind(of: handle) {
      text.append(kind.name)
      text.append(" ")
    }
    text.append(hexadecimal: handle)
  }

  static func append(reason: UInt32, to text: inout Text) {
    if let name = Reason.name(reason) { return text.append(name) }
    text.append("reason ")
    text.append(reason)
  }
}

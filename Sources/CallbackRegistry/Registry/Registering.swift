// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// What is to be registered.
///
/// Pointers are borrowed for the call.
package struct RegistrationRequest {
  package var label: UnsafePointer<CChar>?
  package var function: UnsafeRawPointer?
  package var interface: InterfaceDescription?
  package var methods: UnsafePointer<UnsafeRawPointer?>?
  package var context: UnsafeMutableRawPointer?
  package var destroy: Destroy?
  package var owner: UInt64 = Handle.none
  package var typeTag: UInt64 = 0
  package var flags: UInt32 = 0
  package var line: UInt32 = 0
  package var file: UnsafePointer<CChar>?
  package var level: UInt32 = 0
  /// Where destroy runs; none: where the token comes to its end.
  package var queue: UInt64 = Handle.none

  package init() {}
}

package enum RegistrationFlags {
  package static let oneShot: UInt32 = 1
  package static let threadBound: UInt32 = 2
  package static let all = oneShot | threadBound
  /// In a history: a signal's.
  package static let connection: UInt32 = 4
}

package enum TextLimit {
  package static let label = 255
  package static let file = 1023
  package static let note = 4095
}

package enum Registering {
  /// Registers a callback.
  ///
  /// On failure nothing is taken (G6).
  package static func register(
    in handle: UInt64, _ what: RegistrationRequest,
    out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    out.pointee = Handle.none
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: .registry)
      try validate(what, thread: thread)
      let access = try Access.registry(handle, thread: thread)
      try register(what, access, out: out)
      return .ok
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Registers what has been validated, and gives it its place in a signal.
  static func register(
    _ what: RegistrationRequest, _ access: borrowing Access,
    at place: ConnectionPlace? = nil, out: UnsafeMutablePointer<UInt64>
  ) throws(Status) {
    let registry = access.registry
    let thread = access.thread
    var methods: UnsafeMutablePointer<UnsafeRawPointer?>?
    var interface: InterfacePointer?
    if let description = what.interface {
      let found = try registry.intern(description, thread: thread)
      methods = try found.copyMethods(what.methods, thread: thread)
      interface = found
    }
    do throws(Status) {
      let origin = try registry.internOrigin(
        label: what.label, file: what.file, line: what.line)
      var new = NewSlot(
        kind: .token, origin: origin, owner: what.owner,
        mode: mode(of: what, level: registry.level), thread: thread)
      if let place {
        new.mode |= Mode.connection
        if place.delivery.queue != Handle.none { new.mode |= Mode.queued }
      }
      new.destroy(what)
      new.place = place
      try registry.add(&new, access, out: out) { slot, detail, _ in
        slot.pointee.function = what.function ?? UnsafeRawPointer(methods)
        slot.pointee.context = what.context
        slot.pointee.destroy = what.destroy
        if let interface {
          slot.pointee.body = UnsafeMutableRawPointer(interface)
        } else {
          slot.typeTag = what.typeTag
        }
        detail.pointee.typeTag = what.typeTag
      }
    } catch {
      Memory.release(methods)
      throw error
    }
  }

  private static func mode(
    of what: RegistrationRequest, level: Level
  ) -> UInt32 {
    var mode: UInt32 = 0
    if what.flags & RegistrationFlags.oneShot != 0 { mode |= Mode.oneShot }
    if what.flags & RegistrationFlags.threadBound != 0 {
      mode |= Mode.threadBound
    }
    if what.interface != nil { mode |= Mode.interface }
    if what.typeTag != 0 { mode |= Mode.tagged }
    if let own = Level(rawValue: what.level) {
      return mode | Mode.ownLevel | own.mode
    }
    return mode | level.mode
  }

  static func validate(
    _ what: RegistrationRequest, thread: ThreadPointer
  ) throws(Status) {
    try thread.checkText(what.label, "label", limit: TextLimit.label)
    try thread.checkText(what.file, "file", limit: TextLimit.file, rule: .path)
    if what.flags & ~RegistrationFlags.all != 0 {
      throw thread.invalid { text in
        text.append("flags has unknown bits ")
        text.append(
          hexadecimal: UInt64(what.flags & ~RegistrationFlags.all))
      }
    }
    if what.level != 0, Level(rawValue: what.level) == nil {
      throw thread.invalid { text in
        text.append("level is ")
        text.append(what.level)
        text.append("; levels are 0 to 3")
      }
    }
    if what.function != nil, what.interface != nil {
      throw thread.invalid("function and interface are both given")
    }
    if what.function == nil, what.interface == nil {
      throw thread.invalid("function is NULL and there is no interface")
    }
    if what.interface == nil, what.methods != nil {
      throw thread.invalid("methods are given without an interface")
    }
    if what.interface != nil, what.typeTag != 0 {
      throw thread.invalid("type_tag is for a function, not an interface")
    }
    try checkForm(ofOwner: what.owner, thread: thread)
    try checkForm(ofQueue: what.queue, thread: thread)
  }

  static func checkForm(
    ofQueue queue: UInt64, thread: ThreadPointer
  ) throws(Status) {
    guard queue != Handle.none else { return }
    guard Handle.isWellFormed(queue) else {
      throw thread.invalid("queue is not a handle")
    }
    guard Handle.kind(of: queue) == .queue else {
      throw thread.toThrow(thread.fail(.kind, about: queue))
    }
  }

  static func checkForm(
    ofOwner owner: UInt64, thread: ThreadPointer
  ) throws(Status) {
    guard owner != Handle.none else { return }
    guard Handle.isWellFormed(owner) else {
      throw thread.invalid("owner is not a handle")
    }
    guard Handle.kind(of: owner) == .owner else {
      throw thread.toThrow(thread.fail(.kind, about: owner))
    }
  }
}

/// A label and a site, by their numbers in the recorder's dictionaries.
struct Origin {
  var callback: UInt32
  var site: UInt32
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  func internOrigin(
    label: UnsafePointer<CChar>?, file: UnsafePointer<CChar>?, line: UInt32
  ) throws(Status) -> Origin {
    let recorder = pointee.recorder
    let origin: Origin? = recorder.pointee.monitor.locked {
      guard
        let callback = recorder.intern(.callback, text: label)
      else { return nil }
      guard let file else { return Origin(callback: callback, site: 0) }
      guard let site = recorder.intern(.site, text: file, line: line)
      else { return nil }
      return Origin(callback: callback, site: site)
    }
    guard let origin else { throw .noMemory }
    return origin
  }
}

extension UnsafeMutablePointer where Pointee == Recorder {
  /// Numbers text that may be NULL, which is empty text.
  ///
  /// The recorder's monitor is held.
  func intern(
    _ kind: NameKind, text: UnsafePointer<CChar>?, line: UInt32 = 0
  ) -> UInt32? {
    guard let text else {
      var empty: CChar = 0
      return withUnsafePointer(to: &empty) {
        intern(kind, $0, length: 0, line: line)
      }
    }
    return intern(
      kind, text, length: length(of: text, limit: TextLimit.file), line: line)
  }
}

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
      try registry.add(new, access, out: out) { slot, detail, _ in
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

/// A slot that is about to come to life.
struct NewSlot {
  let kind: HandleKind
  let origin: Origin
  let owner: UInt64
  var mode: UInt32
  let thread: ThreadPointer
  /// The address that an owner stands for; 0: none.
  var object: UInt64 = 0
  /// Where a signal calls it.
  var place: ConnectionPlace?
  /// What it holds from the beginning.
  var holder: HolderPointer?
  /// Where its destroy runs.
  var queue: UInt64 = Handle.none
  /// Asked about the owner, with the lock held, when all else has been found to
  /// be right.
  ///
  /// It captures nothing: a context would be of Swift's own memory.
  var isAllowed: ((RegistryPointer, UInt64) -> Bool)?

  /// Says where its context is destroyed.
  mutating func destroy(_ what: RegistrationRequest) {
    guard what.destroy != nil, what.queue != Handle.none else { return }
    mode |= Mode.destroyedOnQueue
    queue = what.queue
  }

  /// What the history is told of the mode: level 16 | flags 16, the numbers
  /// being those of C.
  var argument: UInt32 {
    var flags: UInt32 = 0
    if mode & Mode.oneShot != 0 { flags |= RegistrationFlags.oneShot }
    if mode & Mode.threadBound != 0 { flags |= RegistrationFlags.threadBound }
    if mode & Mode.connection != 0 { flags |= RegistrationFlags.connection }
    return Level(mode: mode).rawValue << 16 | flags
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

  /// Gives out a handle: everything is written before the word is published,
  /// and `out` before that.
  ///
  /// Until its registration is recorded the calling thread pins it, so that the
  /// history hears of that before it hears that the handle is settled; whoever
  /// ends it meanwhile leaves the rest to here.
  func add(
    _ new: NewSlot, _ access: borrowing Access,
    out: UnsafeMutablePointer<UInt64>,
    fill: (SlotPointer, SlotDetailPointer, UInt64) -> Void
  ) throws(Status) {
    let time = Ticks.now
    var handle = Handle.none
    var owner = pointee.handle
    var typeTag: UInt64 = 0
    var pin: UInt32?
    var new = new
    var culprit = new.owner
    var retired = Chain()
    let status: Status = pointee.lock.locked {
      var status = Status.ok
      follow(level, &new)
      let isRecorded = new.kind != .lease && new.mode & Mode.wasCounted != 0
      guard let taken = takeSlot(status: &status) else { return status }
      let spare = new.place == nil ? nil : takeSlot(status: &status)
      if status == .ok { status = checkOwner(new.owner) }
      if status == .ok, let place = new.place {
        culprit = place.signal
        status = checkOwner(place.signal)
        if status == .ok {
          culprit = place.delivery.queue
          status = check(culprit)
        }
      }
      if status == .ok, let holder = new.holder {
        culprit = holder.pointee.token
        status = check(holder.pointee.token)
        if status == .ok, !reserveHolder() { status = .noMemory }
      }
      if status == .ok, new.queue != Handle.none {
        culprit = new.queue
        status = check(new.queue)
        if status == .ok, !pointee.errandQueues.reserve() {
          status = .noMemory
        }
      }
      if status == .ok, new.isAllowed?(self, new.owner) == false {
        status = .closed
      }
      if status == .ok, new.object != 0 {
        status = claimObject(new.object, out: out)
      }
      handle = Handle.make(
        generation: taken.generation, index: taken.index, kind: new.kind)
      if status == .ok, isRecorded {
        pin = new.thread.pin(handle)
        if pin == nil { status = .noMemory }
      }
      if let place = new.place, let spare {
        if status == .ok {
          status = reserve(
            place, handle, in: spare, thread: new.thread, retired: &retired)
        } else {
          pointee.free.giveBack(spare.index, generation: spare.generation)
        }
      }
      guard status == .ok else {
        if let pin { new.thread.unpin(pin) }
        pointee.free.giveBack(taken.index, generation: taken.generation)
        return status
      }
      Hook.registerAllocated.reached(handle)
      let slot = Table.knownSlot(at: taken.index)
      let detail = Table.knownDetail(at: taken.index)
      detail.pointee.registeredTime = time
      detail.pointee.callback = new.origin.callback
      detail.pointee.site = new.origin.site
      detail.pointee.registeredThread = new.thread.pointee.number.load(
        ordering: .relaxed)
      detail.pointee.endReason.store(Reason.none, ordering: .relaxed)
      slot.pointee.mode.store(new.mode, ordering: .relaxed)
      fill(slot, detail, handle)
      if let place = new.place {
        connect(place, at: taken.index, slot, detail)
      }
      if let holder = new.holder {
        hold(holder, slot: slot, handle: handle)
      }
      if new.queue != Handle.none {
        pointee.errandQueues.set(handle, to: new.queue)
      }
      typeTag = detail.pointee.typeTag
      if new.owner != Handle.none { owner = new.owner }
      if new.kind != .lease {
        link(taken.index, slot: slot, owner: Handle.index(of: owner))
      }
      pointee.live.change(new.kind, by: 1)
      if new.kind == .token { pointee.registered += 1 }
      if new.object != 0 {
        pointee.objects.set(new.object, to: UInt64(taken.index))
      }
      out.pointee = handle
      slot.pointee.word.store(handle, ordering: .releasing)
      return .ok
    }
    if retired.count > 0 { Ending.settle(retired, access) }
    if status != .ok { throw failure(status, owner: culprit) }
    Hook.registerPublished.reached(handle)
    guard let pin else { return }
    record(
      .registered, handle, argument: new.argument, time: time,
      payload: Payload(
        owner, UInt64(new.origin.callback) << 32 | UInt64(new.origin.site),
        typeTag),
      thread: new.thread)
    recordSwitched(handle, since: new)
    Entering.withdraw(pin, handle, thread: new.thread)
  }

  /// Gives what is new the registry's level of this moment, unless it has one
  /// of its own.
  ///
  /// The lock is held: a switch has not yet come, or finds it.
  private func follow(_ level: Level, _ new: inout NewSlot) {
    guard new.kind != .lease, new.mode & Mode.ownLevel == 0 else { return }
    new.mode = new.mode & ~(Mode.levelMask | Mode.wasCounted) | level.mode
  }

  /// Says again at which level a token is, when that was switched while its
  /// registration was on its way to the history (Levels.swift).
  private func recordSwitched(_ handle: UInt64, since new: NewSlot) {
    // Either the switch is seen here, or it sees the registration recorded.
    cbr_full_fence()
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    let mode = slot.pointee.mode.load(ordering: .relaxed)
    let present = mode & Mode.ownLevel != 0 ? Level(mode: mode) : level
    guard new.kind == .token,
      mode & Mode.switched != 0 || present != Level(mode: new.mode)
    else { return }
    record(
      .leveled, handle, argument: present.rawValue, thread: new.thread)
  }

  private func failure(_ status: Status, owner: UInt64) -> Status {
    guard owner != Handle.none, let thread = ThreadPointer.current else {
      return status
    }
    switch status {
    case .dying where isClosing: return status
    case .dying, .stale, .closed, .forked, .foreign:
      return thread.toThrow(thread.fail(status, about: owner))
    default: return status
    }
  }

  /// Whether something may be added to an owner.
  ///
  /// The lock is held.
  private func checkOwner(_ owner: UInt64) -> Status {
    isClosing ? .dying : check(owner)
  }

  /// Whether a handle is live and of this registry; none is.
  ///
  /// The lock is held.
  func check(_ owner: UInt64) -> Status {
    guard owner != Handle.none else { return .ok }
    guard let chunk = Table.chunk(at: Handle.index(of: owner)) else {
      return Access.absent(owner)
    }
    guard
      chunk.pointee.registry.load(ordering: .acquiring) == pointee.handle
    else {
      return Waiting.isFree(owner) ? Access.absent(owner) : .foreign
    }
    let word = Table.knownSlot(at: Handle.index(of: owner)).pointee.word.load(
      ordering: .relaxed)
    if word == owner { return .ok }
    return Handle.handle(ofWord: word) == owner
      ? .dying : Access.absent(owner)
  }

  /// The same of a token, which is dead when it is dying.
  ///
  /// The lock is held.
  func checkToken(_ token: UInt64) -> Status {
    let status = check(token)
    return status == .dying ? .stale : status
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

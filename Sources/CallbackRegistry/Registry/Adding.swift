// SPDX-License-Identifier: Apache-2.0
//
// How a handle of any kind comes to life: its slots are taken, those that it
// names are looked at, it is written and published, and the history is told.

import CPlatform
import Synchronization

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

/// What has been taken for a handle that is not live yet.
private struct Taken {
  var slot: TakenSlot = (0, 0)
  /// For the list of a signal, should that have to be made anew.
  var spare: TakenSlot?
  var handle = Handle.none
  /// What keeps it from being settled before the history knows it; nil: the
  /// history is not told.
  var pin: UInt32?
  /// What it was refused for.
  var culprit = Handle.none
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Gives out a handle: everything is written before the word is published,
  /// and `out` before that.
  ///
  /// Until its registration is recorded the calling thread pins it, so that the
  /// history hears of that before it hears that the handle is settled; whoever
  /// ends it meanwhile leaves the rest to here.
  func add(
    _ new: inout NewSlot, _ access: borrowing Access,
    out: UnsafeMutablePointer<UInt64>,
    fill: (SlotPointer, SlotDetailPointer, UInt64) -> Void
  ) throws(Status) {
    let time = Ticks.now
    var taken = Taken()
    var typeTag: UInt64 = 0
    var retired = Chain()
    let status: Status = pointee.lock.locked {
      var status = takeSlots(for: new, &taken)
      guard status == .ok else { return status }
      follow(level, &new)
      status = admit(new, culprit: &taken.culprit, out: out)
      if status == .ok { status = pin(new, &taken) }
      if status == .ok { status = reserve(new, &taken, retired: &retired) }
      guard status == .ok else {
        giveBack(taken, thread: new.thread)
        return status
      }
      Hook.registerAllocated.reached(taken.handle)
      let slot = Table.knownSlot(at: taken.slot.index)
      let detail = Table.knownDetail(at: taken.slot.index)
      write(new, slot, detail, time: time)
      fill(slot, detail, taken.handle)
      typeTag = detail.pointee.typeTag
      attach(new, taken, slot, detail)
      out.pointee = taken.handle
      slot.pointee.word.store(taken.handle, ordering: .releasing)
      return .ok
    }
    if retired.count > 0 { Ending.settle(retired, access) }
    if status != .ok { throw failure(status, owner: taken.culprit) }
    Hook.registerPublished.reached(taken.handle)
    guard let pin = taken.pin else { return }
    announce(new, taken.handle, time: time, typeTag: typeTag)
    Entering.withdraw(pin, taken.handle, thread: new.thread)
  }

  // ------------------------------------------------- With the lock held --

  /// Takes a slot, and a spare one for a signal's list; for a moment without
  /// the lock, where a chunk has to be made.
  private func takeSlots(for new: NewSlot, _ taken: inout Taken) -> Status {
    var status = Status.ok
    guard let slot = takeSlot(status: &status) else { return status }
    if new.place != nil {
      guard let spare = takeSlot(status: &status) else {
        pointee.free.giveBack(slot.index, generation: slot.generation)
        return status
      }
      taken.spare = spare
    }
    taken.slot = slot
    taken.handle = Handle.make(
      generation: slot.generation, index: slot.index, kind: new.kind)
    return .ok
  }

  private func giveBack(_ taken: Taken, thread: ThreadPointer) {
    if let pin = taken.pin { thread.unpin(pin) }
    if let spare = taken.spare {
      pointee.free.giveBack(spare.index, generation: spare.generation)
    }
    pointee.free.giveBack(
      taken.slot.index, generation: taken.slot.generation)
  }

  /// Gives what is new the registry's level of this moment, unless it has one
  /// of its own: a switch has not yet come, or finds it.
  private func follow(_ level: Level, _ new: inout NewSlot) {
    guard new.kind != .lease, new.mode & Mode.ownLevel == 0 else { return }
    new.mode = new.mode & ~(Mode.levelMask | Mode.wasCounted) | level.mode
  }

  /// Whether what it names is live, lets it in, and has room for it.
  private func admit(
    _ new: NewSlot, culprit: inout UInt64, out: UnsafeMutablePointer<UInt64>
  ) -> Status {
    culprit = new.owner
    var status = checkOwner(new.owner)
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
      status = check(culprit)
      if status == .ok, !reserveHolder() { return .noMemory }
    }
    if status == .ok, new.queue != Handle.none {
      culprit = new.queue
      status = check(culprit)
      if status == .ok, !pointee.errandQueues.reserve() { return .noMemory }
    }
    guard status == .ok else { return status }
    if let isAllowed = new.isAllowed, !isAllowed(self, new.owner) {
      return .closed
    }
    return new.object == 0 ? .ok : claimObject(new.object, out: out)
  }

  private func pin(_ new: NewSlot, _ taken: inout Taken) -> Status {
    guard new.kind != .lease, new.mode & Mode.wasCounted != 0 else {
      return .ok
    }
    taken.pin = new.thread.pin(taken.handle)
    return taken.pin == nil ? .noMemory : .ok
  }

  /// Gives it its place in a signal's list, which uses the spare slot, or gives
  /// it back.
  private func reserve(
    _ new: NewSlot, _ taken: inout Taken, retired: inout Chain
  ) -> Status {
    guard let place = new.place, let spare = taken.spare else { return .ok }
    taken.spare = nil
    return reserve(
      place, taken.handle, in: spare, thread: new.thread, retired: &retired)
  }

  private func write(
    _ new: NewSlot, _ slot: SlotPointer, _ detail: SlotDetailPointer,
    time: UInt64
  ) {
    detail.pointee.registeredTime = time
    detail.pointee.callback = new.origin.callback
    detail.pointee.site = new.origin.site
    detail.pointee.registeredThread = new.thread.pointee.number.load(
      ordering: .relaxed)
    detail.pointee.endReason.store(Reason.none, ordering: .relaxed)
    slot.pointee.mode.store(new.mode, ordering: .relaxed)
  }

  /// Makes it known to those that it belongs to.
  private func attach(
    _ new: NewSlot, _ taken: Taken, _ slot: SlotPointer,
    _ detail: SlotDetailPointer
  ) {
    if let place = new.place {
      connect(place, at: taken.slot.index, slot, detail)
    }
    if let holder = new.holder {
      hold(holder, slot: slot, handle: taken.handle)
    }
    if new.queue != Handle.none {
      pointee.errandQueues.set(taken.handle, to: new.queue)
    }
    if new.kind != .lease {
      link(
        taken.slot.index, slot: slot,
        owner: Handle.index(of: owner(of: new)))
    }
    if new.object != 0 {
      pointee.objects.set(new.object, to: UInt64(taken.slot.index))
    }
    pointee.live.change(new.kind, by: 1)
    if new.kind == .token { pointee.registered += 1 }
  }

  private func owner(of new: NewSlot) -> UInt64 {
    new.owner == Handle.none ? pointee.handle : new.owner
  }

  /// Whether something may be added to an owner.
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

  // -------------------------------------------------------- And without --

  /// Tells the history.
  private func announce(
    _ new: NewSlot, _ handle: UInt64, time: UInt64, typeTag: UInt64
  ) {
    record(
      .registered, handle, argument: new.argument, time: time,
      payload: Payload(
        owner(of: new),
        UInt64(new.origin.callback) << 32 | UInt64(new.origin.site), typeTag),
      thread: new.thread)
    recordSwitched(handle, since: new)
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
}

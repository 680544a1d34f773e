// SPDX-License-Identifier: Apache-2.0
//
// Ending a handle and all that belongs to it: mark everything, fence once,
// look at all pins once, then claim or drain each slot (Tests/Model: settle).
//
// A slot that the snapshot shows unpinned and without leases goes from dying
// straight to destroying: the snapshot was taken after the fence that followed
// its mark, so no call is inside and none will be; and until it is draining no
// other thread touches it. Any other slot is drained, and looked at again,
// because its last pin or lease may have gone unnoticed while it was dying.

import CPlatform
import Synchronization

package enum Ending {
  /// Dead tokens that one fence is to serve together.
  static let parkedLimit = 512

  /// What ending a handle did.
  private enum Mark {
    case marked
    /// Marked, and left for later: nobody is told when it is quiescent.
    case parked
    case already
  }

  /// Ends a handle of any kind.
  ///
  /// With a deadline, waits until it is quiescent.
  package static func end(
    _ handle: UInt64, reason: UInt32, waitingUntil deadline: Deadline?
  ) -> Status {
    guard let thread = Process.currentThread() else { return .noMemory }
    do throws(Status) {
      try HandleForm.check(handle, is: nil)
      if Handle.kind(of: handle) == .lease { return Leasing.end(handle) }
      let mark = try mark(
        handle, reason: reason, thread: thread, mayPark: deadline == nil)
      if mark == .already, deadline == nil {
        return thread.fail(.already, about: handle)
      }
      if mark == .parked {
        // Only the caller's own calls are looked for.
        return thread.isInside(handle)
          ? thread.fail(.deferred, about: handle) : .ok
      }
      let status = outcome(of: handle, thread: thread, until: deadline)
      return mark == .already && status == .ok
        ? thread.fail(.already, about: handle) : status
    } catch {
      // What was given out once is dead now: ending it again is harmless.
      let isPast =
        error == .stale && Access.wasGivenOut(handle)
        || error == .closed && Handle.kind(of: handle) == .registry
      return thread.fail(isPast ? .already : error, about: handle)
    }
  }

  private static func mark(
    _ handle: UInt64, reason: UInt32, thread: ThreadPointer, mayPark: Bool
  ) throws(Status) -> Mark {
    let access = try Access.of(handle, thread: thread)
    let registry = access.registry
    var chain = Chain()
    let time = Ticks.now
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    let result: Result<Bool, Status> = registry.pointee.lock.locked {
      let word = slot.pointee.word.load(ordering: .relaxed)
      guard Handle.handle(ofWord: word) == handle else {
        return .failure(Access.absent(handle))
      }
      let isMarked =
        handle == registry.pointee.handle
        ? registry.beginClosing(
          &chain, reason: reason, thread: thread, time: time)
        : registry.mark(
          handle, slot: slot, reason: reason, thread: thread, time: time,
          into: &chain)
      return .success(isMarked)
    }
    guard try result.get() else { return .already }
    Hook.endMarked.reached(handle)
    registry.recordEnded(chain, thread: thread)
    var cleared = chain.cleared.takeAll()
    var ended = chain.ended.takeAll()
    defer {
      runSteps(&ended, access)
      registry.tell(&cleared, thread: thread)
    }
    let isParkable =
      mayPark && chain.count == 1 && Handle.kind(of: handle) == .token
      && slot.pointee.destroy == nil
    if isParkable {
      park(chain, slot: slot, access)
      return .parked
    }
    // What was parked may belong to what has ended now.
    chain.append(
      registry.pointee.lock.locked { registry.pointee.parked.takeAll() })
    settle(chain, access)
    if handle == registry.pointee.handle { Finishing.closeIfEmpty(access) }
    return .marked
  }

  /// Ends a handle that is used up, or whose time is over, for the reason that
  /// `decide` gives; it is asked with the lock held, while the handle is live.
  package static func end(
    _ handle: UInt64, _ access: borrowing Access,
    _ decide: (SlotPointer) -> Result<UInt32, Status>
  ) throws(Status) {
    let registry = access.registry
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    var chain = Chain()
    let status: Status? = registry.pointee.lock.locked {
      guard slot.pointee.word.load(ordering: .relaxed) == handle else {
        return nil
      }
      switch decide(slot) {
      case .failure(let status): return status
      case .success(let reason):
        _ = registry.mark(
          handle, slot: slot, reason: reason, thread: access.thread,
          time: Ticks.now, into: &chain)
        return .ok
      }
    }
    guard status == .ok else {
      throw status ?? Entering.reason(of: handle, slot)
    }
    registry.recordEnded(chain, thread: access.thread)
    var ended = chain.ended.takeAll()
    settle(chain, access)
    runSteps(&ended, access)
  }

  /// Runs the steps that ended records have of their own.
  ///
  /// Those that come later wait in the thread's record: a step that waits for
  /// them knows of it, and who jumps out of one has the others run.
  static func runSteps(
    _ ended: inout EndedRecords, _ access: borrowing Access
  ) {
    let others = access.thread.pointee.ended
    access.thread.pointee.ended = ended.prepended(to: others)
    runSteps(until: others, access.thread)
  }

  private static func runSteps(
    until others: RecordHeaderPointer?, _ thread: ThreadPointer
  ) {
    while let record = thread.pointee.ended, record != others {
      let handle = record.pointee.handle
      let slot = Table.knownSlot(at: Handle.index(of: handle))
      // A pin instead of the lease: who jumps out of the step leaves it.
      let pin = thread.pinSpare(handle)
      if pin != nil { _ = Protocol.dropLease(slot, handle: handle) }
      record.pointee.ended(handle)
      guard ThreadPointer.current == thread else { return }
      thread.pointee.ended = record.pointee.next
      if let pin {
        Entering.withdraw(pin, handle, thread: thread)
      } else if Protocol.dropLease(slot, handle: handle) == .claimed {
        Finishing.finish(handle, thread: thread)
      }
    }
  }

  /// Notes that the thread has jumped out of a record's step, if it was in it.
  static func abandonStep(of handle: UInt64, thread: ThreadPointer) {
    guard let record = thread.pointee.ended,
      record.pointee.handle == handle
    else { return }
    thread.pointee.ended = record.pointee.next
  }

  /// Runs the steps that were to come after one that the thread has jumped out
  /// of, up to one that it is still in.
  static func resumeSteps(_ thread: ThreadPointer) {
    var each = thread.pointee.ended
    while let record = each, !thread.isPinned(record.pointee.handle) {
      each = record.pointee.next
    }
    runSteps(until: each, thread)
  }

  /// Tells whether a dead handle is quiescent, waiting for it if asked to.
  private static func outcome(
    of handle: UInt64, thread: ThreadPointer, until deadline: Deadline?
  ) -> Status {
    if Waiting.isFree(handle) { return .ok }
    guard let deadline else {
      return thread.fail(
        thread.isInside(handle) ? .deferred : .pending, about: handle)
    }
    Waiting.begin()
    defer { Waiting.end() }
    // Kept from being freed by what the thread is inside, if it is.
    var registry: RegistryPointer?
    if let access = try? Access.of(
      handle, thread: thread, bySpare: true)
    {
      settleParked(access)
      registry = access.registry
    }
    let result = Waiting.wait(for: handle, thread: thread, until: deadline) {
      registry?.isLeft(of: handle, onlyTo: thread) ?? true
    }
    switch result {
    case .quiescent: return .ok
    case .deferred: return thread.fail(.deferred, about: handle)
    case .wouldDeadlock(let ring):
      return thread.fail(.wouldDeadlock, about: handle, ring: ring)
    case .timeout(let inside, let number):
      return thread.fail(
        .timeout, about: handle, other: inside, thread: number)
    }
  }

  /// Leaves a marked token to be settled with others, by one fence; unless
  /// somebody may be waiting for it, or for what it belongs to.
  static func park(
    _ chain: Chain, slot: SlotPointer, _ access: borrowing Access
  ) {
    let registry = access.registry
    let isDue = registry.pointee.lock.locked {
      registry.pointee.parked.append(chain)
      return registry.pointee.parked.count >= parkedLimit
        || registry.isClosing || !registry.isLive(ownerOf: slot)
    }
    Hook.parked.reached(registry.pointee.handle)
    // A waiter that is not seen here sees the parked token.
    cbr_full_fence()
    if isDue || Waiting.isAnyone { settleParked(access) }
  }

  /// Settles what was parked, for somebody who waits for it.
  static func settleParked(_ access: borrowing Access) {
    let registry = access.registry
    let parked = registry.pointee.lock.locked {
      registry.pointee.parked.takeAll()
    }
    if parked.count > 0 { settle(parked, access) }
  }

  /// Brings marked slots to their end, as far as nothing is inside them.
  static func settle(_ marked: Chain, _ access: borrowing Access) {
    var marked = marked
    var claimed = Chain()
    claim(&marked, into: &claimed, thread: access.thread)
    Waiting.wakeAll()  // Model: drain.wake
    Finishing.finish(claimed, access)
  }

  private static func claim(
    _ marked: inout Chain, into claimed: inout Chain, thread: ThreadPointer
  ) {
    Scan.fence()  // Model: end.fence
    Hook.endFenced.reached(Handle.none)
    let snapshot = PinSnapshot(into: thread.scratch)  // Model: end.scan
    Hook.endScanned.reached(Handle.none)
    while let (index, slot) = marked.takeFirst() {
      let handle = Handle.handle(
        ofWord: slot.pointee.word.load(ordering: .relaxed))
      let isQuiet =
        !Handle.isContainer(handle) && !snapshot.contains(handle)
        // After the scan: a lease is counted while its taker still pins.
        && slot.pointee.leases.load(ordering: .sequentiallyConsistent) == 0
      if isQuiet {
        slot.pointee.word.store(
          Handle.destroying(handle), ordering: .releasing)
        claimed.append(index, slot: slot)
        continue
      }
      // Model: end.drain. Now others may claim it.
      slot.pointee.word.store(
        Handle.draining(handle), ordering: .sequentiallyConsistent)
      Hook.endDrained.reached(handle)
      cbr_full_fence()
      if Protocol.claim(slot, handle: handle) {
        claimed.append(index, slot: slot)
      }
    }
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Whether what a slot belongs to is live: its owner, and its signal.
  ///
  /// The lock is held.
  fileprivate func isLive(ownerOf slot: SlotPointer) -> Bool {
    let owner = slot.pointee.owner.load(ordering: .relaxed)
    guard isLive(at: owner) else { return false }
    guard let connection = slot.connection else { return true }
    return isLive(at: Handle.index(of: connection.pointee.signal))
  }

  private func isLive(at index: UInt32) -> Bool {
    let word = Table.knownSlot(at: index).pointee.word.load(
      ordering: .relaxed)
    return Handle.state(ofWord: word) == .live
  }

  /// Marks a handle and all that belongs to it.
  ///
  /// False when it was dead before. The lock is held.
  func mark(
    _ handle: UInt64, slot: SlotPointer, reason: UInt32,
    thread: ThreadPointer, time: UInt64, into chain: inout Chain
  ) -> Bool {
    guard
      markOne(
        Handle.index(of: handle), slot: slot, reason: reason, thread: thread,
        time: time, into: &chain)
    else { return false }
    markBelongings(
      of: chain.first, reason: Reason.ownerDied, thread: thread, time: time,
      into: &chain)
    return true
  }

  /// Forbids new belongings and marks all.
  ///
  /// False when that was done before. The registry itself stays live until
  /// nothing belongs to it.
  fileprivate func beginClosing(
    _ chain: inout Chain, reason: UInt32, thread: ThreadPointer, time: UInt64
  ) -> Bool {
    guard !isClosing else { return false }
    let slot = Table.knownSlot(at: index)
    slot.pointee.mode.bitwiseOr(Mode.closing, ordering: .relaxed)
    noteEnd(of: index, reason: reason, thread: thread, time: time)
    markChildren(
      of: index, reason: Reason.registryClosed, thread: thread, time: time,
      into: &chain)
    markBelongings(
      of: chain.first, reason: Reason.registryClosed, thread: thread,
      time: time, into: &chain)
    return true
  }

  private func noteEnd(
    of index: UInt32, reason: UInt32, thread: ThreadPointer, time: UInt64
  ) {
    let detail = Table.knownDetail(at: index)
    detail.pointee.endReason.store(reason, ordering: .relaxed)
    detail.pointee.endedTime = time
    detail.pointee.endedThread = thread.pointee.number.load(ordering: .relaxed)
  }

  /// Marks the children of every owner in the chain, which grows by them.
  private func markBelongings(
    of first: UInt32, reason: UInt32, thread: ThreadPointer, time: UInt64,
    into chain: inout Chain
  ) {
    var index = first
    while index != Slot.noIndex {
      let slot = Table.knownSlot(at: index)
      let word = slot.pointee.word.load(ordering: .relaxed)
      switch Handle.kind(of: word) {
      case .owner:
        forgetObject(ofOwner: index)
        markChildren(
          of: index, reason: reason, thread: thread, time: time, into: &chain)
      case .session, .task:
        markChildren(
          of: index, reason: reason, thread: thread, time: time, into: &chain)
      case .signal:
        markChildren(
          of: index, reason: reason, thread: thread, time: time, into: &chain)
        markConnections(
          of: slot, thread: thread, time: time, into: &chain)
      default: break
      }
      index = slot.pointee.chain
    }
  }

  private func markChildren(
    of parent: UInt32, reason: UInt32, thread: ThreadPointer, time: UInt64,
    into chain: inout Chain
  ) {
    var child = Table.knownDetail(at: parent).pointee.link.load(
      ordering: .relaxed)
    while child != Slot.noIndex {
      let slot = Table.knownSlot(at: child)
      _ = markOne(
        child, slot: slot, reason: reason, thread: thread, time: time,
        into: &chain)
      child = slot.pointee.next
    }
  }

  /// A signal's connections end with it, whoever they belong to.
  private func markConnections(
    of signal: SlotPointer, thread: ThreadPointer, time: UInt64,
    into chain: inout Chain
  ) {
    var each = signal.signalRecord?.pointee.first
    while let connection = each {
      let index = connection.pointee.index
      _ = markOne(
        index, slot: Table.knownSlot(at: index), reason: Reason.ownerDied,
        thread: thread, time: time, into: &chain)
      each = connection.pointee.next
    }
  }

  /// Model: end.mark.
  func markOne(
    _ index: UInt32, slot: SlotPointer, reason: UInt32,
    thread: ThreadPointer, time: UInt64, into chain: inout Chain
  ) -> Bool {
    let word = slot.pointee.word.load(ordering: .relaxed)
    guard Handle.state(ofWord: word) == .live else { return false }
    // Before the mark: whoever is refused because of it can tell why.
    noteEnd(of: index, reason: reason, thread: thread, time: time)
    let (isMarked, _) = slot.pointee.word.compareExchange(
      expected: word, desired: Handle.dying(word),
      ordering: .sequentiallyConsistent)
    guard isMarked else { return false }
    pointee.live.change(Handle.kind(of: word), by: -1)
    chain.append(index, slot: slot)
    switch Handle.kind(of: word) {
    case .token:
      pointee.ended += 1
      clearHolders(of: word, slot: slot, reason: reason, into: &chain)
    case .slot: letGo(slot)
    case .queue: slot.queueRecord?.stop()
    case .session, .task, .reply:
      guard let record = slot.recordHeader else { break }
      // Until its step has been run.
      Protocol.addLease(slot, handle: word)
      chain.ended.append(record)
    default: break
    }
    return true
  }

  /// Records the end of each slot of a chain that is the caller's, with a time
  /// at which no call could begin any more (A2).
  func recordEnded(_ chain: Chain, thread: ThreadPointer) {
    // Taken only if there is something to record: it fences.
    var stamp: UInt64?
    var index = chain.first
    while index != Slot.noIndex {
      let slot = Table.knownSlot(at: index)
      let handle = Handle.handle(
        ofWord: slot.pointee.word.load(ordering: .relaxed))
      if slot.isKnownToHistory {
        let time = stamp ?? Ticks.afterEffects
        stamp = time
        let detail = Table.knownDetail(at: index)
        record(
          .ended, handle,
          argument: detail.pointee.endReason.load(ordering: .relaxed),
          time: time, thread: thread)
      }
      index = slot.pointee.chain
    }
  }
}

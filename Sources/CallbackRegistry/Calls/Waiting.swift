// SPDX-License-Identifier: Apache-2.0
//
// Waiting until a dead handle is quiescent. A waiter adds itself to `waiters`
// and fences before it looks; whoever changes something that a waiter may be
// looking at fences, and wakes when `waiters` is not zero. So either the waiter
// sees the change, or it is woken.
//
// Who waits for whom is found by the pins: a waiting thread keeps all its
// pins, so the pins of waiting threads are stable while the monitor is held.
// A thread is inside a handle when it pins that handle or anything that
// belongs to it; running a destroy counts as being inside (Finishing.swift
// pins the slot for that time), and so does having claimed a slot whose turn
// comes after a destroy that is running. A ring of threads, each waiting for a
// handle that the next one is inside, would wait for ever: the one that closes
// the ring finds it before it sleeps (G15).
//
// A waiter that is inside what it waits for is done when nobody else is. It
// asks for that by the pins of others: so it fences heavily first, and a pin
// that it sees then is cleared by a thread that finds the handle ended, and
// wakes. Between claiming a slot and running its destroy a thread pins
// nothing: `isOwn` looks at what is left of a container (Remaining.swift).
// Tried to break by: Tests/Model (waiting.pml), Tests/C (waiting.c, rings.c,
// destroying.c).

import CPlatform
import Synchronization

package enum Waiting {
  /// Wakes every waiter, after a change that a fence has made visible.
  @inline(__always)
  package static func wakeAll() {
    if isAnyone { wakeWaiters() }
  }

  @inline(never)
  private static func wakeWaiters() {
    Monitor.waiting.locked { Monitor.waiting.wake() }
  }

  /// How a wait ended.
  package enum Outcome {
    /// The handle is free: nothing is running, every destroy has returned.
    case quiescent
    /// Nothing is running but what the waiting thread is inside.
    case deferred
    case wouldDeadlock(WaitRing)
    case timeout(inside: UInt64, thread: UInt32)
  }

  /// Says that the calling thread is about to look, and to wait.
  ///
  /// From here on whoever parks a slot settles it at once.
  package static func begin() {
    ProcessState.shared.pointee.waiters.wrappingAdd(
      1, ordering: .sequentiallyConsistent)  // Model: wait.begin
    cbr_full_fence()
  }

  package static func end() {
    ProcessState.shared.pointee.waiters.wrappingSubtract(
      1, ordering: .relaxed)
  }

  /// Whether somebody waits, seen after a full fence.
  package static var isAnyone: Bool {
    ProcessState.shared.pointee.waiters.load(
      ordering: .sequentiallyConsistent) != 0
  }

  /// Waits until a dead handle is quiescent, after `begin`.
  ///
  /// `isOwn` tells, of a handle that the thread is inside and no other one
  /// pins, whether all that is left of it is the thread's own.
  package static func wait(
    for handle: UInt64, thread: ThreadPointer, until deadline: Deadline,
    isOwn: () -> Bool
  ) -> Outcome {
    let isInside =
      thread.isInsideWaiting(handle) || thread.isEnding(inside: handle)
    if isInside { Scan.fence() }
    Hook.waitBegan.reached(handle)
    return Monitor.waiting.locked {
      thread.pointee.waitingFor = handle
      defer { thread.pointee.waitingFor = Handle.none }
      var isOver = false
      while true {
        if isFree(handle) { return .quiescent }
        let other = firstInside(handle, but: thread)
        if isInside, other == nil, isOwn() { return .deferred }
        if let ring = findRing(from: handle, to: thread) { return ring }
        if isOver || deadline.hasPassed {
          return .timeout(
            inside: other?.handle ?? handle, thread: other?.thread ?? 0)
        }
        isOver = !Monitor.waiting.wait(until: deadline)
        Hook.waitWoken.reached(handle)
      }
    }
  }

  /// Says that the calling thread is about to wait for room in a queue, and has
  /// seen that it was made so often.
  ///
  /// Returns the ring of waiting threads that this would close: then it must
  /// not. A thread that is inside the queue delivers what would make room.
  package static func beginWaiting(
    forRoomIn queue: UInt64, since room: UInt64, thread: ThreadPointer
  ) -> WaitRing? {
    Monitor.waiting.locked {
      if thread.isInside(queue) { return WaitRing() }
      thread.pointee.waitingFor = queue
      thread.pointee.waitingSince = room
      guard case .wouldDeadlock(let ring) = findRing(from: queue, to: thread)
      else { return nil }
      thread.pointee.waitingFor = Handle.none
      thread.pointee.waitingSince = nil
      return ring
    }
  }

  package static func endWaiting(_ thread: ThreadPointer) {
    Monitor.waiting.locked {
      thread.pointee.waitingFor = Handle.none
      thread.pointee.waitingSince = nil
    }
  }

  /// Whether a handle's slot no longer is the handle's, in any state.
  package static func isFree(_ handle: UInt64) -> Bool {
    guard let slot = Table.slot(of: handle) else { return true }
    let word = slot.pointee.word.load(ordering: .sequentiallyConsistent)
    return Handle.handle(ofWord: word) != handle
  }

  private static func firstInside(
    _ handle: UInt64, but waiter: ThreadPointer
  ) -> (handle: UInt64, thread: UInt32)? {
    var thread = ThreadPointer.first
    while let each = thread {
      if each != waiter, let pin = each.pinInside(handle) {
        return (pin, each.pointee.number.load(ordering: .relaxed))
      }
      thread = each.next
    }
    return nil
  }

  /// Searches the waiting threads, from those inside the handle on, for one
  /// that waits for something that `waiter` is inside.
  private static func findRing(
    from handle: UInt64, to waiter: ThreadPointer
  ) -> Outcome? {
    // Each search marks the threads that it reached with a number of its own.
    waiter.pointee.visit &+= 1
    let visit =
      UInt64(waiter.pointee.number.load(ordering: .relaxed)) << 32
      | waiter.pointee.visit & 0xFFFF_FFFF
    while let next = unvisited(from: handle, visit: visit, but: waiter) {
      next.pointee.visit = visit
      if waiter.isInsideWaiting(next.pointee.waitingFor) {
        return .wouldDeadlock(WaitRing(endingWith: next))
      }
    }
    return nil
  }

  /// A waiting thread that the search reaches and has not yet visited.
  private static func unvisited(
    from handle: UInt64, visit: UInt64, but waiter: ThreadPointer
  ) -> ThreadPointer? {
    var thread = ThreadPointer.first
    while let each = thread {
      if each != waiter, each.isWaiting, each.pointee.visit != visit,
        isReached(each, from: handle, visit: visit, but: waiter)
      {
        return each
      }
      thread = each.next
    }
    return nil
  }

  /// Whether a thread is inside the handle, or inside what a visited thread
  /// waits for, which it then notes.
  private static func isReached(
    _ thread: ThreadPointer, from handle: UInt64, visit: UInt64,
    but waiter: ThreadPointer
  ) -> Bool {
    thread.pointee.reachedFrom = nil
    if thread.isInsideWaiting(handle) { return true }
    var other = ThreadPointer.first
    while let each = other {
      if each != waiter, each != thread, each.pointee.visit == visit,
        each.pointee.waitingFor != Handle.none,
        thread.isInsideWaiting(each.pointee.waitingFor)
      {
        thread.pointee.reachedFrom = each
        return true
      }
      other = each.next
    }
    return false
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// Whether the thread waits, and is not about to find that it need not: with
  /// the monitor held.
  fileprivate var isWaiting: Bool {
    guard pointee.waitingFor != Handle.none else { return false }
    guard let room = pointee.waitingSince else { return true }
    // Its lease keeps the queue.
    return Table.knownDetail(at: Handle.index(of: pointee.waitingFor))
      .pointee.attempts.load(ordering: .sequentiallyConsistent) == room
  }

  /// Whether the thread is inside a handle or anything that belongs to it.
  package func isInside(_ handle: UInt64) -> Bool {
    pinInside(handle) != nil
  }

  /// The same of a waiting thread, with the monitor held, or of the calling
  /// one: what it has claimed and will finish when it goes on counts, too.
  fileprivate func isInsideWaiting(_ handle: UInt64) -> Bool {
    isInside(handle) || countClaimed(inside: handle, atMost: 1) > 0
  }

  /// Whether the calling thread has ended a session or task inside a handle,
  /// and is yet to tell of it.
  fileprivate func isEnding(inside handle: UInt64) -> Bool {
    var each = pointee.ended
    while let record = each {
      if Belonging.isInside(record.pointee.handle, handle) { return true }
      each = record.pointee.next
    }
    return false
  }

  /// How many slots inside a handle the thread has claimed: those whose
  /// destroy it runs, and those whose turn comes after one of them.
  package func countClaimed(
    inside handle: UInt64, atMost limit: Int = .max
  ) -> Int {
    var count = 0
    visitPins { pin in
      guard let slot = Table.slot(of: pin) else { return true }
      let word = slot.pointee.word.load(ordering: .acquiring)
      var index = Handle.index(of: pin)
      if Handle.kind(of: pin) == .queue, word != Handle.destroying(pin) {
        // What was handed over to the queue in which the thread delivers.
        index = Table.knownDetail(at: index).pointee.link.load(
          ordering: .acquiring)
      } else if word != Handle.destroying(pin) {
        return true
      }
      while index != Slot.noIndex, count < limit {
        let slot = Table.knownSlot(at: index)
        let claimed = Handle.handle(
          ofWord: slot.pointee.word.load(ordering: .relaxed))
        if Belonging.isInside(claimed, handle) { count += 1 }
        index = slot.pointee.chain
      }
      return count < limit
    }
    return count
  }

  /// Whether the calling thread pins exactly this handle.
  package func isPinned(_ handle: UInt64) -> Bool {
    !visitPins { $0 != handle }
  }

  /// The first such pin.
  package func pinInside(_ handle: UInt64) -> UInt64? {
    var found: UInt64?
    visitPins { pin in
      if Belonging.isInside(pin, handle) { found = pin }
      return found == nil
    }
    return found
  }
}

/// What belongs to what.
package enum Belonging {
  /// Whether a pinned handle is `container` or belongs to it at any distance.
  ///
  /// A connection belongs to its signal too. The pin keeps the owners above it
  /// from being freed; without one the answer is of no meaning, but harmless.
  package static func isInside(_ handle: UInt64, _ container: UInt64) -> Bool {
    if isInTree(handle, of: container) { return true }
    guard Handle.isContainer(container), let signal = signal(of: handle)
    else { return false }
    return isInTree(signal, of: container)
  }

  /// The signal of a connection.
  private static func signal(of handle: UInt64) -> UInt64? {
    guard Handle.kind(of: handle) == .token,
      let slot = Table.slot(of: handle),
      slot.pointee.mode.load(ordering: .relaxed) & Mode.connection != 0
    else { return nil }
    return Table.knownDetail(at: Handle.index(of: handle)).pointee.typeTag
  }

  /// The same by owners alone.
  package static func isInTree(
    _ handle: UInt64, of container: UInt64
  ) -> Bool {
    if handle == container { return true }
    guard Handle.isContainer(container) else { return false }
    let top = Handle.index(of: container)
    var index = Handle.index(of: handle)
    guard isPresent(handle) else { return false }
    // Owners form a tree: a path is never longer than the table.
    var steps: UInt32 = 0
    while index != top, steps < Handle.slotLimit {
      guard let slot = Table.slot(at: index) else { return false }
      index = slot.pointee.owner.load(ordering: .relaxed)
      guard index != Slot.noIndex else { return false }
      steps += 1
    }
    return index == top && isPresent(container)
  }

  private static func isPresent(_ handle: UInt64) -> Bool {
    guard let slot = Table.slot(of: handle) else { return false }
    let word = slot.pointee.word.load(ordering: .acquiring)
    return Handle.handle(ofWord: word) == handle
  }
}

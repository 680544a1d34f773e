// SPDX-License-Identifier: Apache-2.0
//
// What is to be done on a queue besides its messages, and outside of its bounds:
// destroys, sessions that have something to deliver, and alarms (Alarms.swift).
//
// Destroys that are to run on a queue (G7). Whoever claims such a token hands
// its slot, which is destroying and nobody else's, over to the queue: it becomes
// the first of a stack, linked through `chain`, whose top is the `link` of the
// queue's slot. The delivering thread takes all of them at once, and finishes
// them like its own. What is ended while the queue is dead, and what is left
// when it ends, is finished by the thread that is there.
//
// link of a queue's slot: compare-and-swapped (releasing) by who hands over, and
// holds a pin on the live queue; exchanged (acquiring) by who delivers, or has
// claimed the queue. A thread that waits, and pins a queue in which it delivers,
// is inside what is handed over to that (Waiting.swift).
// Tried to break by: Tests/C (errands.c).

import CPlatform
import Synchronization

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Hands a claimed token over to the queue on which its destroy is to run.
  ///
  /// False when that is dead, or this is where it was handed over to.
  func handOver(
    _ token: UInt64, slot: SlotPointer, thread: ThreadPointer
  ) -> Bool {
    let queue: UInt64? = pointee.lock.locked {
      let queue = pointee.errandQueues[token]
      pointee.errandQueues.remove(token)
      return queue
    }
    guard let queue, let queueSlot = Table.slot(of: queue),
      let pin = thread.pinSpare(queue)
    else { return false }
    cbr_light_fence()
    let isLive = queueSlot.pointee.word.load(ordering: .acquiring) == queue
    if isLive, let record = queueSlot.queueRecord {
      record.pushErrand(Handle.index(of: token), slot: slot)
    }
    Entering.withdraw(pin, queue, thread: thread)
    return isLive
  }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  private var top: SlotDetailPointer {
    Table.knownDetail(at: Handle.index(of: pointee.handle))
  }

  package var hasErrands: Bool { hasDestroys || hasWanted || hasDueAlarm }

  /// None before it has a handle: its thread may be there earlier.
  private var hasDestroys: Bool {
    pointee.handle != Handle.none
      && top.pointee.link.load(ordering: .relaxed) != Slot.noIndex
  }

  private var hasWanted: Bool {
    pointee.isWanted.load(ordering: .relaxed)
  }

  /// Adds a record that is to be delivered for, and wakes who delivers.
  package func add(wanted record: RecordHeaderPointer) {
    pointee.monitor.locked {
      pointee.wanted.append(record)
      pointee.isWanted.store(true, ordering: .relaxed)
      wakeConsumer()
    }
  }

  /// How many of these there are.
  package var wantedCount: Int {
    hasWanted ? pointee.monitor.locked { pointee.wanted.count } : 0
  }

  /// Takes what is to be done for the first one of these.
  package func takeWanted() -> (handle: UInt64, step: HandleStep)? {
    guard hasWanted else { return nil }
    return pointee.monitor.locked {
      let taken = pointee.wanted.takeFirst()
      pointee.isWanted.store(!pointee.wanted.isEmpty, ordering: .relaxed)
      guard let taken, let step = taken.pointee.wanted else { return nil }
      return (taken.pointee.handle, step)
    }
  }

  /// Adds an errand, and wakes who delivers.
  fileprivate func pushErrand(_ index: UInt32, slot: SlotPointer) {
    var first = top.pointee.link.load(ordering: .relaxed)
    while true {
      slot.pointee.chain = first
      let (isDone, present) = top.pointee.link.compareExchange(
        expected: first, desired: index, ordering: .releasing)
      if isDone { break }
      first = present
    }
    pointee.monitor.locked { wakeConsumer() }
  }

  /// Takes all errands, in the order in which they came.
  package func takeErrands() -> Chain {
    var errands = Chain()
    guard hasDestroys else { return errands }
    let first = top.pointee.link.exchange(Slot.noIndex, ordering: .acquiring)
    var former = Slot.noIndex
    var index = first
    while index != Slot.noIndex {
      let slot = Table.knownSlot(at: index)
      let next = slot.pointee.chain
      slot.pointee.chain = former
      former = index
      index = next
    }
    while former != Slot.noIndex {
      let slot = Table.knownSlot(at: former)
      let next = slot.pointee.chain
      errands.append(former, slot: slot)
      former = next
    }
    return errands
  }

  /// Only who sleeps is woken.
  ///
  /// The monitor is held.
  package func wakeConsumer() {
    if let wakeup = pointee.wakeup {
      guard !pointee.isReadable else { return }
      pointee.isReadable = true
      cbr_wakeup_set(wakeup)
    } else if pointee.isAsleep {
      pointee.isAsleep = false
      pointee.monitor.wake()
    }
  }
}

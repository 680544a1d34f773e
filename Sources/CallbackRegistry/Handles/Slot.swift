// SPDX-License-Identifier: Apache-2.0
//
// What one handle names. A slot is 64 bytes that a call touches and 56 that
// only registering, ending and looking touch. Slots never move and are never
// given back to the system, so that any thread may look at any of them at any
// time; what a slot means is decided by its word.
//
// Shared variables
//   word      who changes it, and from what to what: Calls/Protocol.swift
//   leases    leasers add and drop (sequentially consistent); whoever would
//             destroy loads, after its scan of the pins
//   mode      registering stores before the word is published; switching the
//             level changes it under the registry's lock; a call loads it
//             (relaxed) and acts on any value it had
//   link      a container's first child (written under the registry's lock),
//             a token's calls in flight that were counted elsewhere, or the
//             last of a queue's errands (Registry/Errands.swift)
//   attempts  added to by whoever moves counts out of a thread's cells; of a
//             slot or signal stored (releasing) under the registry's lock, of
//             a queue under that of the queue
//   function, context, destroy, body, ...: plain; written before the word is
//             published (releasing), read between a successful enter and its
//             leave, or under the registry's lock
//   owner, tag: stored under the registry's lock; loaded (relaxed) by whoever
//             asks what a pinned handle belongs to, when it may be pinned no
//             longer
//   next, previous: guarded by the registry's lock
//   chain     belongs to the one thread that marked the slot dying, until it
//             marks it draining; or, while parked, to the registry's lock

import Synchronization

package typealias Destroy =
  @convention(c) (UnsafeMutableRawPointer?) -> Void

package struct Slot: ~Copyable {
  package let word: Atomic<UInt64>
  package var function: UnsafeRawPointer?
  package var context: UnsafeMutableRawPointer?
  package let leases = Atomic<UInt32>(0)
  package let mode = Atomic<UInt32>(0)
  package var destroy: Destroy?
  /// A registry's, signal's, queue's or thunk's record, a list's connections, the token
  /// that observes a slot, or a token's interface, type tag or connection.
  package var body: UnsafeMutableRawPointer?
  package let owner = Atomic<UInt32>(Slot.noIndex)
  package var next: UInt32 = Slot.noIndex
  package var previous: UInt32 = Slot.noIndex
  package var chain: UInt32 = Slot.noIndex

  package init(freeWord: UInt64) { word = Atomic(freeWord) }

  /// No slot: the index of the table's last slot, which is never given out.
  package static let noIndex: UInt32 = Handle.slotLimit - 1
}

package struct SlotDetail: ~Copyable {
  private let tag = Atomic<UInt64>(0)
  package var registeredTime: UInt64 = 0
  package var endedTime: UInt64 = 0
  /// A token's calls that were counted elsewhere, the token that a slot holds,
  /// a signal's list, or how often a queue has made room for posters.
  package let attempts = Atomic<UInt64>(0)
  package var callback: UInt32 = 0
  package var site: UInt32 = 0
  package var registeredThread: UInt32 = 0
  package var endedThread: UInt32 = 0
  package let endReason = Atomic<UInt32>(0)
  package let link = Atomic<UInt32>(Slot.noIndex)

  package init() {}

  /// A token's type tag, the signal of a connection, the address of an owner's
  /// object, or the token that a lease holds or a thunk calls.
  package var typeTag: UInt64 {
    get { tag.load(ordering: .relaxed) }
    nonmutating set { tag.store(newValue, ordering: .relaxed) }
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// The type tag of a tagged token, where a call can read it at no cost.
  @inline(__always)
  package var typeTag: UInt64 {
    get { UInt64(UInt(bitPattern: pointee.body)) }
    nonmutating set {
      pointee.body = UnsafeMutableRawPointer(bitPattern: UInt(newValue))
    }
  }
}

package typealias SlotPointer = UnsafeMutablePointer<Slot>
package typealias SlotDetailPointer = UnsafeMutablePointer<SlotDetail>

/// What a call has to heed before it may begin.
package enum Mode {
  /// Calls are counted in the calling thread's cells.
  package static let counted: UInt32 = 1
  /// Calls are recorded one by one, with their times.
  package static let timed: UInt32 = 2
  package static let oneShot: UInt32 = 4
  package static let threadBound: UInt32 = 8
  package static let interface: UInt32 = 16
  package static let tagged: UInt32 = 32
  /// Not a token.
  package static let notCallable: UInt32 = 64
  /// The level was chosen for this token, not inherited.
  package static let ownLevel: UInt32 = 128
  /// Calls were counted at some time, so cells may know the token.
  package static let wasCounted: UInt32 = 256
  /// Of a registry: its end has begun.
  ///
  /// Its word stays live until nothing belongs to it any more, so that late
  /// callers are still recorded.
  package static let closing: UInt32 = 512
  /// The level was switched since the handle was given out.
  package static let switched: UInt32 = 1024
  /// A token that slots hold.
  package static let held: UInt32 = 2048
  /// A token that its signal calls.
  package static let connection: UInt32 = 4096
  /// A signal or connection that is not called for the time being.
  package static let blocked: UInt32 = 8192
  /// A token whose destroy is to run on a queue.
  package static let destroyedOnQueue: UInt32 = 16384
  /// A connection that is called on a queue.
  package static let queued: UInt32 = 32768

  /// What the short path of a call can do.
  package static let plain =
    counted | wasCounted | ownLevel | switched | held | destroyedOnQueue

  package static let levelMask = counted | timed
}

/// How much is written to the history.
///
/// The values are those of `CBR_LEVEL_...`.
package enum Level: UInt32 {
  case off = 1
  case lifecycle = 2
  case calls = 3

  package var mode: UInt32 {
    switch self {
    case .off: 0
    case .lifecycle: Mode.counted | Mode.wasCounted
    case .calls: Mode.counted | Mode.timed | Mode.wasCounted
    }
  }

  package init(mode: UInt32) {
    self =
      mode & Mode.timed != 0
      ? .calls : mode & Mode.counted != 0 ? .lifecycle : .off
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// How calls and endings meet. The steps are those of Tests/Model, which checks
// them exhaustively; each is named beside its atomic operation.
//
// slot.word, and who changes it
//   free -> live            the registering thread, when all fields are
//                           written (releasing)
//   live -> dying           any ender, or the entering thread of a one-shot;
//                           compare-and-swap, the loser is told ALREADY
//   dying -> destroying     the thread that marked it, after its fence and
//                           scan found no pin, no lease and no child
//   dying -> draining       the same thread otherwise (sequentially consistent)
//   draining -> destroying  whoever finds nothing left; compare-and-swap, the
//                           one winner goes on
//   destroying -> free      that winner, under the registry's lock
//
// enter   pin := token; light fence; load the word (acquiring); it must be the
//         token
// leave   pin := 0; light fence; load the word; not the token: `departed`
//
// Why no call runs into a destroyed context: if the ender's scan misses a pin,
// the pin's store was not visible when the heavy fence ran, so the check that
// follows it comes after the mark, and refuses. If the scan sees the pin, the
// slot is drained, and whoever clears its pin last finds `draining` in
// `departed`, or the ender's second scan finds no pin.

import CPlatform
import Synchronization

/// A call in flight.
///
/// Its layout is that of `cbr_call`.
package struct CallRecord {
  package var function: UnsafeRawPointer?
  package var context: UnsafeMutableRawPointer?
  package var token: UInt64
  package var disposition: Int64
  /// The depth of its pin, and what is to be accounted for (`Mode`) above it.
  package var pin: UInt64
  /// When it began, in ticks.
  package var began: UInt64
  /// The stamp of its pin's cell.
  package var stamp: UInt64

  package static var empty: CallRecord {
    CallRecord(
      function: nil, context: nil, token: 0, disposition: 0, pin: 0, began: 0,
      stamp: 0)
  }

  /// The pin of an outermost call that is counted and not timed.
  static let outermostCounted = UInt64(Mode.counted) << 32

  @inline(__always) package var depth: UInt32 {
    UInt32(truncatingIfNeeded: pin)
  }
  @inline(__always) package var mode: UInt32 {
    UInt32(truncatingIfNeeded: pin >> 32)
  }
}

package typealias CallPointer = UnsafeMutablePointer<CallRecord>

/// What a thread that cleared a pin has to do next.
package enum Departure {
  case done
  /// It won the slot, whose word is `destroying`: it must finish it.
  case claimed
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Itself, loaded through only after the time stamp was taken.
  @inline(__always)
  package func after(ticks: UInt64) -> SlotPointer {
    SlotPointer(
      mutating: cbr_after_ticks(self, ticks)
        .assumingMemoryBound(to: Slot.self))
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  /// Counts an attempt that has succeeded, and fills the caller's record.
  @inline(__always)
  package func begin(
    _ call: CallPointer, token: UInt64, slot: SlotPointer, pin: UInt32,
    mode: UInt32, began: UInt64
  ) {
    if mode & Mode.counted != 0 {
      let cell = countingCell(of: token)
      cell.countAttempt()
      cell.begin(at: pin, token: token, began: began)
    }
    call.pointee.function = slot.pointee.function
    call.pointee.context = slot.pointee.context
    call.pointee.token = token
    call.pointee.disposition = 0
    call.pointee.pin = UInt64(pin) | UInt64(mode & Mode.levelMask) << 32
    call.pointee.began = began
    call.pointee.stamp = ownStamp(pin)
  }

  /// The calling thread's cell, made the token's if it is another's.
  @inline(__always)
  package func countingCell(of token: UInt64) -> CallCellPointer {
    let cell = cell(of: token)
    if cell.pointee.token.load(ordering: .relaxed) != token {
      changeCell(cell, to: token)
    }
    return cell
  }

  /// Whether the record is of a call that this thread is inside.
  @inline(__always)
  package func isInside(_ call: CallPointer) -> Bool {
    let token = call.pointee.token
    let depth = call.pointee.depth
    return token != Handle.none && ownPin(depth) == token
      && ownStamp(depth) == call.pointee.stamp
  }

  /// Ends a call that `isInside`: accounts for it, clears its pin, and looks
  /// whether the token has died meanwhile.
  @inline(__always)
  package func leave(_ call: CallPointer) -> Departure {
    let token = call.pointee.token
    let mode = call.pointee.mode
    if mode != 0 {
      finish(
        token: token, at: call.pointee.depth, mode: mode,
        began: call.pointee.began)
    }
    call.pointee.token = Handle.none
    call.pointee.function = nil
    return withdraw(call.pointee.depth, handle: token)
  }

  /// Accounts for a call that is over but still pinned.
  ///
  /// It is in flight until it is about to be recorded, and never both.
  @inline(__always)
  private func finish(
    token: UInt64, at depth: UInt32, mode: UInt32, began: UInt64
  ) {
    let cell = countingCell(of: token)
    cell.countFinished()
    cell.end(at: depth)
    guard mode & Mode.timed != 0 else { return }
    let ended = Ticks.now
    let chunk = Table.chunk(at: Handle.index(of: token)).unsafelyUnwrapped
    guard let recorder = chunk.pointee.recorder, let ring = ring(of: recorder)
    else { return }
    recorder.recordCall(in: ring, token: token, began: began, ended: ended)
  }

  /// Clears a pin and looks whether its slot died meanwhile.
  ///
  /// The refusing path must do so too: a scan may have seen its short-lived
  /// pin.
  @inline(__always)
  package func withdraw(_ index: UInt32, handle: UInt64) -> Departure {
    unpin(index)  // Model: leave.clear
    Hook.leaveCleared.reached(handle)
    cbr_light_fence()
    guard let slot = Table.slot(of: handle) else { return .done }
    // Model: leave.check
    let word = slot.pointee.word.load(ordering: .acquiring)
    Hook.leaveChecked.reached(handle)
    return word == handle
      ? .done : Protocol.departed(from: slot, handle: handle)
  }
}

package enum Protocol {
  /// The slow path of leaving: the word is not the handle.
  @inline(never)
  package static func departed(
    from slot: SlotPointer, handle: UInt64
  ) -> Departure {
    cbr_full_fence()
    Waiting.wakeAll()
    let word = slot.pointee.word.load(ordering: .acquiring)
    guard word == Handle.draining(handle) else { return .done }
    return claim(slot, handle: handle) ? .claimed : .done
  }

  /// Tries to destroy a draining slot.
  ///
  /// True for the one thread that wins it.
  package static func claim(_ slot: SlotPointer, handle: UInt64) -> Bool {
    // Model: try.scan, before try.leases: a lease is counted while its taker
    // still pins the token.
    guard !Scan.isPinned(handle) else { return false }
    Hook.tryScanned.reached(handle)
    // Model: try.leases
    guard slot.pointee.leases.load(ordering: .sequentiallyConsistent) == 0,
      !hasChildren(handle)
    else { return false }
    // Model: try.claim
    let (isClaimed, _) = slot.pointee.word.compareExchange(
      expected: Handle.draining(handle), desired: Handle.destroying(handle),
      ordering: .sequentiallyConsistent)
    if isClaimed { Hook.tryClaimed.reached(handle) }
    return isClaimed
  }

  /// Whether something still belongs to a registry or owner.
  package static func hasChildren(_ handle: UInt64) -> Bool {
    guard Handle.isContainer(handle) else { return false }
    let detail = Table.knownDetail(at: Handle.index(of: handle))
    return detail.pointee.link.load(ordering: .sequentiallyConsistent)
      != Slot.noIndex
  }

  /// Adds a lease to a token that the calling thread pins and has checked.
  package static func addLease(_ slot: SlotPointer, handle: UInt64) {
    // Model: lease.add
    slot.pointee.leases.wrappingAdd(1, ordering: .sequentiallyConsistent)
    Hook.leaseAdded.reached(handle)
  }

  /// Drops a lease.
  package static func dropLease(
    _ slot: SlotPointer, handle: UInt64
  ) -> Departure {
    // Model: lease.drop
    slot.pointee.leases.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    Hook.leaseDropped.reached(handle)
    let word = slot.pointee.word.load(ordering: .sequentiallyConsistent)
    return word == handle ? .done : departed(from: slot, handle: handle)
  }
}

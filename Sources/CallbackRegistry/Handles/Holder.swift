// SPDX-License-Identifier: Apache-2.0

/// That a slot holds a token, or that a session or task has it for a delegate.
///
/// It is in the list of what holds that token, under the registry's lock, until
/// the slot gets another token; or, when the token dies, until the slot's
/// clearing has been told.
package struct Holder {
  package var slot = Handle.none
  package let token: UInt64
  /// The token that is told when the slot is cleared.
  package var observer: UInt64 = 0
  package var reason: UInt32 = 0
  /// What there is to do besides when the token dies.
  package let step: HandleStep?
  /// Whether the history knows the slot.
  package var isTold = false
  package var previous: HolderPointer?
  package var next: HolderPointer?

  package init(token: UInt64, step: HandleStep? = nil) {
    self.token = token
    self.step = step
  }
}

package typealias HolderPointer = UnsafeMutablePointer<Holder>

/// Holders that the thread which ended their tokens has yet to tell of.
package typealias ClearedSlots = LinkedQueue<ClearedLink>

package enum ClearedLink: Link {
  package static func next(of holder: HolderPointer) -> HolderPointer? {
    holder.pointee.next
  }

  package static func set(_ next: HolderPointer?, of holder: HolderPointer) {
    holder.pointee.next = next
  }
}

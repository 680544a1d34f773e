// SPDX-License-Identifier: Apache-2.0

/// What a handle names.
///
/// The values are those of `cbr_kind`; 0 marks a free slot, and 4 bits hold
/// them all.
package enum HandleKind: UInt8 {
  case registry = 1
  case token = 2
  case owner = 3
  case lease = 4
  case slot = 5
  case signal = 6
  case queue = 7
  case session = 8
  case task = 9
  case reply = 10
  case thunk = 11
  /// A signal's connections at one time; never given out.
  case list = 15
}

extension HandleKind {
  package var name: StaticString {
    switch self {
    case .registry: "registry"
    case .token: "token"
    case .owner: "owner"
    case .lease: "lease"
    case .slot: "slot"
    case .signal: "signal"
    case .queue: "queue"
    case .session: "session"
    case .task: "task"
    case .reply: "reply"
    case .thunk: "thunk"
    case .list: "list"
    }
  }
}

/// The life of a slot, in the two lowest bits of its word.
///
/// A handle has the bits of `live`, so that a live slot's word is its handle.
package enum SlotState: UInt64 {
  case live = 0
  /// Marked: no new call enters.
  ///
  /// Its ender has yet to look for calls.
  case dying = 1
  /// Its ender has fenced: whoever leaves last destroys.
  case draining = 2
  /// Claimed by the one thread that destroys it.
  case destroying = 3
}

/// A 64-bit name.
///
///     generation 32 | index 26 | kind 4 | state 2
///
/// The state bits of a handle are zero; a slot's word is the handle with the
/// bits of its state, and the word of a free slot has kind 0. So one compare
/// of a word with a handle checks index, kind, generation and liveness. Zero
/// has no kind, and all-ones has a state and an unknown kind: neither is ever
/// given out.
package enum Handle {
  package static let none: UInt64 = 0
  package static let slotLimit: UInt32 = 1 << 26
  package static let stateMask: UInt64 = 3

  @inline(__always)
  package static func make(
    generation: UInt32, index: UInt32, kind: HandleKind
  ) -> UInt64 {
    UInt64(generation) << 32 | UInt64(index) << 6
      | UInt64(kind.rawValue) << 2
  }

  @inline(__always)
  package static func index(of handle: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: handle >> 6) & (slotLimit &- 1)
  }

  @inline(__always)
  package static func generation(of handle: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: handle >> 32)
  }

  /// Nil for a free slot's word and for numbers that no kind has.
  package static func kind(of handle: UInt64) -> HandleKind? {
    HandleKind(rawValue: UInt8(truncatingIfNeeded: handle >> 2) & 15)
  }

  /// Whether the number has the form of a handle of this kind.
  @inline(__always)
  package static func isOf(_ kind: HandleKind, _ handle: UInt64) -> Bool {
    handle & (kindMask | stateMask) == UInt64(kind.rawValue) << 2
  }

  /// Whether the bits of a handle's or word's kind are of any kind.
  @inline(__always)
  package static func hasKind(_ handle: UInt64) -> Bool {
    handle & kindMask != 0
  }

  private static let kindMask: UInt64 = 15 << 2

  /// Whether kind and state are those of a handle of a kind.
  @inline(__always)
  package static func hasForm(_ handle: UInt64, of kind: HandleKind) -> Bool {
    handle & (kindMask | stateMask) == UInt64(kind.rawValue) << 2
  }

  @inline(__always)
  package static func state(ofWord word: UInt64) -> SlotState {
    SlotState(rawValue: word & stateMask).unsafelyUnwrapped
  }

  /// The handle that a word is about, whatever its state.
  @inline(__always)
  package static func handle(ofWord word: UInt64) -> UInt64 {
    word & ~stateMask
  }

  /// The words of a handle's slot when it is dead.
  @inline(__always)
  package static func dying(_ handle: UInt64) -> UInt64 {
    handle | SlotState.dying.rawValue
  }
  @inline(__always)
  package static func draining(_ handle: UInt64) -> UInt64 {
    handle | SlotState.draining.rawValue
  }
  @inline(__always)
  package static func destroying(_ handle: UInt64) -> UInt64 {
    handle | SlotState.destroying.rawValue
  }

  /// Whether other handles can belong to this one.
  package static func isContainer(_ handle: UInt64) -> Bool {
    switch kind(of: handle) {
    case .registry, .owner, .signal, .session, .task: true
    default: false
    }
  }

  /// Whether the number has the form of a handle.
  package static func isWellFormed(_ handle: UInt64) -> Bool {
    guard handle & stateMask == 0, let kind = kind(of: handle) else {
      return false
    }
    return kind != .list
  }

  /// The word of a free slot that is followed by another one in its queue.
  static func freeWord(generation: UInt32, next: UInt32) -> UInt64 {
    UInt64(generation) << 32 | UInt64(next) << 6
  }
}

// SPDX-License-Identifier: Apache-2.0

/// What an operation answered.
///
/// The values are those of `cbr_status`.
package enum Status: Int32, Error {
  case ok = 0
  case pending = 1
  case deferred = 2
  case already = 3
  case stopped = 4
  case empty = 5
  case invalid = -1
  case stale = -2
  case kind = -3
  case interface = -4
  case unimplemented = -5
  case foreign = -6
  case dying = -7
  case closed = -8
  case full = -9
  case consumed = -10
  case wouldDeadlock = -11
  case timeout = -12
  case depth = -13
  case thread = -14
  case forked = -15
  case noMemory = -16
  case limit = -17
  case audit = -18
  case unsupported = -19
  case user = -1000
}

extension Status {
  /// The name in C.
  package var name: StaticString {
    switch self {
    case .ok: "CBR_OK"
    case .pending: "CBR_PENDING"
    case .deferred: "CBR_DEFERRED"
    case .already: "CBR_ALREADY"
    case .stopped: "CBR_STOPPED"
    case .empty: "CBR_EMPTY"
    case .invalid: "CBR_E_INVALID"
    case .stale: "CBR_E_STALE"
    case .kind: "CBR_E_KIND"
    case .interface: "CBR_E_INTERFACE"
    case .unimplemented: "CBR_E_UNIMPLEMENTED"
    case .foreign: "CBR_E_FOREIGN"
    case .dying: "CBR_E_DYING"
    case .closed: "CBR_E_CLOSED"
    case .full: "CBR_E_FULL"
    case .consumed: "CBR_E_CONSUMED"
    case .wouldDeadlock: "CBR_E_WOULD_DEADLOCK"
    case .timeout: "CBR_E_TIMEOUT"
    case .depth: "CBR_E_DEPTH"
    case .thread: "CBR_E_THREAD"
    case .forked: "CBR_E_FORKED"
    case .noMemory: "CBR_E_NOMEM"
    case .limit: "CBR_E_LIMIT"
    case .audit: "CBR_E_AUDIT"
    case .unsupported: "CBR_E_UNSUPPORTED"
    case .user: "CBR_E_USER"
    }
  }

  /// A sentence for people.
  package var text: StaticString {
    switch self {
    case .ok: "done"
    case .pending: "dead; it finishes where its last call or lease ends"
    case .deferred: "dead; it finishes when the caller's own call unwinds"
    case .already: "it was dead before"
    case .stopped: "a visitor or handler asked to stop"
    case .empty: "the slot holds no token"
    case .invalid: "an argument is wrong"
    case .stale: "the handle is dead, or was never given out"
    case .kind: "the handle is of another kind"
    case .interface: "another interface or type tag"
    case .unimplemented: "the optional method is absent"
    case .foreign: "the handle belongs to another registry"
    case .dying: "the owner's death has begun"
    case .closed: "it, or its registry, has been closed"
    case .full: "a bound is reached"
    case .consumed: "the one-shot was used before"
    case .wouldDeadlock: "waiting would close a ring of waiting threads"
    case .timeout: "the time is over; something is still running"
    case .depth: "nested too deeply"
    case .thread: "not allowed on this thread"
    case .forked: "inherited through fork"
    case .noMemory: "out of memory; nothing changed"
    case .limit: "a limit of the library is reached; nothing changed"
    case .audit: "the history cannot be opened or written"
    case .unsupported: "not possible here"
    case .user: "a status of the program's own"
    }
  }
}

/// Why something ended.
///
/// Values from `user` up are the program's own.
package enum Reason {
  package static let none: UInt32 = 0
  package static let ended: UInt32 = 1
  package static let ownerDied: UInt32 = 2
  package static let objectDied: UInt32 = 3
  package static let registryClosed: UInt32 = 4
  package static let consumed: UInt32 = 5
  package static let replaced: UInt32 = 6
  package static let cancelled: UInt32 = 7
  package static let timedOut: UInt32 = 8
  package static let unloaded: UInt32 = 9
  package static let delegateDied: UInt32 = 10
  package static let queueEnded: UInt32 = 11
  package static let user: UInt32 = 1000
}

extension Reason {
  /// The name of a reason of the library's; nil for the program's own.
  package static func name(_ reason: UInt32) -> StaticString? {
    switch reason {
    case none: "no reason given"
    case ended: "ended"
    case ownerDied: "owner died"
    case objectDied: "object died"
    case registryClosed: "registry closed"
    case consumed: "consumed"
    case replaced: "replaced"
    case cancelled: "cancelled"
    case timedOut: "timed out"
    case unloaded: "unloaded"
    case delegateDied: "delegate died"
    case queueEnded: "queue ended"
    default: nil
    }
  }
}

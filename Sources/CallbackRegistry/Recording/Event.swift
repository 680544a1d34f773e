// SPDX-License-Identifier: Apache-2.0

/// What an event says.
///
/// The raw values are stored in the history.
package enum EventKind: UInt8 {
  /// A call that has ended: time is its begin, argument its duration.
  case call = 1
  /// Whose events follow in the ring: payload is the thread's number, its
  /// kernel number and name.
  case thread = 2
  /// A registry was opened under a label.
  case opened = 3
  case closed = 4
  /// A handle came to life: owner, callback and site, type tag or object.
  ///
  /// The argument is its level 16 | flags 16; 0 when its level was off.
  case registered = 5
  /// A handle is dead; the argument is the reason.
  case ended = 6
  /// A handle is quiescent, its destroy has run: its final call counts.
  case settled = 7
  /// An attempt to call was refused; the argument is the status.
  case refused = 8
  /// A lease was taken on a token: payload is the lease.
  case leased = 9
  case leaseEnded = 10
  /// A call that was never left: its thread ended or jumped out of it.
  case abandoned = 11
  /// A live token's call counts so far.
  case counted = 12
  /// Calls that found no room: number, total and longest duration.
  case aggregated = 13
  /// The recording level became the argument.
  case leveled = 14
  /// The program's own remark, in the payload.
  case note = 15
  /// The process has forked, on the thread whose event this is.
  case forked = 16
  /// A slot holds another token: payload is that and the one before.
  case slotSet = 17
  /// The token that a slot held has died: payload is it, argument the reason.
  case slotCleared = 18
  /// A signal or connection was blocked; the argument is how often it is now.
  case blocked = 19
  case unblocked = 20
  /// An event of a session or task found no delegate: the argument is which,
  /// and payload the delegate and a number.
  case undelivered = 21
  /// A session begins to end; the argument is 1 to finish, 2 to cancel.
  case sessionEnding = 22
  /// A task's completion was delivered: the argument is its error, payload its
  /// data's pieces and bytes.
  case taskCompleted = 23
  /// Messages of a queue that were not delivered, to a token in a row: payload
  /// is the token, how many, and the number of the first; the argument is why,
  /// a status.
  case messagesDropped = 24
  /// A queue's counts so far: payload is nine numbers.
  case queueCounted = 25
  /// Payload of the event before it.
  case continuation = 255
}

/// The layout of an event.
///
/// It is in records of four words, the first one
///
///     word 0   sequence 48 | kind 8 | flags 8
///     word 1   time in ticks
///     word 2   handle
///     word 3   argument 32 | check 32
///
/// followed by as many continuation records as its flags say, each holding
/// word 0 as above and 24 bytes of payload. For calls the flags are instead
/// the power of two that the duration was divided by. The check is a CRC-32C of
/// the ring's seed, the record's position, words 0 to 2, the argument, and all
/// words of the continuation records.
package enum EventLayout {
  package static let recordBytes = 32
  package static let wordsPerRecord = 4
  package static let payloadBytes = 24
  package static let longestPayload = 4096

  @inline(__always)
  package static func head(
    sequence: UInt64, kind: EventKind, flags: UInt8
  ) -> UInt64 {
    sequence << 16 | UInt64(kind.rawValue) << 8 | UInt64(flags)
  }

  /// Whether records of this kind begin an event.
  package static func isRecorded(_ kind: UInt8) -> Bool {
    kind >= EventKind.call.rawValue && kind <= EventKind.queueCounted.rawValue
  }

  package static func kind(ofHead head: UInt64) -> UInt8 {
    UInt8(truncatingIfNeeded: head >> 8)
  }

  package static func flags(ofHead head: UInt64) -> UInt8 {
    UInt8(truncatingIfNeeded: head)
  }

  package static func sequence(ofHead head: UInt64) -> UInt64 { head >> 16 }

  package static func continuations(forBytes bytes: Int) -> Int {
    (bytes + payloadBytes - 1) / payloadBytes
  }
}

/// Three words of payload, as one continuation record holds them.
package struct Payload {
  package var first: UInt64
  package var second: UInt64
  package var third: UInt64

  @inline(__always)
  package init(_ first: UInt64, _ second: UInt64 = 0, _ third: UInt64 = 0) {
    self.first = first
    self.second = second
    self.third = third
  }
}

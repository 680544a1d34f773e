// SPDX-License-Identifier: Apache-2.0

/// A step of a layer above, which is given a handle that is dead or not.
package typealias HandleStep = @convention(c) (UInt64) -> Void

/// What the record of a session, task or reply begins with: what there is to do
/// when its handle is ended, and when nothing is inside it any more.
package struct RecordHeader {
  package let handle: UInt64
  /// Is run by the thread that ended the handle, outside of every lock, when
  /// what it ended has been settled.
  package let ended: HandleStep
  /// Is run by the thread that delivers for the queue that it is wanted on, or
  /// finds that queue ended.
  package let wanted: HandleStep?
  /// Is run by a thread that has jumped out of the handle, or ends inside it.
  package let abandoned: HandleStep
  /// Frees the record, under the lock of its registry.
  package let free: @convention(c) (UnsafeMutableRawPointer) -> Void
  /// The one after it among those that a thread has ended.
  package fileprivate(set) var next: RecordHeaderPointer?
  fileprivate var nextWanted: RecordHeaderPointer?

  package init(
    handle: UInt64, ended: @escaping HandleStep,
    wanted: HandleStep? = nil,
    abandoned: @escaping HandleStep,
    free: @escaping @convention(c) (UnsafeMutableRawPointer) -> Void
  ) {
    self.handle = handle
    self.ended = ended
    self.wanted = wanted
    self.abandoned = abandoned
    self.free = free
  }
}

package typealias RecordHeaderPointer = UnsafeMutablePointer<RecordHeader>

/// Records whose handles a thread has ended, in order.
///
/// A record is there once, since its handle is ended once; and it has a lease
/// for being there, since a step may free others.
package struct EndedRecords {
  private var first: RecordHeaderPointer?
  private var last: RecordHeaderPointer?

  package init() {}

  package mutating func append(_ record: RecordHeaderPointer) {
    record.pointee.next = nil
    if let last { last.pointee.next = record } else { first = record }
    last = record
  }

  package mutating func append(_ others: inout EndedRecords) {
    guard let other = others.first else { return }
    if let last { last.pointee.next = other } else { first = other }
    last = others.last
    others = EndedRecords()
  }

  /// Puts them in front of others, of which the first is given.
  ///
  /// Returns the first of all.
  package mutating func prepended(
    to others: RecordHeaderPointer?
  ) -> RecordHeaderPointer? {
    guard let first, let last else { return others }
    last.pointee.next = others
    return first
  }
}

/// Records that wait to be delivered for, in order; each is there once, and
/// stays until that has been done.
package struct WantedRecords {
  private var first: RecordHeaderPointer?
  private var last: RecordHeaderPointer?
  package private(set) var count = 0

  package init() {}

  package var isEmpty: Bool { first == nil }

  package mutating func append(_ record: RecordHeaderPointer) {
    record.pointee.nextWanted = nil
    if let last { last.pointee.nextWanted = record } else { first = record }
    last = record
    count += 1
  }

  package mutating func takeFirst() -> (handle: UInt64, step: HandleStep)? {
    guard let taken = first, let step = taken.pointee.wanted else {
      return nil
    }
    first = taken.pointee.nextWanted
    if first == nil { last = nil }
    count -= 1
    return (taken.pointee.handle, step)
  }
}

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a session, a task or a reply.
  package var recordHeader: RecordHeaderPointer? {
    pointee.body?.assumingMemoryBound(to: RecordHeader.self)
  }

  /// The same, where the slot is one's.
  package func recordHeaderIfAny(of handle: UInt64) -> RecordHeaderPointer? {
    switch Handle.kind(of: handle) {
    case .session, .task, .reply: recordHeader
    default: nil
    }
  }
}

// SPDX-License-Identifier: Apache-2.0

/// Names the member of a record that leads to the one behind it in a queue.
package protocol Link {
  associatedtype Record

  static func next(
    of record: UnsafeMutablePointer<Record>
  ) -> UnsafeMutablePointer<Record>?

  static func set(
    _ next: UnsafeMutablePointer<Record>?,
    of record: UnsafeMutablePointer<Record>)
}

/// Records in the order in which they came, linked through themselves: so that
/// adding one takes no memory.
package struct LinkedQueue<L: Link> {
  package typealias Pointer = UnsafeMutablePointer<L.Record>

  package private(set) var first: Pointer?
  package private(set) var last: Pointer?
  package private(set) var count = 0

  package init() {}

  package var isEmpty: Bool { first == nil }

  package mutating func append(_ record: Pointer) {
    L.set(nil, of: record)
    if let last { L.set(record, of: last) } else { first = record }
    last = record
    count += 1
  }

  package mutating func append(_ others: inout LinkedQueue) {
    guard let other = others.first else { return }
    if let last { L.set(other, of: last) } else { first = other }
    last = others.last
    count += others.count
    others = LinkedQueue()
  }

  package mutating func takeFirst() -> Pointer? {
    guard let taken = first else { return nil }
    first = L.next(of: taken)
    if first == nil { last = nil }
    count -= 1
    return taken
  }

  package mutating func takeAll() -> LinkedQueue {
    let all = self
    self = LinkedQueue()
    return all
  }
}

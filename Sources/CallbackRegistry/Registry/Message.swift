// SPDX-License-Identifier: Apache-2.0

package typealias FreePayload =
  @convention(c) (UnsafeMutableRawPointer?) -> Void

package typealias Invoke =
  @convention(c) (
    UnsafeRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
  ) -> Void

/// What waits in a queue for a token.
package struct Message {
  package var token: UInt64 = Handle.none
  package var payload: UnsafeMutableRawPointer?
  package var bytes: UInt64 = 0
  package var free: FreePayload?
  package var invoke: Invoke?
  /// The registry's own; nil: the token is a function.
  package var interface: InterfacePointer?
  package var method: UInt32 = 0
  package var typeTag: UInt64 = 0
  /// The token is a signal's handler.
  package var isHandler = false
  /// Which one it is of its queue, from one on.
  package var number: UInt64 = 0

  package init() {}

  /// What is asked of the token when it is delivered.
  package var demand: Demand {
    if let interface { return .method(interface.description, method) }
    if isHandler { return .handler }
    return typeTag == 0 ? .function : .typed(typeTag)
  }

  /// What messages of which the latest counts have in common.
  var key: UInt64 {
    interface == nil ? token : token ^ (UInt64(method) + 1) << 48
  }

  /// Whether another one takes its place, where the latest counts.
  func isReplaced(by other: Message) -> Bool {
    token == other.token && interface == other.interface
      && method == other.method && typeTag == other.typeTag
  }
}

/// Messages one after the other, whose growth can fail.
struct MessageRing: ~Copyable {
  private var start: UnsafeMutablePointer<Message>?
  private var capacity: UInt64 = 0
  /// The position of the first one; positions only grow.
  private(set) var head: UInt64 = 0
  private(set) var tail: UInt64 = 0

  init() {}

  deinit { Memory.release(start) }

  var count: UInt64 { tail &- head }

  func pointer(to position: UInt64) -> UnsafeMutablePointer<Message> {
    start.unsafelyUnwrapped + Int(position & (capacity - 1))
  }

  func contains(_ position: UInt64) -> Bool {
    position &- head < tail &- head
  }

  /// Makes sure that one more fits; false without memory.
  @inline(__always)
  mutating func reserve() -> Bool { count < capacity || grow() }

  @inline(never)
  private mutating func grow() -> Bool {
    let larger = max(16, capacity * 2)
    guard let made = Memory.allocate(Message.self, count: Int(larger)) else {
      return false
    }
    var position = head
    while position != tail {
      made[Int(position & (larger - 1))] = pointer(to: position).pointee
      position &+= 1
    }
    Memory.release(start)
    start = made
    capacity = larger
    return true
  }

  /// There is room.
  mutating func append(_ message: Message) {
    pointer(to: tail).pointee = message
    tail &+= 1
  }

  mutating func takeFirst() -> Message? {
    guard head != tail else { return nil }
    let message = pointer(to: head).pointee
    head &+= 1
    return message
  }

  /// Takes one out: those before it move up.
  ///
  /// `moved` is told of each, at its new position.
  mutating func take(
    at position: UInt64, moved: (Message, UInt64) -> Void
  ) -> Message {
    let message = pointer(to: position).pointee
    var each = position
    while each != head {
      pointer(to: each).pointee = pointer(to: each &- 1).pointee
      moved(pointer(to: each).pointee, each)
      each &-= 1
    }
    head &+= 1
    return message
  }
}

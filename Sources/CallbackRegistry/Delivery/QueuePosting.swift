// SPDX-License-Identifier: Apache-2.0
//
// A post takes the queue's lock once, unless it finds no room. A poster that
// waits is not inside the queue: it has a lease on it instead of a pin, and is
// woken by whoever takes a message, finishes the queue or ends it.
// Tried to break by: Tests/C (posters.c).

import CPlatform
import Synchronization

/// What is to be posted.
///
/// The interface is borrowed.
package struct PostRequest {
  package var message = Message()
  package var interface: InterfaceDescription?

  package init() {}
}

extension Queues {
  /// Posts a message for a token.
  ///
  /// On success the payload is the queue's; on failure nothing is taken (G6).
  package static func post(
    _ what: PostRequest, to handle: UInt64
  ) -> Status {
    guard let thread = ThreadPointer.current ?? Process.currentThread() else {
      return .noMemory
    }
    do throws(Status) {
      let pinned = try PinnedQueue(handle, thread: thread)
      let record = pinned.record
      var message = what.message
      try check(&message, what, record, thread: thread)
      if record.appendAtOnce(&message) {
        Hook.messagePosted.reached(handle)
        return .ok
      }
      while true {
        switch record.admit(&message) {
        case .posted:
          Hook.messagePosted.reached(handle)
          return .ok
        case .replaced(let former):
          Hook.messagePosted.reached(handle)
          former.freePayload()
          return .ok
        case .postedFor(let former, let status):
          record.drop(former, status, handle, thread: thread)
          return .ok
        case .removed(let former, let status):
          record.drop(former, status, handle, thread: thread)
          guard ThreadPointer.current == thread else { return .forked }
        case .refused(let status): throw status
        case .full:
          guard record.pointee.options.policy == .block else { throw .full }
          return try wait(message, pinned)
        }
      }
    } catch {
      return thread.fail(error, about: handle)
    }
  }

  /// Posts an emission's argument for a handler that is called on a queue.
  ///
  /// The handler is pinned meanwhile: its connection says where and how.
  static func post(
    _ entry: ConnectionList.Entry, argument: UnsafeMutableRawPointer?,
    thread: ThreadPointer
  ) -> Status {
    guard let pin = thread.pin(entry.token) else { return .noMemory }
    cbr_light_fence()
    guard entry.slot.pointee.word.load(ordering: .acquiring) == entry.token,
      let place = entry.slot.connection?.pointee.delivery
    else {
      Entering.withdraw(pin, entry.token, thread: thread)
      return .stale
    }
    var request = PostRequest()
    request.message.token = entry.token
    request.message.isHandler = true
    request.message.payload = place.payload(of: argument, for: entry.slot)
    request.message.bytes = place.bytes
    request.message.free = place.free
    var status = Status.noMemory
    let isMade = request.message.payload != nil
    if isMade || argument == nil && place.copyForHandler == nil {
      status = post(request, to: place.queue)
    }
    if status != .ok, place.copies, isMade {
      request.message.freePayload()
    }
    let word = entry.slot.pointee.word.load(ordering: .acquiring)
    Entering.withdraw(pin, entry.token, thread: thread)
    guard status != .ok else { return .ok }
    // One that is gone was not called late: that is no refusal.
    guard word == entry.token else { return .stale }
    return Entering.refuse(
      entry.token, status == .stale ? .closed : status, thread: thread)
  }

  /// Whether the token can be called so, as far as is known now.
  private static func check(
    _ message: inout Message, _ what: PostRequest, _ record: QueuePointer,
    thread: ThreadPointer
  ) throws(Status) {
    let token = message.token
    do throws(Status) {
      let slot = try Entering.slot(of: token)
      guard slot.pointee.word.load(ordering: .acquiring) == token else {
        let reason = Entering.reason(of: token, slot)
        guard !message.isHandler else { throw .stale }
        throw Entering.refuse(token, reason, thread: thread)
      }
      guard let chunk = Table.chunk(at: Handle.index(of: token)),
        let registry = record.pointee.registry,
        chunk.pointee.registry.load(ordering: .acquiring)
          == registry.pointee.handle
      else { throw .foreign }
      let mode = slot.pointee.mode.load(ordering: .relaxed)
      var status = Status.ok
      if let interface = what.interface {
        status = Entering.responds(token, interface, method: message.method)
        if status == .ok {
          message.interface = try registry.intern(interface, thread: thread)
        }
      } else if message.typeTag != 0 {
        status = Entering.matches(token, tag: message.typeTag)
      } else if mode & (Mode.interface | Mode.tagged) != 0 {
        status = .interface
      }
      if mode & Mode.connection != 0, !message.isHandler {
        status = .interface
      }
      guard status == .ok else { throw status }
      let bytes = message.bytes
      let limit = record.pointee.options.maxBytes
      guard bytes <= limit else {
        throw thread.invalid { text in
          text.append("payload_bytes is ")
          text.append(bytes)
          text.append("; the queue's max_bytes is ")
          text.append(limit)
        }
      }
    } catch {
      throw thread.toThrow(thread.fail(error, about: token))
    }
  }

  /// Waits for room.
  ///
  /// The pin is given back for a lease meanwhile.
  private static func wait(
    _ message: Message, _ pinned: consuming PinnedQueue
  ) throws(Status) -> Status {
    let record = pinned.record
    let handle = pinned.handle
    let thread = pinned.thread
    let deadline = Deadline.after(
      record.pointee.options.blockTimeoutNanoseconds)
    let slot = Table.knownSlot(at: Handle.index(of: handle))
    Protocol.addLease(slot, handle: handle)
    _ = consume pinned
    record.pointee.blocked.wrappingAdd(1, ordering: .sequentiallyConsistent)
    let status = record.awaitRoom(
      for: message, handle, thread: thread, until: deadline)
    record.pointee.blocked.wrappingSubtract(1, ordering: .relaxed)
    if Protocol.dropLease(slot, handle: handle) == .claimed {
      Finishing.finish(handle, thread: thread)
    }
    guard status == .ok || status == .wouldDeadlock else { throw status }
    return status
  }
}

/// What became of a message that was to be posted.
private enum Placing {
  case posted
  /// In the place of another one, whose payload is to be freed.
  case replaced(Message)
  /// In the place of one that is to be dropped.
  case postedFor(Message, Status)
  /// Not yet, but one is to be dropped.
  case removed(Message, Status)
  case full
  case refused(Status)
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Does what nearly every post comes to; false: it changed nothing.
  @inline(__always)
  fileprivate func appendAtOnce(_ message: inout Message) -> Bool {
    guard pointee.options.policy != .keepLatest else { return false }
    return pointee.monitor.locked {
      guard !pointee.isEnded, !pointee.isFinishing,
        hasRoom(for: message.bytes)
      else { return false }
      guard case .posted = append(&message) else { return false }
      return true
    }
  }

  fileprivate func admit(_ message: inout Message) -> Placing {
    pointee.monitor.locked { place(&message, mustSearch: false) }
  }

  /// Puts a message into the queue, if there is room or can be made.
  ///
  /// The monitor is held.
  private func place(
    _ message: inout Message, mustSearch: Bool
  ) -> Placing {
    guard !pointee.isEnded, !pointee.isFinishing else {
      return .refused(.closed)
    }
    if pointee.options.policy == .keepLatest,
      let former = replace(&message)
    {
      return former
    }
    if hasRoom(for: message.bytes) { return append(&message) }
    guard let (former, status) = makeRoom(mustSearch: mustSearch) else {
      return .full
    }
    if status == .stale {
      pointee.counts.droppedStale += 1
    } else {
      pointee.counts.droppedFull += 1
    }
    noteRoom()
    pointee.monitor.wake()
    guard hasRoom(for: message.bytes) else { return .removed(former, status) }
    let appended = append(&message)
    if case .posted = appended { return .postedFor(former, status) }
    return .removed(former, status)
  }

  @inline(__always)
  private func append(_ message: inout Message) -> Placing {
    guard pointee.ring.reserve() else { return .refused(.noMemory) }
    if pointee.options.policy == .keepLatest {
      guard pointee.latest.reserve() else { return .refused(.noMemory) }
      pointee.latest.set(message.key, to: pointee.ring.tail)
    }
    pointee.counts.posted += 1
    message.number = pointee.counts.posted
    pointee.ring.append(message)
    pointee.bytes &+= message.bytes
    pointee.counts.peakItems = max(pointee.counts.peakItems, waitingCount)
    pointee.counts.peakBytes = max(pointee.counts.peakBytes, waitingBytes)
    wakeConsumer()
    return .posted
  }

  /// Replaces what waits for the same; nil when nothing does.
  private func replace(_ message: inout Message) -> Placing? {
    guard let position = pointee.latest[message.key],
      pointee.ring.contains(position)
    else { return nil }
    let place = pointee.ring.pointer(to: position)
    let former = place.pointee
    guard former.isReplaced(by: message) else { return nil }
    guard hasRoom(for: message.bytes, instead: former.bytes) else {
      return .full
    }
    pointee.counts.posted += 1
    pointee.counts.merged += 1
    message.number = pointee.counts.posted
    place.pointee = message
    pointee.bytes = pointee.bytes &- former.bytes &+ message.bytes
    pointee.counts.peakBytes = max(pointee.counts.peakBytes, waitingBytes)
    return .replaced(former)
  }

  /// Takes out a message that the policy, or its dead token, makes room of.
  private func makeRoom(mustSearch: Bool) -> (Message, Status)? {
    if pointee.options.policy == .dropOldest {
      return takeOldest().map { ($0, $0.isStale ? .stale : .full) }
    }
    if pointee.skips > 0, !mustSearch {
      pointee.skips -= 1
      return nil
    }
    guard let message = takeStale() else {
      // So that a queue that stays full is not searched by each post.
      pointee.skips = pointee.ring.count / 64
      return nil
    }
    return (message, .stale)
  }

  /// Takes out the first message whose token is dead.
  private func takeStale() -> Message? {
    var position = pointee.ring.head
    while position != pointee.ring.tail {
      let message = pointee.ring.pointer(to: position).pointee
      if message.isStale {
        forget(message, at: position)
        let latest = pointee.options.policy == .keepLatest
        let taken = pointee.ring.take(at: position) { moved, place in
          if latest, pointee.latest[moved.key] == place &- 1 {
            pointee.latest.set(moved.key, to: place)
          }
        }
        pointee.bytes &-= taken.bytes
        return taken
      }
      position &+= 1
    }
    return nil
  }

  /// Waits until there is room, and posts; the caller has a lease.
  fileprivate func awaitRoom(
    for message: Message, _ handle: UInt64, thread: ThreadPointer,
    until deadline: Deadline
  ) -> Status {
    var message = message
    var isOver = false
    while true {
      var room: UInt64 = 0
      let placing = pointee.monitor.locked {
        let placing = place(&message, mustSearch: true)
        room = roomCount
        return placing
      }
      switch placing {
      case .posted:
        Hook.messagePosted.reached(handle)
        return .ok
      case .replaced(let former):
        former.freePayload()
        return .ok
      case .postedFor(let former, let status):
        dropInside(former, status, handle, thread: thread)
        return .ok
      case .removed(let former, let status):
        dropInside(former, status, handle, thread: thread)
        continue
      case .refused(let status): return status
      case .full: break
      }
      if isOver || deadline.hasPassed { return .timeout }
      if let ring = Waiting.beginWaiting(
        forRoomIn: handle, since: room, thread: thread)
      {
        return thread.fail(.wouldDeadlock, about: handle, ring: ring)
      }
      Hook.posterBlocked.reached(handle)
      isOver = pointee.monitor.locked {
        while roomCount == room, !pointee.isEnded {
          guard pointee.monitor.wait(until: deadline) else { return true }
        }
        return false
      }
      Waiting.endWaiting(thread)
    }
  }

  /// Drops a message for a poster that has a lease only: whose payload's
  /// function waits for the queue is found to be inside it.
  private func dropInside(
    _ message: Message, _ status: Status, _ handle: UInt64,
    thread: ThreadPointer
  ) {
    let pin = thread.pinSpare(handle)
    drop(message, status, handle, thread: thread)
    if let pin { thread.unpin(pin) }
  }

  private var roomCount: UInt64 {
    Table.knownDetail(at: Handle.index(of: pointee.handle))
      .pointee.attempts.load(ordering: .relaxed)
  }
}

extension Message {
  /// Whether its token is dead by now.
  fileprivate var isStale: Bool {
    Table.slot(of: token)?.pointee.word.load(ordering: .acquiring) != token
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// What a queue's handle stands for. Messages wait in a ring. The thread that
// delivers moves a few at a time to the front, from where it takes one after
// the other without a lock; they go on waiting until then, and count so.
//
// Shared variables
//   every `var`  guarded by the monitor, but those of `Delivery`, which are
//                the delivering thread's alone
//   frontEnd     stored under the monitor (releasing) by the delivering thread,
//                when the front is empty
//   frontNext    raised by compare-and-swap: by the delivering thread to take a
//                message, by a poster under the monitor to drop the oldest
//   takenBytes, delivered, stale, refused  stored by the delivering thread;
//                loaded by whoever counts
//   blocked      how many posters wait for room, or are about to look for it.
//                A poster raises it (sequentially consistent) before it looks
//                at frontNext and takenBytes; the delivering thread changes
//                those before it looks at `blocked`: so one of them sees the
//                other's
//   room         of the slot's detail (`attempts`): how often posters were
//                woken; stored under the monitor
// Order of locks: waiting, registry, queue.
// Memory: a pin or a lease on the handle keeps the record. Posters that wait
// and the thread of a queue that has one have a lease: they are not inside, and
// go on by themselves when the queue ends.
// Tried to break by: Tests/C (queues.c, posters.c).

import CPlatform
import Synchronization

package struct QueueOptions {
  package var label: UnsafePointer<CChar>?
  package var owner = Handle.none
  package var hasThread = false
  package var policy = QueuePolicy.fail
  package var maxItems: UInt64 = 1024
  package var maxBytes: UInt64 = 64 << 20
  package var blockTimeoutNanoseconds: UInt64 = 1_000_000_000

  package init() {}
}

/// What becomes of a message for which there is no room.
///
/// The values are those of `CBR_QUEUE_...`.
package enum QueuePolicy: UInt32 {
  case block = 1
  case fail = 2
  case dropOldest = 3
  case keepLatest = 4
}

package struct QueueRecord: ~Copyable {
  /// A power of two.
  package static let frontCount: UInt64 = 32

  package let monitor: Monitor
  package let options: QueueOptions
  /// What a program polls; nil when the queue has a thread.
  package let wakeup: UnsafeMutableRawPointer?
  let front: UnsafeMutablePointer<Message>
  package let frontNext = Atomic<UInt64>(0)
  package let frontEnd = Atomic<UInt64>(0)
  package let takenBytes = Atomic<UInt64>(0)
  package let delivered = Atomic<UInt64>(0)
  package let stale = Atomic<UInt64>(0)
  package let refused = Atomic<UInt64>(0)
  package let blocked = Atomic<UInt32>(0)
  /// Whether something is in `wanted`; stored under the monitor.
  package let isWanted = Atomic<Bool>(false)
  /// The time of the first alarm; all-ones: none.
  package let alarmTime = Atomic<UInt64>(.max)

  package var registry: RegistryPointer?
  package var handle = Handle.none
  var ring = MessageRing()
  /// The position of each token's message in the ring, where the latest counts.
  var latest = NumberIndex()
  package var counts = QueueCounts()
  /// Of all messages that were accepted, less those that posters took out.
  var bytes: UInt64 = 0
  /// Messages that posters took out of the front.
  var stolen: UInt64 = 0
  /// Full posts that do without a search for dead tokens.
  var skips: UInt64 = 0
  /// Sessions that have something to deliver.
  var wanted = WantedRecords()
  var alarms = AlarmHeap()
  /// The time for which who delivers is to be woken; all-ones: none.
  package var armedTime = UInt64.max
  var drops = DropRun()
  /// What the history was told last, as a sum that only grows.
  var toldProgress: UInt64?
  package var isEnded = false
  /// Nothing more is posted; it ends when what waits has been delivered.
  package var isFinishing = false
  /// Who delivers, and its pin.
  package var deliverer: ThreadPointer?
  package var delivererPin: UInt32 = 0
  /// Somebody else wanted to deliver meanwhile.
  package var isWantedAgain = false
  package var isReadable = false
  /// The queue's thread sleeps.
  package var isAsleep = false
  package var thread = QueueThread.none
  /// What that runs.
  package var body: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
  package var delivery = Delivery()

  package init?(_ options: QueueOptions) {
    let wakeup = options.hasThread ? nil : cbr_wakeup_create()
    let monitor = Monitor.make()
    let front = Memory.allocate(
      Message.self, count: Int(Self.frontCount))
    guard let monitor, let front, options.hasThread || wakeup != nil else {
      monitor?.destroy()
      Memory.release(front)
      cbr_wakeup_destroy(wakeup)
      return nil
    }
    self.options = options
    self.wakeup = wakeup
    self.monitor = monitor
    self.front = front
  }

  deinit {
    Memory.release(front)
    cbr_wakeup_destroy(wakeup)
    monitor.destroy()
  }
}

/// The life of a queue's own thread.
package enum QueueThread {
  case none
  case starting
  case running
  /// It found no memory, or its queue was not made.
  case failed
}

/// What the delivering thread alone knows.
package struct Delivery {
  /// What it has taken, and neither delivered nor dropped: where that lies in
  /// the front, which is not filled until it is done with.
  package var message: UnsafeMutablePointer<Message>?

  package init() {}
}

package typealias QueuePointer = UnsafeMutablePointer<QueueRecord>

extension UnsafeMutablePointer where Pointee == Slot {
  /// Of a queue.
  package var queueRecord: QueuePointer? {
    pointee.body?.assumingMemoryBound(to: QueueRecord.self)
  }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Nil without memory.
  package static func make(_ options: QueueOptions) -> QueuePointer? {
    guard let room = Memory.allocate(QueueRecord.self) else { return nil }
    guard let record = QueueRecord(options) else {
      Memory.release(room)
      return nil
    }
    room.initialize(to: record)
    return room
  }

  package func destroy() {
    deinitialize(count: 1)
    Memory.release(self)
  }

  /// The queue's end has begun: whoever waits for it goes on.
  ///
  /// The lock of the registry is held.
  func stop() {
    pointee.monitor.locked {
      pointee.isEnded = true
      pointee.monitor.wake()
    }
  }
}

// What follows needs the monitor.
extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Messages that wait.
  package var waitingCount: UInt64 {
    pointee.frontEnd.load(ordering: .relaxed)
      &- pointee.frontNext.load(ordering: .sequentiallyConsistent)
      &+ pointee.ring.count
  }

  package var waitingBytes: UInt64 {
    pointee.bytes
      &- pointee.takenBytes.load(ordering: .sequentiallyConsistent)
  }

  /// Whether one more message of so many bytes is within the bounds.
  func hasRoom(for bytes: UInt64, instead former: UInt64? = nil) -> Bool {
    let items = waitingCount + (former == nil ? 1 : 0)
    let others = waitingBytes &- (former ?? 0)
    return items <= pointee.options.maxItems
      && bytes <= pointee.options.maxBytes &- others
  }

  /// Moves messages to the front, which is empty.
  ///
  /// The calling thread delivers.
  package func refill(atMost limit: UInt64) {
    var end = pointee.frontEnd.load(ordering: .relaxed)
    var left = min(limit, QueueRecord.frontCount)
    while left > 0, let message = takeFirst() {
      pointee.front[Int(end % QueueRecord.frontCount)] = message
      end &+= 1
      left &-= 1
    }
    pointee.frontEnd.store(end, ordering: .releasing)
  }

  private func takeFirst() -> Message? {
    guard let message = pointee.ring.takeFirst() else { return nil }
    forget(message, at: pointee.ring.head &- 1)
    return message
  }

  /// A message that is no longer in the ring cannot be replaced there.
  func forget(_ message: Message, at position: UInt64) {
    guard pointee.options.policy == .keepLatest,
      pointee.latest[message.key] == position
    else { return }
    pointee.latest.remove(message.key)
  }

  /// Takes the oldest message out, wherever it is.
  func takeOldest() -> Message? {
    if let message = takeFromFront()?.pointee {
      pointee.stolen &+= 1
      pointee.bytes &-= message.bytes
      return message
    }
    guard let message = takeFirst() else { return nil }
    pointee.bytes &-= message.bytes
    return message
  }
}

extension UnsafeMutablePointer where Pointee == QueueRecord {
  /// Takes the first message of the front: by the delivering thread, or with
  /// the monitor held.
  @inline(__always)
  package func takeFromFront() -> UnsafeMutablePointer<Message>? {
    while true {
      let next = pointee.frontNext.load(ordering: .relaxed)
      guard next != pointee.frontEnd.load(ordering: .acquiring) else {
        return nil
      }
      let message =
        pointee.front + Int(next & (QueueRecord.frontCount &- 1))
      let (isMine, _) = pointee.frontNext.compareExchange(
        expected: next, desired: next &+ 1,
        ordering: .sequentiallyConsistent)
      if isMine { return message }
    }
  }

  /// Wakes posters that wait, after something was taken.
  @inline(__always)
  package func makeRoom() {
    if pointee.blocked.load(ordering: .sequentiallyConsistent) > 0 {
      wakePosters()
    }
  }

  @inline(never)
  private func wakePosters() {
    pointee.monitor.locked {
      noteRoom()
      pointee.monitor.wake()
    }
  }

  /// The monitor is held, and posters are about to be woken.
  func noteRoom() {
    Table.knownDetail(at: Handle.index(of: pointee.handle))
      .pointee.attempts.wrappingAdd(1, ordering: .sequentiallyConsistent)
  }
}

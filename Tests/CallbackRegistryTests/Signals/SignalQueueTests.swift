// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Signals that are heard on queues")
struct SignalQueueTests {
  @Test("A handler is called where its queue delivers, with its own copy (G22)")
  func delivery() throws {
    let registry = try Registry()
    let queue = try CallQueue("pumped", in: registry, on: .pumped)
    let signal = try Signal<(Tracker.Tracked, Int)>("pair", in: registry)
    let tracker = Tracker()
    let heard = Locked<[Int]>([])
    let connection = try signal.connect("late", on: queue) { object, number in
      object.touch()
      heard.withLock { $0.append(number) }
    }
    for number in 0..<3 {
      #expect(try signal.emit(tracker.make(), number).queued == 1)
    }
    #expect(heard.withLock { $0 } == [])
    #expect(tracker.liveCount == 3)
    #expect(try queue.run(limit: 2) == 2)
    #expect(heard.withLock { $0 } == [0, 1])
    #expect(tracker.liveCount == 1)
    // It ends before its last turn.
    #expect(connection.end().isEnded)
    try queue.run()
    #expect(heard.withLock { $0 } == [0, 1])
    #expect(tracker.liveCount == 0)
    #expect(tracker.madeCount == 3)
  }

  @Test("An object's handler is not called once the object has died (G18)")
  func deadObject() throws {
    let registry = try Registry()
    let queue = try CallQueue("pumped", in: registry, on: .pumped)
    let signal = try Signal<Int>("number", in: registry)
    let tracker = Tracker()
    let heard = Counter()
    let token: Token<Int, Void>
    do {
      let object = tracker.make()
      token = try signal.connect("weak", owner: object, on: queue) {
        object, _ in
        object.touch()
        heard.increment()
      }.keep()
      try signal.emit(1)
      try queue.run()
      try signal.emit(2)
      withExtendedLifetime(object) {}
    }
    try queue.run()
    #expect(heard.count == 1)
    #expect(!token.isLive)
    #expect(tracker.liveCount == 0)
  }

  @Test("A queue of another registry is refused (G10)")
  func foreignQueue() throws {
    let (registry, other) = (try Registry(), try Registry())
    let queue = try CallQueue("other", in: other, on: .pumped)
    let signal = try Signal<Int>("number", in: registry)
    let tracker = Tracker()
    let error = thrown {
      let connection = try signal.connect("foreign", on: queue) {
        [object = tracker.make()] _ in object.touch()
      }
      _ = connection.end()
    }
    #expect(error?.name == "foreign")
    #expect(tracker.liveCount == 0)
  }
}

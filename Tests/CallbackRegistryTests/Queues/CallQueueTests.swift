// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Queues")
struct CallQueueTests {
  static let long = Duration.seconds(3_600)

  @Test("A queue's own thread delivers what is posted, in order (G21)")
  func ownThread() throws {
    let registry = try Registry()
    let queue = try CallQueue("work", in: registry)
    let seen = Locked<[Int]>([])
    let last = Gate()
    let token = try registry.register("add") { (number: Int) in
      seen.withLock { $0.append(number) }
      if number == 99 { last.open() }
    }.keep()
    for number in 0..<100 { try queue.post(token, number) }
    last.wait()
    #expect(seen.withLock { $0 } == Array(0..<100))
    #expect(try queue.statistics.posted == 100)
    #expect(try queue.statistics.delivered == 100)
    #expect(queue.end(waiting: Self.long).isEnded)
  }

  @Test("A pumped queue delivers where it is run, up to a limit")
  func pumped() throws {
    let registry = try Registry()
    let queue = try CallQueue(in: registry, on: .pumped)
    let counter = Counter()
    let token = try registry.register("two") {
      (_: Int, _: String) in counter.increment()
    }.keep()
    for _ in 0..<5 { try queue.post(token, 1, "one") }
    #expect(queue.descriptor != nil)
    #expect(counter.count == 0)
    #expect(try queue.run(limit: 2) == 2)
    #expect(counter.count == 2)
    #expect(try queue.run() == 3)
    #expect(try queue.run() == 0)
    let threaded = try CallQueue(in: registry)
    #expect(threaded.descriptor == nil)
    #expect(errorName { try threaded.run() } == "wrongThread")
  }

  /// What was posted is freed once, whatever becomes of it.
  enum Fate: CaseIterable {
    case delivered, full, refused, stale, merged, ended, released, tooLarge
  }

  @Test("Every input is freed exactly once (G21)", arguments: Fate.allCases)
  func freedOnce(_ fate: Fate) throws {
    let registry = try Registry()
    let tracker = Tracker()
    let overflow: CallQueue.Overflow =
      switch fate {
      case .full: .dropOldest
      case .merged: .keepLatest
      default: .fail
      }
    var queue: CallQueue? = try CallQueue(
      in: registry, on: .pumped,
      limits: CallQueue.Limits(items: 2, overflow: overflow))
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in object.touch()
    }.keep()
    try queue?.post(token, tracker.make())
    try queue?.post(token, tracker.make())
    switch fate {
    case .delivered:
      #expect(tracker.liveCount == 2)
      try queue?.run()
    case .full:
      try queue?.post(token, tracker.make())
      #expect(tracker.liveCount == 2)
      #expect(try queue?.statistics.droppedFull == 1)
      try queue?.run()
    case .refused:
      let error = thrown { try queue?.post(token, tracker.make()) }
      #expect(error?.name == "full")
      #expect(tracker.liveCount == 2)
      try queue?.run()
    case .stale:
      _ = token.end()
      #expect(errorName { try queue?.post(token, tracker.make()) } == "stale")
      #expect(tracker.liveCount == 2)
      try queue?.run()
      #expect(try queue?.statistics.droppedStale == 2)
    case .merged:
      #expect(tracker.liveCount == 1)
      #expect(try queue?.statistics.merged == 1)
      try queue?.run()
    case .ended:
      #expect(queue?.end(waiting: Self.long).isEnded == true)
      let error = thrown { try queue?.post(token, tracker.make()) }
      #expect(error?.name == "stale")
    case .released: queue = nil
    case .tooLarge:
      let error = thrown {
        try queue?.post(token, tracker.make(), bytes: 65 << 20)
      }
      #expect(error?.name == "invalid")
      try queue?.run()
    }
    #expect(tracker.liveCount == 0)
    #expect(tracker.madeCount >= 2)
    if let counts = try? queue?.statistics {
      #expect(
        counts.posted
          == counts.delivered + counts.dropped + counts.waiting + counts.taken)
    }
  }

  @Test("A closure that is posted runs once, or is released unrun")
  func closures() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let counter = Counter()
    do {
      let queue = try CallQueue(in: registry, on: .pumped)
      for _ in 0..<3 {
        try queue.post("job") { [object = tracker.make()] in
          object.touch()
          counter.increment()
        }
      }
      #expect(try registry.statistics.liveTokens == 3)
      #expect(try queue.run(limit: 1) == 1)
      #expect(counter.count == 1)
      #expect(tracker.liveCount == 2)
    }
    #expect(counter.count == 1)
    #expect(tracker.liveCount == 0)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("A post that waits for room throws when the queue ends (G22)")
  func endWakesPosters() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let queue = try CallQueue(
      in: registry, on: .pumped,
      limits: CallQueue.Limits(items: 1, overflow: .block(Self.long)))
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in object.touch()
    }.keep()
    try queue.post(token, tracker.make())
    let name = Later<String>()
    let poster = Worker {
      name.value = thrown { try queue.post(token, tracker.make()) }?.name
    }
    while try queue.statistics.blocked == 0 {}
    _ = queue.end()
    poster.join()
    #expect(name.value == "closed")
    #expect(tracker.liveCount == 0)
  }

  @Test("A full queue that is waited for from inside is no deadlock (G22)")
  func fullFromInside() throws {
    let registry = try Registry()
    let queue = try CallQueue(
      in: registry,
      limits: CallQueue.Limits(items: 1, overflow: .block(Self.long)))
    let name = Later<String>()
    let done = Gate()
    let idle = try registry.register("idle") {}.keep()
    try queue.post("poster") {
      let error = thrown { for _ in 0..<2 { try queue.post(idle) } }
      name.value = error?.name
      done.open()
    }
    done.wait()
    #expect(name.value == "wouldDeadlock")
    #expect(queue.end(waiting: Self.long).isEnded)
  }

  @Test("A finished queue delivers what waits, and takes no more")
  func finishing() throws {
    let registry = try Registry()
    let queue = try CallQueue(in: registry, on: .pumped)
    let counter = Counter()
    let token = try registry.register("tick") { counter.increment() }.keep()
    try queue.post(token)
    #expect(queue.finish().isPending)
    #expect(errorName { try queue.post(token) } == "closed")
    #expect(queue.finish().isAlready)
    #expect(try queue.run() == 1)
    #expect(counter.count == 1)
    #expect(!queue.isLive)
    #expect(queue.finish().isAlready)
    #expect(queue.end().isAlready)
  }

  @Test("A queue that finishes delivers what waits, though it is released")
  func finishingReleased() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let last = Gate()
    let goOn = Gate()
    do {
      let queue = try CallQueue(in: registry)
      try queue.post("first") { goOn.wait() }
      for _ in 0..<3 {
        try queue.post("job") { [object = tracker.make()] in object.touch() }
      }
      try queue.post("last") { last.open() }
      _ = queue.finish()
    }
    #expect(tracker.liveCount == 3)
    goOn.open()
    last.wait()
    #expect(tracker.liveCount == 0)
  }

  @Test("A queue ends with its owner")
  func ownedByOwner() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let owner = try Owner(in: registry)
    let queue = try CallQueue("of owner", in: owner, on: .pumped)
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in object.touch()
    }.keep()
    try queue.post(token, tracker.make())
    #expect(owner.end(waiting: Self.long).isEnded)
    #expect(!queue.isLive)
    #expect(tracker.liveCount == 0)
    try registry.flush(waiting: Self.long)
    #expect(queue.explanation.story.contains("of owner"))
    #expect(errorName { _ = try queue.statistics } == "stale")
  }
}

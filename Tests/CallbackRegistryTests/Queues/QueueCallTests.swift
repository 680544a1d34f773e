// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Calls that are awaited")
struct QueueCallTests {
  @Test("A task awaits what a callback on a queue gives back")
  func output() async throws {
    let registry = try Registry()
    let queue = try CallQueue("work", in: registry)
    let token = try registry.register("square") { (x: Int) in x * x }.keep()
    let sum = try registry.register("sum") { (x: Int, y: Int) in x + y }.keep()
    let none = try registry.register("none") { "nothing" }.keep()
    #expect(try await queue.call(token, 7) == 49)
    #expect(try await queue.call(sum, 7, 8) == 15)
    #expect(try await queue.call(none) == "nothing")
  }

  @Test("Many tasks await at a time, each its own")
  func many() async throws {
    let registry = try Registry(level: .lifecycle)
    let queue = try CallQueue("work", in: registry)
    let tracker = Tracker()
    let token = try registry.register("square") {
      (x: Int, object: Tracker.Tracked) in
      object.touch()
      return x * x
    }.keep()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          let square = try await queue.call(token, number, tracker.make())
          #expect(square == number * number)
        }
      }
      try await group.waitForAll()
    }
    #expect(queue.end(waiting: .seconds(3_600)).isEnded)
    #expect(tracker.madeCount == 200)
    #expect(tracker.liveCount == 0)
  }

  /// What ends a call before its turn.
  enum Fate: String, CaseIterable {
    case stale, closed, full, wrongThread, cancelled
  }

  @Test(
    "A call that is dropped throws why, and frees its input",
    arguments: Fate.allCases)
  func dropped(_ fate: Fate) async throws {
    let registry = try Registry()
    let tracker = Tracker()
    let queue = try CallQueue(
      "work", in: registry, on: .pumped,
      limits: CallQueue.Limits(
        items: 1, overflow: fate == .full ? .dropOldest : .fail))
    let counter = Counter()
    let token = try registry.register(
      "take", options: fate == .wrongThread ? .threadBound : []
    ) { (object: Tracker.Tracked) in
      object.touch()
      counter.increment()
    }.keep()
    let waiting = Task {
      await name { try await queue.call(token, tracker.make()) }
    }
    while try queue.statistics.waiting == 0 { await Task.yield() }
    switch fate {
    case .stale:
      _ = token.end()
      try queue.run()
    case .closed: _ = queue.end()
    case .full: try queue.post(token, tracker.make())
    case .wrongThread: Worker { _ = try? queue.run() }.join()
    case .cancelled: waiting.cancel()
    }
    #expect(await waiting.value == fate.rawValue)
    if queue.isLive { try queue.run() }
    #expect(counter.count == (fate == .full ? 1 : 0))
    #expect(tracker.liveCount == 0)
  }

  @Test("A call that has begun is awaited, though its task is cancelled")
  func cancelledInside() async throws {
    let registry = try Registry()
    let queue = try CallQueue("work", in: registry)
    let begun = Gate()
    let goOn = Gate()
    let token = try registry.register("slow") {
      begun.open()
      goOn.wait()
      return 5
    }.keep()
    let waiting = Task { try await queue.call(token) }
    await begun.opened()
    waiting.cancel()
    goOn.open()
    #expect(try await waiting.value == 5)
  }

  @Test("A call in a cancelled task never begins")
  func cancelledBefore() async throws {
    let registry = try Registry()
    let queue = try CallQueue("work", in: registry, on: .pumped)
    let tracker = Tracker()
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in object.touch()
    }.keep()
    let told = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await name { try await queue.call(token, tracker.make()) }
    }.value
    #expect(told == "cancelled")
    try queue.run()
    #expect(tracker.liveCount == 0)
  }

  @Test("Cancelling and delivering at once gives one of both (A12)")
  func race() async throws {
    let registry = try Registry(level: .lifecycle)
    let queue = try CallQueue("work", in: registry)
    let tracker = Tracker()
    let calls = Counter()
    let token = try registry.register("take") {
      (object: Tracker.Tracked) in
      object.touch()
      calls.increment()
    }.keep()
    var outputs = 0
    for _ in 0..<500 {
      let task = Task {
        await name { try await queue.call(token, tracker.make()) }
      }
      task.cancel()
      let told = await task.value
      #expect(told == nil || told == "cancelled")
      if told == nil { outputs += 1 }
    }
    #expect(queue.end(waiting: .seconds(3_600)).isEnded)
    #expect(calls.count == outputs)
    #expect(tracker.liveCount == 0)
  }

  @Test("A dead object's callback throws stale")
  func deadObject() async throws {
    let registry = try Registry()
    let queue = try CallQueue("work", in: registry)
    let tracker = Tracker()
    let token: Token<Int, Int>
    do {
      let object = tracker.make()
      token = try registry.register("weak", owner: object) { _, x in x }.keep()
      withExtendedLifetime(object) {}
    }
    #expect(await name { _ = try await queue.call(token, 1) } == "stale")
    #expect(!token.isLive)
  }
}

/// The name of the error that a piece of code throws.
func name(
  _ body: nonisolated(nonsending) () async throws -> Void
) async -> String? {
  do {
    try await body()
    return nil
  } catch let error as RegistryError {
    return error.name
  } catch {
    Issue.record(error)
    return nil
  }
}

/// The name of the error that a piece of code throws.
func errorName(_ body: () throws -> Void) -> String? { thrown(body)?.name }

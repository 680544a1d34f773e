// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Values of signals")
struct SignalValuesTests {
  private let registry: Registry
  private let tracker = Tracker()

  init() throws { registry = try Registry() }

  @Test("A loop gets what was emitted since values(), and ends with the signal")
  func loop() async throws {
    let signal = try Signal<Int>("number", in: registry)
    let values = try signal.values()
    for number in 0..<3 { try signal.emit(number) }
    #expect(signal.end().isEnded)
    var seen: [Int] = []
    for await number in values { seen.append(number) }
    #expect(seen == [0, 1, 2])
    #expect(values.droppedCount == 0)
    #expect(!values.isLive)
  }

  @Test("A waiting loop is resumed by an emission, and by the end")
  func resumed() async throws {
    let signal = try Signal<Int>("number", in: registry)
    let values = try signal.values()
    let task = Task {
      var seen: [Int] = []
      for await number in values {
        seen.append(number)
        if number == 9 { _ = signal.end() }
      }
      return seen
    }
    for number in 0..<10 {
      await Task.yield()
      try signal.emit(number)
    }
    #expect(await task.value == Array(0..<10))
  }

  @Test("The bound drops the oldest or the newest, and counts")
  func bounds() async throws {
    let signal = try Signal<Int>("number", in: registry)
    let newest = try signal.values(bufferingPolicy: .bufferingNewest(2))
    let oldest = try signal.values(bufferingPolicy: .bufferingOldest(2))
    let none = try signal.values(bufferingPolicy: .bufferingNewest(0))
    for number in 0..<5 { try signal.emit(number) }
    #expect(signal.end().isEnded)
    #expect(await all(of: newest) == [3, 4])
    #expect(newest.droppedCount == 3)
    #expect(await all(of: oldest) == [0, 1])
    #expect(oldest.droppedCount == 3)
    #expect(await all(of: none) == [])
    #expect(none.droppedCount == 5)
  }

  @Test("Leaving the loop ends the connection and frees what was kept")
  func left() async throws {
    let signal = try Signal<Tracker.Tracked>("object", in: registry)
    let values = try signal.values()
    for _ in 0..<5 { try signal.emit(tracker.make()) }
    for await object in values {
      object.touch()
      break
    }
    #expect(!values.isLive)
    #expect(values.droppedCount == 4)
    #expect(tracker.liveCount == 0)
    #expect(try signal.emit(tracker.make()).called == 0)
    // There is nothing for a second loop.
    for await _ in values { Issue.record("a second loop") }
  }

  @Test("Releasing a sequence that no loop went through ends its connection")
  func neverLooped() throws {
    let signal = try Signal<Tracker.Tracked>("object", in: registry)
    do {
      let values = try signal.values()
      try signal.emit(tracker.make())
      #expect(tracker.liveCount == 1)
      #expect(values.isLive)
    }
    #expect(tracker.liveCount == 0)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("Cancelling the task of a waiting loop ends it and its connection")
  func cancelled() async throws {
    let signal = try Signal<Tracker.Tracked>("object", in: registry)
    let values = try signal.values()
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let task = Task {
      var count = 0
      for await object in values {
        object.touch()
        count += 1
        beginning.yield()
      }
      return (count, Task.isCancelled)
    }
    try signal.emit(tracker.make())
    for await _ in began { break }
    task.cancel()
    let (count, isCancelled) = await task.value
    #expect(count == 1)
    #expect(isCancelled)
    #expect(!values.isLive)
    #expect(try signal.emit(tracker.make()).called == 0)
    #expect(tracker.liveCount == 0)
    let story = values.explanation.story
    #expect(story.contains("values"))
  }

  @Test("A task that was cancelled before gets nothing, and drops what is kept")
  func cancelledBefore() async throws {
    let signal = try Signal<Tracker.Tracked>("object", in: registry)
    let values = try signal.values()
    try signal.emit(tracker.make())
    let gate = AsyncStream<Void>.makeStream()
    let task = Task {
      for await _ in gate.stream {}
      var count = 0
      for await _ in values { count += 1 }
      return count
    }
    task.cancel()
    gate.continuation.finish()
    #expect(await task.value == 0)
    #expect(values.droppedCount == 1)
    #expect(tracker.liveCount == 0)
  }

  @Test("Each value is got, or counted as dropped, whoever is first (B1)")
  func races() async throws {
    let signal = try Signal<Tracker.Tracked>("object", in: registry)
    for round in 0..<100 {
      let values = try signal.values(bufferingPolicy: .bufferingNewest(4))
      let task = Task {
        var count = 0
        for await object in values {
          object.touch()
          count += 1
          if count == 20 { break }
        }
        return count
      }
      let emitter = Task {
        var count = 0
        for _ in 0..<40 {
          count += (try? signal.emit(tracker.make()).called) ?? 0
        }
        return count
      }
      if round % 2 == 0 { task.cancel() }
      let emitted = await emitter.value
      if round % 4 == 1 { _ = values.makeAsyncIterator() }
      task.cancel()
      let got = await task.value
      #expect(got + values.droppedCount == emitted)
    }
    #expect(tracker.liveCount == 0)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("A failed connection leaves nothing behind (G6)")
  func failure() throws {
    let signal = try Signal<Int>("number", in: registry)
    _ = signal.end()
    #expect(thrown { _ = try signal.values() }?.name == "stale")
    #expect(try registry.statistics.liveTokens == 0)
  }

  private func all(of values: SignalValues<Int>) async -> [Int] {
    var seen: [Int] = []
    for await number in values { seen.append(number) }
    return seen
  }
}

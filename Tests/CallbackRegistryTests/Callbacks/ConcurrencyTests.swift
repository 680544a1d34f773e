// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Foundation
import Testing

@Suite("Concurrency")
struct ConcurrencyTests {
  @Test(
    "Calls, ends, owners and objects from all sides (A12, F10)",
    arguments: [Registry.Level.off, .lifecycle, .calls])
  func mixture(_ level: Registry.Level) throws {
    let path = temporaryPath()
    let file = try Registry(
      history: .file(path), level: level, label: "mixture")
    let tracker = Tracker()
    let board = Board()
    let workers = (0..<4).map { seed in
      Worker { run(board, file, tracker, seed: UInt64(seed + 1)) }
    }
    for worker in workers { worker.join() }
    for token in board.takeAll() { _ = token.end(waiting: .seconds(3_600)) }
    _ = try file.leaks()
    #expect(tracker.liveCount == 0)
    #expect(tracker.madeCount > 0)
    #expect(try file.statistics.liveTokens == 0)
    if level != .off { try file.flush() }
    #expect(file.close(waiting: .seconds(3_600)).isEnded)
    if level != .off { try expectSoundHistory(path) }
  }

  /// Tokens that threads give to each other.
  private final class Board: Sendable {
    private let places = Locked<[Token<Int, Int>]>([])

    func put(_ token: Token<Int, Int>) {
      places.withLock { $0.append(token) }
    }

    func pick(_ number: UInt64) -> Token<Int, Int>? {
      places.withLock { places in
        places.isEmpty ? nil : places[Int(number % UInt64(places.count))]
      }
    }

    func takeAll() -> [Token<Int, Int>] {
      places.withLock { places in
        defer { places = [] }
        return places
      }
    }
  }

  private func run(
    _ board: Board, _ registry: Registry, _ tracker: Tracker, seed: UInt64
  ) {
    final class Target: Sendable {
      let tracked: Tracker.Tracked

      init(_ tracked: Tracker.Tracked) { self.tracked = tracked }
    }
    var random = seed &* 0x9E37_79B9_7F4A_7C15
    var owner = try? Owner("worker", in: registry)
    var target = Target(tracker.make())
    for _ in 0..<1_500 {
      random ^= random << 13
      random ^= random >> 7
      random ^= random << 17
      let object = tracker.make()
      switch random % 8 {
      case 0:
        let token = try? registry.register("free") { (x: Int) in
          object.touch()
          return x + 1
        }.keep()
        if let token { board.put(token) }
      case 1:
        let token = try? registry.register("owned", owner: owner) {
          (x: Int) in
          object.touch()
          return x + 1
        }.keep()
        if let token { board.put(token) }
      case 2:
        let token = try? registry.register("of object", owner: target) {
          (target, x: Int) in
          target.tracked.touch()
          return x + 1
        }.keep()
        if let token { board.put(token) }
      case 3:
        _ = board.pick(random >> 8)?.end(
          waiting: random & 256 == 0 ? .milliseconds(1) : nil)
      case 4 where random & 0xF00 == 0:
        owner = try? Owner("worker", in: registry)
      case 5 where random & 0xF00 == 0:
        target = Target(tracker.make())
      default:
        if let token = board.pick(random >> 8) {
          do throws(RegistryError) {
            let answer = try token.call(1)
            #expect(answer == 2)
          } catch {
            #expect(error.name == "stale")
          }
        }
      }
    }
    withExtendedLifetime((owner, target)) {}
  }

  @Test("Threads that call one token see every one of their calls")
  func oneTokenManyThreads() throws {
    let registry = try Registry(level: .lifecycle)
    let counter = Counter()
    let token = try registry.register("shared") { counter.increment() }.keep()
    let workers = (0..<4).map { _ in
      Worker {
        for _ in 0..<20_000 {
          #expect(throws: Never.self) { try token.call() }
        }
      }
    }
    for worker in workers { worker.join() }
    #expect(counter.count == 80_000)
    #expect(token.end(waiting: .seconds(3_600)).isEnded)
  }

  @Test("Tokens cross tasks and actors")
  func tasks() async throws {
    actor Collector {
      private(set) var total = 0

      func collect(_ token: Token<Int, Int>) throws {
        total += try token.call(20)
      }
    }
    let registry = try Registry()
    let token = try registry.register("double") { (x: Int) in x * 2 }.keep()
    let collector = Collector()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<10 {
        group.addTask { try await collector.collect(token) }
      }
      try await group.waitForAll()
    }
    #expect(await collector.total == 400)
    #expect(token.end(waiting: .seconds(3_600)).isEnded)
  }

  private enum Request {
    @TaskLocal static var name = "nobody's"
  }

  @Test("A call runs in its caller's task, and sees what is local to that")
  func taskLocalValues() async throws {
    let registry = try Registry()
    let who = try registry.register("who") { Request.name }.keep()
    let signal = try Signal<Void>("asked", in: registry)
    let seen = Locked<[String]>([])
    let connection = try signal.connect("seen") { _ in
      seen.withLock { $0.append(Request.name) }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in ["one", "two"] {
        group.addTask {
          try Request.$name.withValue(name) {
            #expect(try who.call() == name)
            try signal.emit()
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(seen.withLock { $0.sorted() } == ["one", "two"])
    #expect(try who.call() == "nobody's")
    _ = connection.end()
  }

  @Test("What a cancelled task has registered ends with it (G7)")
  func cancelledTask() async throws {
    let registry = try Registry()
    let tracker = Tracker()
    let made = Locked<Token<Void, Void>?>(nil)
    let task = Task {
      let registration = try registry.register("of the task") {
        [object = tracker.make()] in object.touch()
      }
      made.withLock { $0 = registration.token }
      try await Task.sleep(for: .seconds(3_600))
      try registration.call()
    }
    while made.withLock({ $0 }) == nil { await Task.yield() }
    let token = try #require(made.withLock { $0 })
    try token.call()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(!token.isLive)
    #expect(tracker.liveCount == 0)
    #expect(thrown { try token.call() }?.name == "stale")
  }
}

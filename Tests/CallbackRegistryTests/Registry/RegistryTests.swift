// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Foundation
import Testing

/// Expects what must hold of every history (A1, A2).
func expectSoundHistory(_ path: String) throws {
  let violations = try rows("SELECT * FROM violations", in: path)
  #expect(violations == [])
  let unbalanced = try rows(
    "SELECT * FROM conservation WHERE holds IS NOT 1", in: path)
  #expect(unbalanced == [])
  for suffix in ["", "-wal", "-shm"] {
    try? FileManager.default.removeItem(atPath: path + suffix)
  }
}

@Suite("Registry")
struct RegistryTests {
  @Test("A file tells the story to any SQLite")
  func file() throws {
    let path = temporaryPath()
    let registry = try Registry(history: .file(path), label: "shop")
    let token = try registry.register("order") { (_: Int) in }.keep()
    for number in 0..<5 { try token.call(number) }
    #expect(token.end(reason: .cancelled).isEnded)
    for number in 0..<3 {
      #expect(
        thrown { try token.call(number) } != nil)
    }
    try registry.note("a remark", about: token)
    #expect(try registry.flush(to: .disk) > 0)
    let life = try rows(
      "SELECT label, calls, refusals FROM token_life WHERE kind = 'token'",
      in: path)
    #expect(life == ["order|5|3"])
    #expect(try registry.statistics.refused == 3)
    #expect(try registry.story(of: token).contains("order"))
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    try expectSoundHistory(path)
  }

  @Test("Levels can be set for a registry and for one callback")
  func levels() throws {
    let registry = try Registry(level: .off)
    #expect(try registry.level == .off)
    let quiet = try registry.register("quiet") {}.keep()
    try quiet.call()
    #expect(try registry.statistics.eventsEmitted == 0)
    try registry.setLevel(.calls)
    #expect(try registry.level == .calls)
    try quiet.call()
    let emitted = try registry.statistics.eventsEmitted
    #expect(emitted > 0)
    try quiet.setLevel(.lifecycle)
    let before = try registry.statistics.eventsEmitted
    try quiet.call()
    #expect(try registry.statistics.eventsEmitted == before)
    let loud = try registry.register("loud", level: .calls) {}.keep()
    try registry.setLevel(.lifecycle)
    let middle = try registry.statistics.eventsEmitted
    try loud.call()
    #expect(try registry.statistics.eventsEmitted == middle + 1)
    #expect(loud.end().isEnded)
    let error = thrown { try loud.setLevel(.off) }
    #expect(error?.name == "stale")
  }

  @Test("Statistics count")
  func statistics() throws {
    let registry = try Registry(level: .lifecycle)
    let owner = try Owner(in: registry)
    let token = try registry.register("a", owner: owner) {}.keep()
    let other = try registry.register("b") {}.keep()
    try token.call()
    #expect(other.end().isEnded)
    _ = thrown { try other.call() }
    let statistics = try registry.statistics
    #expect(statistics.liveTokens == 1)
    #expect(statistics.liveOwners == 1)
    #expect(statistics.registered == 2)
    #expect(statistics.ended == 1)
    #expect(statistics.refused == 1)
    #expect(statistics.abandoned == 0)
    #expect(statistics.slots >= 256)
    #expect(statistics.memoryBytes > 0)
    #expect(statistics.threads > 0)
    #expect(statistics.eventsLost == 0)
  }

  @Test("What is live, what leaks, and what an end would end")
  func looking() throws {
    let registry = try Registry()
    let owner = try Owner("holder", in: registry)
    let gate = Gate()
    let entered = Gate()
    let token = try registry.register("busy", owner: owner) {
      entered.open()
      gate.wait()
    }.keep()
    let line = #line - 4
    let caller = Worker { try? token.call() }
    entered.wait()
    let live = try registry.live()
    #expect(Set(live.map(\.label)) == ["holder", "busy"])
    let leaks = try registry.leaks()
    let busy = try #require(leaks.first)
    #expect(leaks.count == 1)
    #expect(busy.kind == .token)
    #expect(busy.handle == token.handle)
    #expect(busy.owner == owner.handle)
    #expect(busy.line == UInt(line))
    #expect(busy.file == "CallbackRegistryTests/RegistryTests.swift")
    #expect(busy.callsInFlight == 1)
    #expect(busy.leases == 0)
    #expect(busy.age > .zero)
    #expect("\(busy)".contains("\"busy\" at CallbackRegistryTests/"))
    let impact = try registry.impact(of: owner)
    #expect(Set(impact.map(\.handle)) == [owner.handle, token.handle])
    #expect(try registry.impact(of: token).map(\.callsInFlight) == [1])
    let other = try Registry()
    #expect(thrown { _ = try other.impact(of: token) }?.name == "foreign")
    #expect(thrown { _ = try other.impact(of: owner) }?.name == "foreign")
    gate.open()
    caller.join()
    #expect(owner.end(waiting: .seconds(3_600)).isEnded)
    let error = thrown {
      _ = try registry.impact(of: owner)
    }
    #expect(error?.name == "stale")
  }

  @Test("A file is whole when its registry is released just before the exit")
  func releaseBeforeExit() async throws {
    let path = temporaryPath()
    await #expect(processExitsWith: .success) { [path = path as String] in
      let registry = try Registry(history: .file(path))
      let token = try registry.register("last") {}.keep()
      for _ in 0..<10_000 { try token.call() }
    }
    let life = try rows(
      "SELECT calls FROM token_life WHERE label = 'last'", in: path)
    #expect(life == ["10000"])
    #expect(try rows("SELECT ended FROM run", in: path) == ["closed"])
    try expectSoundHistory(path)
  }

  @Test("Closing inside a callback is deferred, and happens (G12)")
  func closingInside() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let outcome = Later<Outcome>()
    let token = try registry.register("last") {
      [object = tracker.make()] in
      outcome.value = registry.close(waiting: .seconds(3_600))
      object.touch()
    }.keep()
    try token.call()
    #expect(outcome.value?.isDeferred == true)
    #expect(!registry.isLive)
    #expect(tracker.liveCount == 0)
  }

  @Test("All users of the process share one registry; a new one after it")
  func shared() throws {
    let first = try Registry.shared
    #expect(try Registry.shared === first)
    let token = try first.register("everybody's") { 1 }.keep()
    #expect(try token.call() == 1)
    #expect(first.close(waiting: .seconds(3_600)).isEnded)
    let second = try Registry.shared
    #expect(second.handle != first.handle)
    #expect(second.isLive)
    // Another object for the same registry does not close it.
    #expect(Registry(handle: second.handle)?.isLive == true)
    #expect(second.isLive)
    #expect(second.close(waiting: .seconds(3_600)).isEnded)
  }
}

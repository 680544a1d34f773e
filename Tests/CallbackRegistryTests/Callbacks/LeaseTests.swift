// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CInterchange
import CallbackRegistry
import Testing

@Suite("Leases")
struct LeaseTests {
  @Test("A leased closure is called and kept after its end, across await (G8)")
  func acrossAwait() async throws {
    let registry = try Registry()
    let tracker = Tracker()
    let token = try registry.register("add") {
      [object = tracker.make()] (a: Int, b: Int) in
      object.touch()
      return a + b
    }.keep()
    let lease = try token.lease()
    #expect(try registry.statistics.liveLeases == 1)
    await Task { #expect(token.end().isPending) }.value
    await Task.yield()
    #expect(thrown { _ = try token.call(1, 2) }?.name == "stale")
    #expect(try lease.call(1, 2) == 3)
    #expect(try lease.call((3, 4)) == 7)
    #expect(tracker.liveCount == 1)
    // One that is waited for is waited for with its leases.
    #expect(token.end(waiting: .zero).isTimedOut)
    lease.end()
    #expect(tracker.liveCount == 0)
    #expect(try registry.statistics.liveLeases == 0)
    #expect(token.end(waiting: .seconds(3_600)).isAlready)
  }

  @Test("A lease ends with its scope, also of a cancelled task (G8)")
  func cancelled() async throws {
    let registry = try Registry()
    let tracker = Tracker()
    let token = try registry.register("held") {
      [object = tracker.make()] in object.touch()
    }.keep()
    let task = Task {
      let lease = try token.lease()
      try await Task.sleep(for: .seconds(3_600))
      try lease.call()
    }
    while try registry.statistics.liveLeases == 0 { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try registry.statistics.liveLeases == 0)
    #expect(token.end().isEnded)
    #expect(tracker.liveCount == 0)
    #expect(thrown { _ = try token.lease() }?.name == "stale")
  }

  @Test("The object of a leased closure may die all the same (G18)")
  func deadObject() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let token: Token<Void, Int>
    do {
      let object = tracker.make()
      token = try registry.register("weak", owner: object) { object in
        object.touch()
        return 1
      }.keep()
      #expect(try token.lease().call() == 1)
      withExtendedLifetime(object) {}
    }
    let lease = try token.lease()
    #expect(thrown { _ = try lease.call() }?.name == "stale")
    #expect(!token.isLive)
  }

  @Test("What C has registered is leased here, and the other way (C10)")
  func betweenCAndSwift() throws {
    let registry = try Registry()
    var seen = interchange_seen()
    var number: cbr_token = 0
    let tag = Token<interchange_point, Double>.typeTag
    #expect(
      interchange_register(registry.handle, tag, &seen, &number) == CBR_OK)
    let token = try #require(
      Token<interchange_point, Double>(handle: number))
    do {
      let lease = try token.lease()
      #expect(token.end().isPending)
      let point = interchange_point(x: 2, weight: 4)
      #expect(try lease.call(point) == 8)
      #expect(seen.destroyed == 0)
      #expect(cbr_is_live(lease.handle))
    }
    #expect(seen.destroyed == 1)

    let tracker = Tracker()
    let swift = try registry.register("of Swift") {
      [object = tracker.make()] in object.touch()
    }.keep()
    var held: cbr_lease_handle = 0
    #expect(cbr_lease(swift.handle, &held) == CBR_OK)
    #expect(swift.end().isPending)
    #expect(tracker.liveCount == 1)
    #expect(cbr_lease_end(held) == CBR_OK)
    #expect(tracker.liveCount == 0)
  }
}

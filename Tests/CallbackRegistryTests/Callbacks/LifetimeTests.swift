// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Lifetimes")
struct LifetimeTests {
  @Test("A registration ends its token when it goes out of scope")
  func scope() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let token: Token<Void, Void>
    do {
      let registration = try registry.register("scoped") {
        [object = tracker.make()] in object.touch()
      }
      token = registration.token
      let isLive = registration.isLive
      #expect(isLive)
      try registration.call()
    }
    #expect(!token.isLive)
    #expect(tracker.liveCount == 0)
  }

  @Test("A property of an object is such a scope")
  func propertyScope() throws {
    final class Holder {
      let registration: Registration<Int, Int>

      init(_ registration: consuming Registration<Int, Int>) {
        self.registration = registration
      }
    }
    let registry = try Registry()
    let token: Token<Int, Int>
    do {
      let holder = Holder(try registry.register("held") { $0 + 1 })
      token = holder.registration.token
      #expect(try holder.registration.call(1) == 2)
      withExtendedLifetime(holder) {}
    }
    #expect(thrown { _ = try token.call(1) } != nil)
  }

  @Test("Kept, it outlives its scope")
  func keep() throws {
    let registry = try Registry()
    let token: Token<Void, Int>
    do {
      token = try registry.register("kept") { 3 }.keep()
    }
    #expect(try token.call() == 3)
    #expect(token.end().isEnded)
  }

  @Test("Ended early, its scope's end is harmless (G16)")
  func earlyEnd() throws {
    let registry = try Registry()
    let registration = try registry.register("early") { 3 }
    #expect(registration.end().isEnded)
    let next = try registry.register("next") { 4 }
    #expect(registration.end().isAlready)
    #expect(try next.call() == 4)
  }

  /// The ways in which a closure's life ends.
  enum Way: CaseIterable, Sendable {
    case scope, end, waitingEnd, owner, ownerEnd, parentOwner, registryClose
    case registryRelease, oneShot, deferred, abandonedScope
  }

  @Test(
    "Every closure is released exactly once, however it ends (G7)",
    arguments: Way.allCases)
  func releasedOnce(_ way: Way) throws {
    let tracker = Tracker()
    try end(way, tracker)
    #expect(tracker.madeCount == 1)
    #expect(tracker.freedCount == 1)
  }

  private func end(_ way: Way, _ tracker: Tracker) throws {
    let registry = try Registry()
    let body: @Sendable () -> Void = { [object = tracker.make()] in
      object.touch()
    }
    switch way {
    case .scope:
      let registration = try registry.register("x", body)
      try registration.call()
    case .end:
      #expect(try registry.register("x", body).keep().end().isEnded)
    case .waitingEnd:
      let token = try registry.register("x", body).keep()
      #expect(token.end(waiting: .seconds(3_600)).isEnded)
    case .owner:
      let owner = try Owner(in: registry)
      _ = try registry.register("x", owner: owner, body).keep()
    case .ownerEnd:
      let owner = try Owner(in: registry)
      let token = try registry.register("x", owner: owner, body).keep()
      #expect(owner.end().isEnded)
      #expect(!token.isLive)
    case .parentOwner:
      let parent = try Owner("parent", in: registry)
      let child = try Owner("child", in: parent)
      let token = try registry.register("x", owner: child, body).keep()
      #expect(parent.end().isEnded)
      #expect(!token.isLive)
      #expect(!child.isLive)
    case .registryClose:
      _ = try registry.register("x", body).keep()
      #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    case .registryRelease:
      _ = try registry.register("x", body).keep()
    case .oneShot:
      try registry.register("x", options: .oneShot, body).keep().call()
    case .deferred:
      let itself = Later<Token<Void, Void>>()
      let token = try registry.register("x") {
        body()
        #expect(itself.value?.end().isDeferred == true)
      }.keep()
      itself.value = token
      try token.call()
    case .abandonedScope:
      // Nobody even binds it.
      _ = try registry.register("x", body)
    }
  }

  @Test("A failed registration releases its closure, once (G6, F15)")
  func failedRegistrationTakesNothing() throws {
    let tracker = Tracker()
    let registry = try Registry()
    let other = try Registry()
    let foreign = try Owner(in: other)
    let dead = try Owner(in: registry)
    #expect(dead.end().isEnded)
    let closed = try Registry()
    #expect(closed.close().isEnded)
    let body: @Sendable (Tracker.Tracked) -> @Sendable () -> Void = { object in
      { object.touch() }
    }
    let failures: [(String, () throws -> Void)] = [
      (
        "invalid",
        {
          _ = try registry.register(
            String(repeating: "x", count: 256), body(tracker.make()))
        }
      ),
      (
        "invalid",
        {
          _ = try registry.register(
            "x", options: CallbackOptions(rawValue: 1 << 20),
            body(tracker.make()))
        }
      ),
      (
        "foreign",
        {
          _ = try registry.register("x", owner: foreign, body(tracker.make()))
        }
      ),
      (
        "stale",
        {
          _ = try registry.register("x", owner: dead, body(tracker.make()))
        }
      ),
      (
        "closed",
        {
          _ = try closed.register("x", body(tracker.make()))
        }
      ),
    ]
    for (index, (name, failure)) in failures.enumerated() {
      #expect(thrown(failure)?.name == name)
      #expect(tracker.madeCount == index + 1)
      #expect(tracker.liveCount == 0)
    }
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("An owner's deinit ends all that is registered to it (G17, F14)")
  func ownerEndsAll() throws {
    let registry = try Registry()
    let tracker = Tracker()
    var tokens: [Token<Int, Void>] = []
    do {
      let owner = try Owner("observer", in: registry)
      for _ in 0..<500 {
        tokens.append(
          try registry.register("observe", owner: owner) {
            [object = tracker.make()] (_: Int) in object.touch()
          }.keep())
      }
      #expect(try registry.statistics.liveTokens == 500)
      #expect(try registry.impact(of: owner).count == 501)
    }
    #expect(tokens.allSatisfy { !$0.isLive })
    #expect(tracker.freedCount == 500)
    #expect(try registry.statistics.liveTokens == 0)
    #expect(try registry.statistics.liveOwners == 0)
    #expect(try registry.leaks().isEmpty)
  }

  @Test("What a closure captured may use the registry in its deinit (G13, B8)")
  func deinitUsesTheRegistry() throws {
    final class Curious: Sendable {
      let registry: Registry
      let token = Later<Token<Void, Void>>()
      let seen: Counter

      init(_ registry: Registry, _ seen: Counter) {
        self.registry = registry
        self.seen = seen
      }

      deinit {
        // Deadlocks if a lock of the library were held.
        guard (try? registry.statistics) != nil,
          let added = try? registry.register("late", { 1 }),
          (try? added.call()) == 1,
          (try? registry.live()) != nil,
          (try? registry.note("released")) != nil,
          // Waiting for itself, which is being released.
          case .deferred? = token.value?.end(waiting: .seconds(3_600))
        else { return }
        seen.increment()
      }
    }
    let registry = try Registry()
    let seen = Counter()
    do {
      let curious = Curious(registry, seen)
      let token = try registry.register("curious") { [curious] in
        withExtendedLifetime(curious) {}
      }.keep()
      curious.token.value = token
    }
    // Held by its closure alone, it is released by the thread that ends that.
    let live = try registry.live()
    #expect(live.map(\.label) == ["curious"])
    let token = try #require(
      live.first.flatMap { Token<Void, Void>(handle: $0.handle) })
    #expect(token.end().isEnded)
    #expect(seen.count == 1)
    // Once more, by the thread that leaves last.
    do {
      let itself = Later<Token<Void, Void>>()
      let curious = Curious(registry, seen)
      let token = try registry.register("curious") { [curious] in
        withExtendedLifetime(curious) {}
        #expect(itself.value?.end().isDeferred == true)
      }.keep()
      curious.token.value = token
      itself.value = token
    }
    let last = try #require(
      try registry.live().first.flatMap {
        Token<Void, Void>(handle: $0.handle)
      })
    try last.call()
    #expect(seen.count == 2)
  }

  @Test("A registry that nobody holds closes; its tokens say so")
  func releasedRegistry() throws {
    let token: Token<Void, Int>
    do {
      let registry = try Registry()
      token = try registry.register("orphan") { 1 }.keep()
      #expect(try token.call() == 1)
      withExtendedLifetime(registry) {}
    }
    let error = thrown { _ = try token.call() }
    #expect(error?.name == "closed")
    #expect(token.end().isAlready)
  }

  @Test("An owner keeps its registry open")
  func ownerHoldsRegistry() throws {
    let owner: Owner
    do {
      owner = try Owner(in: try Registry())
    }
    let token = try owner.registry.register("held", owner: owner) { 2 }.keep()
    #expect(try token.call() == 2)
  }
}

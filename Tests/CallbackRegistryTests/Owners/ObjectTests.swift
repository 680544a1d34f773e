// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Synchronization
import Testing

/// An object that knows whether its deinit has begun.
private final class Listener: Sendable {
  let number: Int
  private let isDying = Atomic<Bool>(false)
  private let heard: Counter
  private let heardInDeinit: Counter
  private let onDeinit: (@Sendable () -> Void)?

  init(
    _ number: Int = 0, heard: Counter = Counter(),
    heardInDeinit: Counter = Counter(),
    onDeinit: (@Sendable () -> Void)? = nil
  ) {
    self.number = number
    self.heard = heard
    self.heardInDeinit = heardInDeinit
    self.onDeinit = onDeinit
  }

  func hear() {
    heard.increment()
    if isDying.load(ordering: .sequentiallyConsistent) {
      heardInDeinit.increment()
    }
  }

  deinit {
    isDying.store(true, ordering: .sequentiallyConsistent)
    onDeinit?()
  }
}

@Suite("Objects as owners")
struct ObjectTests {
  @Test("The closure gets the object, which is held only while it runs")
  func promotedForTheCall() throws {
    let registry = try Registry()
    weak var observed: Listener?
    let token: Token<Int, Int>
    do {
      let listener = Listener(40)
      observed = listener
      token = try registry.register("add", owner: listener) {
        (listener, amount: Int) in listener.number + amount
      }.keep()
      #expect(try token.call(2) == 42)
    }
    // No cycle: the callback does not keep its object.
    #expect(observed == nil)
    let error = thrown { _ = try token.call(2) }
    #expect(error?.name == "stale")
    #expect(!token.isLive)
  }

  @Test("The call that finds the object dead ends all of its callbacks")
  func deathEndsAll() throws {
    let registry = try Registry()
    let tracker = Tracker()
    var tokens: [Token<Void, Void>] = []
    do {
      let listener = Listener()
      for _ in 0..<100 {
        tokens.append(
          try registry.register("hear", owner: listener) {
            [object = tracker.make()] listener in
            object.touch()
            listener.hear()
          }.keep())
      }
      #expect(try registry.impact(of: listener).count == 101)
      #expect(try registry.statistics.liveOwners == 1)
    }
    let token = tokens[50]
    #expect(
      thrown { try token.call() }?.name == "stale")
    #expect(tokens.allSatisfy { !$0.isLive })
    #expect(tracker.liveCount == 0)
    #expect(try registry.statistics.liveOwners == 0)
    #expect(try registry.story(of: token).contains("object died"))
    #expect(try registry.story(of: token).contains("Listener"))
  }

  @Test(
    "The attempt that finds the object dead is a refusal, no call (A1)",
    arguments: [Registry.Level.off, .lifecycle, .calls])
  func deadObjectIsARefusal(_ level: Registry.Level) throws {
    let path = temporaryPath()
    let registry = try Registry(history: .file(path), level: level)
    let token: Token<Void, Void>
    do {
      let listener = Listener()
      token = try registry.register("hear", owner: listener) { $0.hear() }
        .keep()
      for _ in 0..<3 { try token.call() }
    }
    for _ in 0..<2 {
      #expect(thrown { try token.call() }?.name == "stale")
    }
    #expect(try registry.statistics.refused == 2)
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    guard level != .off else { return }
    let life = try rows(
      """
      SELECT calls, refusals, ended_reason FROM token_life
      WHERE label = 'hear'
      """, in: path)
    #expect(life == ["3|2|object died"])
    try expectSoundHistory(path)
  }

  @Test("Looking at what is live ends what belongs to dead objects (F14)")
  func lookingFindsTheDead() throws {
    let registry = try Registry()
    do {
      let listener = Listener()
      _ = try registry.register("hear", owner: listener) { $0.hear() }.keep()
    }
    #expect(try registry.leaks().isEmpty)
    #expect(try registry.live().isEmpty)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("Dead objects that are never called again do not pile up (F14)")
  func registeringFindsTheDead() throws {
    /// Keeps a dead object's memory, so that no other object comes there.
    struct Grave {
      unowned let listener: Listener
    }
    let registry = try Registry(level: .lifecycle)
    var graves: [Grave] = []
    for _ in 0..<2_000 {
      let listener = Listener()
      graves.append(Grave(listener: listener))
      _ = try registry.register("hear", owner: listener) { $0.hear() }.keep()
    }
    #expect(try registry.statistics.liveTokens < 100)
    #expect(graves.count == 2_000)
  }

  @Test("Looking for the dead releases nobody under a lock (B8, G13)")
  func lookingRacesReleases() throws {
    let registry = try Registry(level: .off)
    let died = Counter()
    let isOver = Counter()
    let looker = Worker {
      while isOver.count == 0 { _ = try? registry.leaks() }
    }
    for _ in 0..<200 {
      var listeners = (0..<32).map { _ in
        Listener {
          // Takes every lock that looking takes; it would wait for itself.
          if (try? registry.leaks()) != nil { died.increment() }
        }
      }
      for listener in listeners {
        _ = try registry.register("hear", owner: listener) { $0.hear() }.keep()
      }
      while listeners.popLast() != nil {}
    }
    isOver.increment()
    looker.join()
    #expect(died.count == 6_400)
    #expect(try registry.leaks().isEmpty)
  }

  @Test("A new object at an old address is not mistaken for it (C19, G18)")
  func addressReuse() throws {
    let registry = try Registry(level: .lifecycle)
    let heard = Counter()
    let misdelivered = Counter()
    var addresses: Set<ObjectIdentifier> = []
    var tokens: [Token<Int, Void>] = []
    for round in 0..<1_000 {
      let listener = Listener(round)
      addresses.insert(ObjectIdentifier(listener))
      let token = try registry.register("post", owner: listener) {
        (listener, wanted: Int) in
        if listener.number == wanted {
          heard.increment()
        } else {
          misdelivered.increment()
        }
      }.keep()
      if let former = tokens.last {
        let error = thrown {
          try former.call(round)
        }
        #expect(error?.name == "stale")
      }
      // That did not end the newer object's callbacks.
      try token.call(round)
      tokens.append(token)
    }
    #expect(heard.count == 1_000)
    #expect(misdelivered.count == 0)
    #expect(addresses.count <= 1_000)
  }

  @Test("No call begins on an object whose deinit has begun (F11)")
  func noCallDuringDeinit() throws {
    let registry = try Registry()
    let token = Later<Token<Void, Void>>()
    let heard = Counter()
    let refused = Counter()
    do {
      let listener = Listener(heard: heard) {
        let error = thrown {
          try token.value?.call()
        }
        if error?.name == "stale" { refused.increment() }
      }
      let registered = try registry.register("hear", owner: listener) {
        listener in listener.hear()
      }.keep()
      token.value = registered
      try registered.call()
    }
    #expect(heard.count == 1)
    #expect(refused.count == 1)
  }

  @Test("The last release races the calls (B10)")
  func lastReleaseRacesCalls() throws {
    let registry = try Registry(level: .lifecycle)
    let heardInDeinit = Counter()
    let heard = Counter()
    let died = Counter()
    for _ in 0..<300 {
      let box = Locked<Listener?>(
        Listener(heard: heard, heardInDeinit: heardInDeinit) {
          // On whichever thread: no lock of the library is held.
          if (try? registry.statistics) != nil { died.increment() }
        })
      let token = try box.withLock {
        try registry.register("hear", owner: $0!) { $0.hear() }.keep()
      }
      let started = Gate()
      let callers = (0..<2).map { _ in
        Worker {
          repeat { started.open() } while (try? token.call()) != nil
        }
      }
      started.wait()
      let last = box.withLock { object in
        defer { object = nil }
        return object
      }
      withExtendedLifetime(last) {}
      _ = consume last
      for caller in callers { caller.join() }
      #expect(!token.isLive)
    }
    #expect(died.count == 300)
    #expect(heardInDeinit.count == 0)
    #expect(heard.count > 0)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("An object with an owner of its own ends its callbacks exactly")
  func callbackOwner() throws {
    final class Downloader: CallbackOwner, Sendable {
      let callbacks: Owner
      let token = Later<Token<Double, Void>>()
      let log: @Sendable (String) -> Void

      init(
        _ registry: Registry, log: @escaping @Sendable (String) -> Void
      ) throws {
        callbacks = try Owner("downloader", in: registry)
        self.log = log
      }

      deinit {
        let error = thrown {
          try token.value?.call(1)
        }
        log("deinit: \(error?.name ?? "called")")
      }
    }
    let registry = try Registry()
    let lines = Locked<[String]>([])
    let log: @Sendable (String) -> Void = { line in
      lines.withLock { $0.append(line) }
    }
    let token: Token<Double, Void>
    let other: Token<Void, Void>
    do {
      let downloader = try Downloader(registry, log: log)
      token = try registry.register("progress", owner: downloader) {
        (downloader, fraction: Double) in
        downloader.log("progress \(fraction)")
      }.keep()
      other = try registry.register("other", owner: downloader.callbacks) {
        log("other")
      }.keep()
      downloader.token.value = token
      try token.call(0.5)
      #expect(try registry.impact(of: downloader).count == 3)
    }
    // In its deinit the object is refused; all is ended when it is gone, with
    // nobody having called or looked.
    #expect(!token.isLive)
    #expect(!other.isLive)
    #expect(lines.withLock { $0 } == ["progress 0.5", "deinit: stale"])
    #expect(try registry.statistics.liveTokens == 0)
    #expect(try registry.statistics.liveOwners == 0)
  }

  @Test("An object can end its callbacks in its deinit, or before")
  func explicitEnd() throws {
    let registry = try Registry()
    let token: Token<Void, Void>
    do {
      final class Tidy: Sendable {
        let registry: Registry

        init(_ registry: Registry) { self.registry = registry }

        deinit {
          #expect(registry.end(self).isEnded)
        }
      }
      let tidy = Tidy(registry)
      token = try registry.register("tidy", owner: tidy) { _ in }.keep()
    }
    #expect(!token.isLive)

    let listener = Listener()
    let first = try registry.register("hear", owner: listener) { $0.hear() }
      .keep()
    #expect(registry.end(listener, waiting: .seconds(3_600)).isEnded)
    #expect(!first.isLive)
    #expect(registry.end(listener).isEnded)
    // It may begin anew.
    let second = try registry.register("hear", owner: listener) { $0.hear() }
    try second.call()
  }

  @Test("Of an object with an owner of its own, that owner ends")
  func explicitEndOfCallbackOwner() throws {
    final class Player: CallbackOwner, Sendable {
      let callbacks: Owner

      init(_ registry: Registry) throws {
        callbacks = try Owner("player", in: registry)
      }
    }
    let registry = try Registry()
    let player = try Player(registry)
    let token = try registry.register("play", owner: player) { _ in }.keep()
    #expect(registry.end(player).isEnded)
    #expect(!player.callbacks.isLive)
    #expect(!token.isLive)
    #expect(
      thrown {
        _ = try registry.register("again", owner: player) { _ in }
      }?.name == "stale")
  }

  @Test("Many threads register to one object: it has one owner")
  func concurrentRegistration() throws {
    let registry = try Registry(level: .lifecycle)
    for _ in 0..<50 {
      let listener = Listener()
      let workers = (0..<4).map { _ in
        Worker {
          _ = try? registry.register("hear", owner: listener) { $0.hear() }
            .keep()
        }
      }
      for worker in workers { worker.join() }
      #expect(try registry.impact(of: listener).count == 5)
      #expect(try registry.statistics.liveOwners == 1)
      #expect(registry.end(listener).isEnded)
    }
    #expect(try registry.statistics.liveTokens == 0)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

@Suite("Signals")
struct SignalTests {
  private let registry: Registry
  private let heard = Heard()

  init() throws { registry = try Registry() }

  @Test("Handlers are called by priority, then in order of connection (G20)")
  func order() throws {
    let signal = try Signal<Int>("number", in: registry)
    var connections: [Token<Int, Void>] = []
    for (name, priority) in [("b", 0), ("c", 0), ("a", 1), ("d", -1)] {
      let connection = try signal.connect(name, priority: Int32(priority)) {
        [heard] in heard.add("\(name)\($0)")
      }
      connections.append(connection.keep())
    }
    let emission = try signal.emit(7)
    #expect(heard.take() == ["a7", "b7", "c7", "d7"])
    #expect(emission.called == 4)
    #expect(emission.blocked == 0)
    #expect(emission.ending == .complete)
    #expect(!emission.isStopped)
    #expect(connections[0].end().isEnded)
    #expect(try signal.emit(8).called == 3)
    #expect(heard.take() == ["a8", "c8", "d8"])
  }

  @Test("Several inputs are one tuple, and there may be none")
  func inputs() throws {
    let pair = try Signal<(String, Int)>("pair", in: registry)
    let named = try pair.connect("named") { [heard] name, count in
      heard.add("\(name) \(count)")
    }
    let whole = try pair.connect("whole") { [heard] pair in
      heard.add(pair.0)
    }
    try pair.emit("one", 1)
    try pair.emit(("two", 2))
    #expect(heard.take() == ["one 1", "one", "two 2", "two"])
    let nothing = try Signal<Void>("nothing", in: registry)
    let empty = try nothing.connect("empty") { [heard] in heard.add("empty") }
    #expect(try nothing.emit().called == 1)
    #expect(heard.take() == ["empty"])
    #expect(named.token.isLive && whole.token.isLive && empty.token.isLive)
  }

  @Test("A connection ends with its scope, unless it is kept")
  func scope() throws {
    let tracker = Tracker()
    let signal = try Signal<Int>("number", in: registry)
    do {
      let connection = try signal.connect("scoped") {
        [object = tracker.make()] _ in object.touch()
      }
      #expect(try signal.emit(1).called == 1)
      #expect(connection.token.isLive)
    }
    #expect(try signal.emit(2).called == 0)
    #expect(tracker.liveCount == 0)
    let token = try signal.connect("kept") {
      [object = tracker.make()] _ in object.touch()
    }.keep()
    #expect(try signal.emit(3).called == 1)
    #expect(tracker.liveCount == 1)
    let impact = try registry.impact(of: signal).map {
      "\($0.kind) \($0.label)"
    }
    #expect(impact == ["signal number", "token kept"])
    #expect(signal.end().isEnded)
    #expect(!token.isLive)
    #expect(tracker.liveCount == 0)
  }

  @Test("A handler may stop the emission, or disconnect itself (G20)")
  func answers() throws {
    let signal = try Signal<Double>("fraction", in: registry)
    let first = try signal.connectAnswering("first") { fraction in
      fraction < 1 ? .goOn : .stop
    }
    let second = try signal.connectAnswering("second") { [heard] _ in
      heard.add("second")
      return .disconnect
    }
    let stopped = try signal.emit(1)
    #expect(stopped.ending == .stopped(by: first.token.handle))
    #expect(stopped.isStopped)
    #expect(stopped.called == 1)
    #expect(heard.take().isEmpty)
    #expect(try signal.emit(0.5).called == 2)
    #expect(!second.token.isLive)
    #expect(try signal.emit(0.5).called == 1)
    #expect(heard.take() == ["second"])
  }

  @Test("Ending the signal from inside ends the emission (G20)")
  func endedInside() throws {
    let tracker = Tracker()
    let later = Later<Signal<Int>>()
    let signal = try Signal<Int>("number", in: registry)
    later.value = signal
    _ = try signal.connect("ends", priority: 1) {
      [object = tracker.make()] _ in
      object.touch()
      #expect(later.value?.end().isDeferred == true)
    }.keep()
    _ = try signal.connect("never") { _ in Issue.record("called") }.keep()
    let emission = try signal.emit(1)
    #expect(emission.ending == .signalEnded)
    #expect(emission.called == 1)
    #expect(tracker.liveCount == 0)
    #expect(thrown { try signal.emit(2) }?.name == "stale")
    #expect(!signal.isLive)
  }

  @Test("Blocking is counted, for all handlers and for one (G20)")
  func blocking() throws {
    let signal = try Signal<Int>("number", in: registry)
    let one = try signal.connect("one") { [heard] in heard.add("one\($0)") }
    let two = try signal.connect("two") { [heard] in heard.add("two\($0)") }
    try signal.block()
    try signal.block()
    #expect(try signal.emit(1).blocked == 2)
    try signal.unblock()
    #expect(try signal.emit(2).blocked == 2)
    try signal.unblock()
    #expect(thrown { try signal.unblock() }?.name == "invalid")
    try signal.withBlocked(one.token) {
      () throws(RegistryError) in
      let emission = try signal.emit(3)
      #expect(emission.called == 1)
      #expect(emission.blocked == 1)
    }
    let answer = try signal.withBlocked { () throws(RegistryError) in
      try signal.emit(4).called
    }
    #expect(answer == 0)
    try signal.emit(5)
    #expect(heard.take() == ["two3", "one5", "two5"])
    let other = try registry.register("other") { (_: Int) in }
    #expect(thrown { try signal.block(other.token) }?.name == "wrongKind")
    #expect(two.token.isLive)
  }

  @Test("Only its signal calls a handler (C14)")
  func notCallable() throws {
    let signal = try Signal<Int>("number", in: registry)
    let connection = try signal.connect("mine") { _ in }
    #expect(thrown { try connection.call(1) }?.name == "wrongType")
  }

  @Test("A handler of an object is not called once its deinit has begun (F11)")
  func objects() throws {
    let signal = try Signal<(Int, String)>("pair", in: registry)
    let later = Later<Token<(Int, String), Void>>()
    do {
      let listener = Listener(heard) { [heard, signal] in
        let emission = try? signal.emit(2, "late")
        heard.add("deinit \(emission?.called ?? -1)")
      }
      later.value = try signal.connect("hear", owner: listener) {
        listener, number, text in listener.hear("\(number)\(text)")
      }.keep()
      #expect(try signal.emit(1, "x").called == 1)
    }
    #expect(heard.take() == ["1x", "deinit 0"])
    let token = try #require(later.value)
    #expect(!token.isLive)
    let story = try registry.story(of: token)
    #expect(story.contains("object died"))
  }

  @Test(
    "A turn that finds the object dead is no call, and no refusal (A1, G20)",
    arguments: [Registry.Level.lifecycle, .calls])
  func deadTurn(_ level: Registry.Level) throws {
    let path = temporaryPath()
    let registry = try Registry(history: .file(path), level: level)
    let signal = try Signal<Int>("number", in: registry)
    do {
      let listener = Listener(heard) {}
      for label in ["plain", "bound"] {
        _ = try signal.connect(
          label, owner: listener,
          options: label == "bound" ? .threadBound : []
        ) { listener, number in listener.hear("\(number)") }.keep()
      }
      for number in 0..<3 { try signal.emit(number) }
    }
    #expect(try signal.emit(3).called == 0)
    #expect(try signal.emit(4).called == 0)
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    let lives = try rows(
      """
      SELECT label, calls, refusals FROM token_life
      WHERE label IN ('plain', 'bound') ORDER BY label
      """, in: path)
    #expect(lives == ["bound|3|0", "plain|3|0"])
    try expectSoundHistory(path)
  }

  @Test("An emission ends all that was registered to a dead object")
  func deadObject() throws {
    let tracker = Tracker()
    let signal = try Signal<Void>("tick", in: registry)
    do {
      let object = tracker.make()
      for _ in 0..<20 {
        _ = try signal.connect("tick", owner: object) { $0.touch() }.keep()
      }
      _ = try signal.connectAnswering("tick", owner: object) { object, _ in
        object.touch()
        return .goOn
      }.keep()
      #expect(try signal.emit().called == 21)
    }
    #expect(tracker.liveCount == 0)
    let emission = try signal.emit()
    #expect(emission.called == 0)
    #expect(emission.ending == .complete)
    #expect(try registry.statistics.liveTokens == 0)
    #expect(try registry.statistics.liveOwners == 0)
  }

  @Test("An object may be released by the handler that holds it (B10)")
  func lastReleaseInHandler() throws {
    let signal = try Signal<Void>("tick", in: registry)
    let box = Locked<Listener?>(nil)
    box.withLock { $0 = Listener(heard) { [heard] in heard.add("deinit") } }
    let object = box.withLock { $0 }
    let connection = try signal.connect("drop", owner: object!) {
      [heard] listener in
      let last = box.withLock { object in
        defer { object = nil }
        return object
      }
      withExtendedLifetime(last) {}
      heard.add("called")
      listener.hear("alive")
    }
    _ = consume object
    try signal.emit()
    #expect(heard.take() == ["called", "alive", "deinit"])
    #expect(try signal.emit().called == 0)
    #expect(!connection.token.isLive)
  }

  @Test("Connecting in a deinit, to what is dying, is an error (F11)")
  func connectingInDeinit() throws {
    final class Late: CallbackOwner, Sendable {
      let callbacks: Owner
      let signal: Signal<Int>
      let heard: Heard

      init(_ signal: Signal<Int>, _ heard: Heard) throws {
        callbacks = try Owner("late", in: signal.registry)
        self.signal = signal
        self.heard = heard
      }

      deinit {
        _ = callbacks.end()
        let error = thrown {
          _ = try signal.connect("late", owner: callbacks) { _ in }
        }
        heard.add(error?.name ?? "connected")
      }
    }
    let signal = try Signal<Int>("number", in: registry)
    do { _ = try Late(signal, heard) }
    #expect(["stale", "dying"].contains(heard.take().first))
  }

  @Test("One-shot and thread-bound handlers are what they say")
  func options() throws {
    let signal = try Signal<Int>("number", in: registry)
    let once = try signal.connect("once", options: .oneShot) { _ in }
    let bound = try signal.connect("bound", options: .threadBound) {
      [heard] in heard.add("bound\($0)")
    }
    let elsewhere = Counter()
    Worker {
      if (try? signal.emit(1))?.called == 1 { elsewhere.increment() }
    }.join()
    #expect(elsewhere.count == 1)
    #expect(!once.token.isLive)
    #expect(try signal.emit(2).called == 1)
    #expect(heard.take() == ["bound2"])
    #expect(bound.token.isLive)
  }

  @Test("Emissions are nested only so deeply (G20)")
  func depth() throws {
    let later = Later<Signal<Int>>()
    let signal = try Signal<Int>("nested", in: registry)
    later.value = signal
    _ = try signal.connect("again") { [heard] depth in
      do throws(RegistryError) {
        try later.value?.emit(depth + 1)
      } catch {
        heard.add("\(error.name) \(depth)")
      }
    }.keep()
    try signal.emit(1)
    #expect(heard.take() == ["tooDeep 64"])
    later.value = nil
  }

  @Test("A failed connection releases its closure (G6)")
  func failures() throws {
    let tracker = Tracker()
    let signal = try Signal<Int>("number", in: registry)
    let label = String(repeating: "x", count: 256)
    let error = thrown {
      _ = try signal.connect(label) { [object = tracker.make()] _ in
        object.touch()
      }
    }
    #expect(error?.name == "invalid")
    #expect(signal.end().isEnded)
    let late = thrown {
      _ = try signal.connect("late") { [object = tracker.make()] _ in
        object.touch()
      }
    }
    #expect(late?.name == "stale")
    #expect(late?.description.contains("number") == true)
    #expect(tracker.madeCount == 2)
    #expect(tracker.liveCount == 0)
  }

  @Test("A signal ends with its owner, and is released with its object")
  func owners() throws {
    let owner = try Owner("owner", in: registry)
    let owned = try Signal<Int>("owned", in: owner)
    #expect(owner.end().isEnded)
    #expect(!owned.isLive)
    let handle: UInt64
    do {
      let signal = try Signal<Int>("released", in: registry)
      handle = signal.handle
      #expect(Signal<Int>(handle: handle)?.isLive == true)
      #expect(signal.isLive)
    }
    #expect(Signal<Int>(handle: handle) == nil)
    #expect(thrown { _ = try Signal<Int>("late", in: owner) }?.name == "stale")
  }

  @Test("Emitting from many threads while handlers come and go (B1, G13)")
  func races() throws {
    let signal = try Signal<Int>("busy", in: registry)
    let tracker = Tracker()
    let isOver = Counter()
    let emitters = (0..<2).map { _ in
      Worker { while isOver.count == 0 { _ = try? signal.emit(1) } }
    }
    for _ in 0..<500 {
      let connection = try signal.connect("brief") {
        [object = tracker.make()] _ in object.touch()
      }
      let listener = tracker.make()
      _ = try signal.connect("object", owner: listener) { object, _ in
        object.touch()
      }.keep()
      #expect(connection.token.isLive)
    }
    isOver.increment()
    for emitter in emitters { emitter.join() }
    #expect(signal.end(waiting: .seconds(3_600)).isEnded)
    #expect(tracker.liveCount == 0)
    #expect(tracker.madeCount == 1_000)
  }
}

/// What was heard, in order.
final class Heard: Sendable {
  private let lines = Locked<[String]>([])

  func add(_ line: String) { lines.withLock { $0.append(line) } }

  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}

private final class Listener: Sendable {
  private let heard: Heard
  private let onDeinit: @Sendable () -> Void

  init(_ heard: Heard, _ onDeinit: @escaping @Sendable () -> Void) {
    self.heard = heard
    self.onDeinit = onDeinit
  }

  func hear(_ line: String) { heard.add(line) }

  deinit { onDeinit() }
}

// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

private protocol Speaker: AnyObject, Sendable {
  func say(_ text: String) -> Int
  func isLoud() -> Bool
}

extension Speaker {
  func isLoud() -> Bool { false }
}

private final class Parrot: Speaker {
  let heard: Heard
  let onDeinit: (@Sendable () -> Void)?

  init(_ heard: Heard, _ onDeinit: (@Sendable () -> Void)? = nil) {
    self.heard = heard
    self.onDeinit = onDeinit
  }

  func say(_ text: String) -> Int {
    heard.add(text)
    return text.count
  }

  deinit { onDeinit?() }
}

@Suite("Implementations of protocols")
struct InterfaceTests {
  private let registry: Registry
  private let heard = Heard()

  init() throws { registry = try Registry() }

  @Test("Methods are called on a live object, defaults included (G10)")
  func calls() throws {
    let parrot = Parrot(heard)
    let speaker = try registry.register(
      "speaker", as: (any Speaker).self, parrot)
    #expect(try speaker.call { $0.say("hello") } == 5)
    #expect(try speaker.call { $0.isLoud() } == false)
    #expect(speaker.call(default: 0) { $0.say("you") } == 3)
    #expect(heard.take() == ["hello", "you"])
    #expect(speaker.end().isEnded)
    let error = thrown { _ = try speaker.call { $0.say("late") } }
    #expect(error?.name == "stale")
    #expect(error?.description.contains("speaker") == true)
    #expect(speaker.call(default: -1) { $0.say("late") } == -1)
    #expect(try registry.statistics.refused == 2)
    #expect(heard.take().isEmpty)
    withExtendedLifetime(parrot) {}
  }

  @Test("The object is held weakly, and dies with its last reference (F11)")
  func weakly() throws {
    let later = Later<InterfaceToken<any Speaker>>()
    do {
      let parrot = Parrot(heard) { [heard] in
        let number = later.value?.call(default: -1) { $0.say("no") }
        heard.add("deinit \(number ?? 0)")
      }
      later.value = try registry.register(
        "speaker", as: (any Speaker).self, parrot
      ).keep()
      #expect(try later.value?.call { $0.say("yes") } == 3)
    }
    #expect(heard.take() == ["yes", "deinit -1"])
    #expect(later.value?.isLive == false)
    #expect(try registry.statistics.liveTokens == 0)
    #expect(try registry.statistics.liveOwners == 0)
  }

  @Test("A registration ends with its scope, unless it is kept")
  func scope() throws {
    let parrot = Parrot(heard)
    let token: InterfaceToken<any Speaker>
    do {
      let speaker = try registry.register(
        "speaker", as: (any Speaker).self, parrot)
      token = speaker.token
      #expect(token.isLive)
    }
    #expect(!token.isLive)
    let kept = try registry.register(
      "kept", as: Parrot.self, parrot, options: .oneShot
    ).keep()
    #expect(try kept.call { $0.say("once") } == 4)
    #expect(thrown { try kept.call { _ in } }?.name == "consumed")
  }

  @Test("A number is taken up for its own protocol only (G10)")
  func types() throws {
    let parrot = Parrot(heard)
    let speaker = try registry.register(
      "speaker", as: (any Speaker).self, parrot)
    let handle = speaker.token.handle
    #expect(InterfaceToken<any Speaker>(handle: handle) == speaker.token)
    #expect(InterfaceToken<Parrot>(handle: handle) == nil)
    #expect(Token<Void, Void>(handle: handle) == nil)
    let closure = try registry.register("closure") {}
    let other = closure.token.handle
    #expect(InterfaceToken<any Speaker>(handle: other) == nil)
    for wrong in [0, .max, registry.handle] {
      #expect(InterfaceToken<any Speaker>(handle: wrong) == nil)
    }
  }

  @Test("C may end and explain an implementation, and not enter it (C14)")
  func fromC() throws {
    let parrot = Parrot(heard)
    let speaker = try registry.register(
      "speaker", as: (any Speaker).self, parrot
    ).keep()
    var call = cbr_call()
    #expect(cbr_is_live(speaker.handle))
    #expect(cbr_enter(speaker.handle, &call) == CBR_E_INTERFACE)
    for tag in [1, Token<Void, Void>.typeTag, .max] {
      #expect(
        cbr_enter_typed(speaker.handle, tag, &call) == CBR_E_INTERFACE)
    }
    #expect(Explanations.story(of: speaker.handle).contains("speaker"))
    #expect(cbr_invalidate(speaker.handle, 1_000) == CBR_OK)
    #expect(thrown { try speaker.call { _ in } }?.name == "stale")
  }

  @Test("What is no object is refused, and takes nothing (G6)")
  func noObject() throws {
    let error = thrown {
      _ = try registry.register("number", as: (any Sendable).self, 5)
    }
    #expect(error?.name == "invalid")
    #expect(error?.explanation.sentence.contains("not an object") == true)
    let label = String(repeating: "x", count: 256)
    let parrot = Parrot(heard)
    #expect(
      thrown {
        _ = try registry.register(label, as: (any Speaker).self, parrot)
      }?.name == "invalid")
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("Registering to an object in its deinit is an error (F11)")
  func registeringInDeinit() throws {
    final class Late: Sendable {
      let registry: Registry
      let heard: Heard

      init(_ registry: Registry, _ heard: Heard) {
        self.registry = registry
        self.heard = heard
      }

      deinit {
        heard.add(
          thrown {
            _ = try registry.register("closure", owner: self) { _ in }
          }?.name ?? "registered")
        heard.add(
          thrown {
            _ = try registry.register("interface", as: Late.self, self)
          }?.name ?? "registered")
        heard.add(
          thrown {
            _ = try Signal<Void>("signal", in: registry)
              .connect("late", owner: self) { _ in }
          }?.name ?? "connected")
      }
    }
    do { _ = Late(registry, heard) }
    #expect(heard.take() == ["dying", "dying", "dying"])
    #expect(try registry.statistics.liveTokens == 0)
    #expect(try registry.statistics.liveOwners == 0)
  }

  @Test("Its last reference may be released by a call on another thread (B10)")
  func races() throws {
    let deinits = Counter()
    for _ in 0..<300 {
      let box = Locked<Parrot?>(Parrot(heard) { deinits.increment() })
      let token = try box.withLock {
        try registry.register("speaker", as: (any Speaker).self, $0!).keep()
      }
      let started = Gate()
      let caller = Worker {
        repeat {
          started.open()
        } while (try? token.call { $0.say("x") })
          != nil
      }
      started.wait()
      let last = box.withLock { object in
        defer { object = nil }
        return object
      }
      withExtendedLifetime(last) {}
      _ = consume last
      caller.join()
      #expect(!token.isLive)
    }
    #expect(deinits.count == 300)
    _ = heard.take()
  }
}

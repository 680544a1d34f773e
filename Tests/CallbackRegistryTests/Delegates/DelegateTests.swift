// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

/// What a downloader tells; the second one is optional.
private protocol DownloadDelegate: AnyObject, Sendable {
  func didReceive(_ bytes: [UInt8])
  func shouldGoOn() -> Bool
}

extension DownloadDelegate {
  func shouldGoOn() -> Bool { true }
}

private final class Window: DownloadDelegate {
  private let heard: Heard
  private let onDeinit: (@Sendable (Window) -> Void)?
  private let onData: (@Sendable () -> Void)?

  init(
    _ heard: Heard, onData: (@Sendable () -> Void)? = nil,
    onDeinit: (@Sendable (Window) -> Void)? = nil
  ) {
    self.heard = heard
    self.onData = onData
    self.onDeinit = onDeinit
  }

  func didReceive(_ bytes: [UInt8]) {
    onData?()
    heard.add("received \(bytes.count)")
  }

  deinit { onDeinit?(self) }
}

private final class Cautious: DownloadDelegate {
  func didReceive(_ bytes: [UInt8]) {}
  func shouldGoOn() -> Bool { false }
}

private struct Downloader {
  @Delegate var delegate: (any DownloadDelegate)?

  init(_ registry: Registry) {
    _delegate = Delegate("downloader.delegate", in: registry)
  }

  func receive(_ count: Int) throws(RegistryError) {
    try $delegate.call { $0.didReceive([UInt8](repeating: 0, count: count)) }
  }
}

@Suite("Delegates")
struct DelegateTests {
  private let registry: Registry
  private let downloader: Downloader
  private let heard = Heard()

  init() throws {
    registry = try Registry()
    downloader = Downloader(registry)
  }

  @Test("A delegate is called, replaced and cleared")
  func lives() throws {
    #expect(downloader.delegate == nil)
    #expect(thrown { try downloader.receive(1) }?.name == "unset")
    let window = Window(heard)
    downloader.delegate = window
    #expect(downloader.delegate === window)
    try downloader.receive(1)
    #expect(downloader.$delegate.call(default: false) { $0.shouldGoOn() })
    let former = cbr_slot_get(downloader.$delegate.handle)
    let cautious = Cautious()
    downloader.delegate = cautious
    #expect(!cbr_is_live(former))
    #expect(downloader.delegate === cautious)
    #expect(!downloader.$delegate.call(default: true) { $0.shouldGoOn() })
    try downloader.receive(2)
    downloader.delegate = nil
    #expect(downloader.delegate == nil)
    let error = thrown { try downloader.receive(3) }
    #expect(error?.name == "unset")
    #expect(error?.explanation.sentence.contains("slot") == true)
    #expect(downloader.$delegate.call(default: 7) { _ in 8 } == 7)
    #expect(heard.take() == ["received 1"])
    #expect(try registry.statistics.liveTokens == 0)
    #expect(downloader.$delegate.failure == nil)
    withExtendedLifetime(window) {}
  }

  @Test("It is held weakly: one that dies leaves nil, and is called late (F11)")
  func dies() throws {
    weak var observed: Window?
    var token: UInt64 = 0
    do {
      let window = Window(heard)
      observed = window
      downloader.delegate = window
      token = cbr_slot_get(downloader.$delegate.handle)
      try downloader.receive(1)
    }
    #expect(observed == nil)
    // Nobody has yet found that it is dead.
    let error = thrown { try downloader.receive(2) }
    #expect(error?.name == "stale")
    #expect(error?.explanation.handle == token)
    #expect(error?.description.contains("downloader.delegate") == true)
    // G19: the slot is empty since.
    #expect(cbr_slot_get(downloader.$delegate.handle) == 0)
    #expect(downloader.delegate == nil)
    #expect(thrown { try downloader.receive(3) }?.name == "stale")
    #expect(downloader.$delegate.call(default: 1) { _ in 2 } == 1)
    // Each late call is recorded, with the one that it was for.
    #expect(try registry.statistics.refused == 3)
    try registry.flush(waiting: .seconds(3_600))
    let story = Explanations.story(of: token)
    #expect(story.contains("object died"))
    #expect(heard.take() == ["received 1"])
    downloader.delegate = Window(heard)
    #expect(downloader.delegate == nil)
    let cautious = Cautious()
    downloader.delegate = cautious
    try downloader.receive(4)
  }

  @Test("An observer is told when the delegate is found to have died (G19)")
  func observed() throws {
    let slot = downloader.$delegate
    try slot.onClear("told") { [heard] in heard.add("cleared") }
    do {
      let window = Window(heard)
      slot.value = window
      slot.value = nil
      slot.value = window
      withExtendedLifetime(window) {}
    }
    #expect(heard.take().isEmpty)
    #expect(thrown { try slot.call { _ in } }?.name == "stale")
    #expect(heard.take() == ["cleared"])
    #expect(slot.value == nil)
    #expect(heard.take().isEmpty)
  }

  @Test("Reading it finds that it has died, and is no call")
  func readingFindsTheDead() throws {
    do {
      let window = Window(heard)
      downloader.delegate = window
      #expect(downloader.delegate === window)
    }
    #expect(downloader.delegate == nil)
    #expect(try registry.statistics.liveTokens == 0)
    #expect(try registry.statistics.liveOwners == 0)
    #expect(try registry.statistics.refused == 0)
  }

  @Test("No call begins once its deinit has, nor can it be set then (F11)")
  func inDeinit() throws {
    let slot = downloader.$delegate
    do {
      let heard = heard
      let window = Window(
        heard,
        onDeinit: { window in
          heard.add(slot.value == nil ? "nil" : "there")
          heard.add(thrown { try slot.call { _ in } }?.name ?? "called")
          heard.add(thrown { try slot.set(window) }?.name ?? "set")
        })
      downloader.delegate = window
    }
    #expect(heard.take() == ["nil", "stale", "dying"])
    #expect(slot.value == nil)
  }

  @Test("A delegate may replace or clear itself while it is called (G12)")
  func clearsItself() throws {
    let slot = downloader.$delegate
    let window = Window(heard, onData: { slot.value = nil })
    downloader.delegate = window
    try downloader.receive(1)
    #expect(heard.take() == ["received 1"])
    #expect(thrown { try downloader.receive(2) }?.name == "unset")
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("Its last reference may be released by the call (B10)")
  func lastReleaseInCall() throws {
    let box = Locked<Window?>(nil)
    let heard = heard
    let window = Window(
      heard,
      onData: {
        let last = box.withLock { object in
          defer { object = nil }
          return object
        }
        withExtendedLifetime(last) {}
        heard.add("released")
      },
      onDeinit: { _ in heard.add("deinit") })
    downloader.delegate = window
    box.withLock { $0 = window }
    _ = consume window
    try downloader.receive(1)
    #expect(heard.take() == ["released", "received 1", "deinit"])
    #expect(downloader.delegate == nil)
  }

  @Test("What is no object, or of a closed registry, is not set")
  func failures() throws {
    let slot = try DelegateSlot<any Sendable>("any", in: registry)
    #expect(thrown { try slot.set(5) }?.name == "invalid")
    slot.value = "text"
    #expect(slot.failure?.name == "invalid")
    #expect(slot.value == nil)
    let window = Window(heard)
    slot.value = window
    #expect(slot.failure == nil)
    #expect(slot.value as? Window === window)
    let other = try Registry()
    #expect(other.close(waiting: .seconds(3_600)).isEnded)
    #expect(
      thrown { _ = try DelegateSlot<Window>("late", in: other) }?.name
        == "closed")
    let late = Downloader(other)
    #expect(late.$delegate.failure?.name == "closed")
    #expect(late.$delegate.handle == 0)
    late.delegate = window
    #expect(late.delegate == nil)
    #expect(thrown { try late.receive(1) }?.name == "closed")
    #expect(late.$delegate.call(default: 3) { _ in 4 } == 3)
    // And one whose registry is closed while it is set.
    downloader.delegate = window
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    #expect(downloader.delegate == nil)
    #expect(thrown { try downloader.receive(1) }?.name == "closed")
    #expect(slot.end().isAlready)
  }

  @Test("A slot ends with its owner, and with its release")
  func ends() throws {
    let owner = try Owner("owner", in: registry)
    let owned = try DelegateSlot<any DownloadDelegate>("owned", in: owner)
    let window = Window(heard)
    owned.value = window
    #expect(owner.end().isEnded)
    #expect(!owned.isLive)
    #expect(owned.value == nil)
    #expect(thrown { try owned.call { _ in } }?.name == "stale")
    let handle: UInt64
    do {
      let released = Downloader(registry)
      released.delegate = window
      handle = released.$delegate.handle
      #expect(cbr_is_live(handle))
    }
    #expect(!cbr_is_live(handle))
    #expect(try registry.leaks().filter { $0.kind == .token }.count == 1)
  }

  @Test("C may read, clear and fill the slot, but not enter the delegate (C14)")
  func fromC() throws {
    let window = Window(heard)
    downloader.delegate = window
    let slot = downloader.$delegate.handle
    let token = cbr_slot_get(slot)
    #expect(cbr_is_live(token))
    var call = cbr_call()
    #expect(cbr_enter(token, &call) == CBR_E_INTERFACE)
    #expect(cbr_slot_enter(slot, nil, 0, &call) == CBR_E_INTERFACE)
    #expect(
      cbr_enter_typed(token, Token<Void, Void>.typeTag, &call)
        == CBR_E_INTERFACE)
    // C puts something else there.
    let other = try registry.register("other") {}
    #expect(cbr_slot_set(slot, other.token.handle) == CBR_OK)
    #expect(downloader.delegate == nil)
    #expect(thrown { try downloader.receive(1) }?.name == "wrongType")
    // C clears it: the delegate is not called.
    #expect(cbr_slot_set(slot, 0) == CBR_OK)
    #expect(thrown { try downloader.receive(1) }?.name == "unset")
    #expect(cbr_slot_set(slot, token) == CBR_OK)
    try downloader.receive(1)
    // C ends it.
    #expect(cbr_invalidate(token, 1_234) == CBR_OK)
    #expect(downloader.delegate == nil)
    #expect(thrown { try downloader.receive(2) }?.name == "stale")
    try registry.flush(waiting: .seconds(3_600))
    #expect(Explanations.story(of: token).contains("reason 1234"))
    #expect(heard.take() == ["received 1"])
  }

  @Test("A slot of C's is taken up, and not ended with its object")
  func slotOfC() throws {
    var handle: UInt64 = 0
    #expect(cbr_slot_create(registry.handle, "c", 0, &handle) == CBR_OK)
    let window = Window(heard)
    do {
      let slot = try #require(
        DelegateSlot<any DownloadDelegate>(handle: handle))
      slot.value = window
      let other = try #require(
        DelegateSlot<any DownloadDelegate>(handle: handle))
      // The engine decides what is called, whoever has set it.
      try other.call { $0.didReceive([]) }
      #expect(
        thrown { try DelegateSlot<Cautious>(handle: handle)?.call { _ in } }?
          .name == "wrongType")
    }
    #expect(cbr_is_live(handle))
    #expect(cbr_slot_get(handle) == 0)
    #expect(heard.take() == ["received 0"])
    #expect(cbr_invalidate(handle, 1_000) == CBR_OK)
    for wrong in [0, .max, handle, registry.handle] {
      #expect(DelegateSlot<any DownloadDelegate>(handle: wrong) == nil)
      #expect(CallbackSlot<Void, Void>(handle: wrong) == nil)
    }
  }

  @Test("An isolated class has a wrapped property, a Sendable one a constant")
  @MainActor func isolated() throws {
    @MainActor final class Page {
      @Delegate var delegate: (any DownloadDelegate)?
      init(_ owner: Owner) { _delegate = Delegate("page.delegate", in: owner) }
    }
    final class Loader: Sendable {
      let delegate: DelegateSlot<any DownloadDelegate>
      init(_ owner: Owner) throws(RegistryError) {
        delegate = try DelegateSlot("loader.delegate", in: owner)
      }
    }
    let owner = try Owner(in: registry)
    let window = Window(heard)
    let page = Page(owner)
    page.delegate = window
    try page.$delegate.call { $0.didReceive([1]) }
    let loader = try Loader(owner)
    loader.delegate.value = window
    try loader.delegate.call { $0.didReceive([1, 2]) }
    #expect(heard.take() == ["received 1", "received 2"])
  }

  @Test("Reading and calling meet one delegate or the next, never none (B1)")
  func replacing() throws {
    let slot = downloader.$delegate
    let windows = [Window(Heard()), Window(Heard())]
    slot.value = windows[0]
    let isOver = Counter()
    let failures = Counter()
    let callers = (0..<2).map { _ in
      Worker {
        while isOver.count == 0 {
          if thrown({ try slot.call { _ in } }) != nil || slot.value == nil {
            failures.increment()
          }
        }
      }
    }
    for round in 0..<1_000 { slot.value = windows[round % 2] }
    isOver.increment()
    for caller in callers { caller.join() }
    #expect(failures.count == 0)
  }

  @Test("Setting, calling and dying race (B1, B10)")
  func races() throws {
    let slot = downloader.$delegate
    let isOver = Counter()
    let deinits = Counter()
    let callers = (0..<2).map { _ in
      Worker {
        while isOver.count == 0 {
          _ = try? slot.call { $0.didReceive([]) }
          _ = slot.value
        }
      }
    }
    let setters = (0..<2).map { _ in
      Worker { [heard] in
        for _ in 0..<300 {
          let window = Window(heard, onDeinit: { _ in deinits.increment() })
          slot.value = window
          if slot.failure != nil { Issue.record("\(slot.failure!)") }
        }
      }
    }
    for setter in setters { setter.join() }
    isOver.increment()
    for caller in callers { caller.join() }
    #expect(deinits.count == 600)
    slot.value = nil
    #expect(try registry.statistics.liveTokens == 0)
    _ = heard.take()
  }
}

/// The story of what has a number only.
enum Explanations {
  static func story(of handle: UInt64) -> String {
    var text = [CChar](repeating: 0, count: 4096)
    _ = cbr_explain(handle, &text, text.count, nil)
    return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }
}

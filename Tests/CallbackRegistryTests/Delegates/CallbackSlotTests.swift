// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

@Suite("Slots of closures")
struct CallbackSlotTests {
  private let registry: Registry
  private let tracker = Tracker()

  init() throws { registry = try Registry() }

  @Test("A closure is set, called, replaced and cleared; each is freed once")
  func lives() throws {
    let slot = try CallbackSlot<Int, Int>("double", in: registry)
    #expect(slot.token == nil)
    #expect(thrown { _ = try slot.call(1) }?.name == "unset")
    try slot.set("first") { [object = tracker.make()] number in
      object.touch()
      return number * 2
    }
    #expect(try slot.call(4) == 8)
    let first = try #require(slot.token)
    try slot.set("second") { [object = tracker.make()] number in
      object.touch()
      return number * 3
    }
    #expect(tracker.liveCount == 1)
    #expect(try slot.call(4) == 12)
    #expect(!first.isLive)
    #expect(try registry.story(of: first).contains("replaced"))
    try slot.clear()
    #expect(tracker.liveCount == 0)
    #expect(thrown { _ = try slot.call(1) }?.name == "unset")
    #expect(slot.call(default: 9, 1) == 9)
  }

  @Test("Several inputs, none, and an object")
  func inputs() throws {
    let pair = try CallbackSlot<(Int, Int), Int>("sum", in: registry)
    try pair.set("sum") { left, right in left + right }
    #expect(try pair.call(1, 2) == 3)
    #expect(pair.call(default: 0, 1, 3) == 4)
    let nothing = try CallbackSlot<Void, Int>("nothing", in: registry)
    try nothing.set("five") { 5 }
    #expect(try nothing.call() == 5)
    do {
      let object = tracker.make()
      try nothing.set("object", owner: object) { object, _ in
        object.touch()
        return 6
      }
      #expect(try nothing.call() == 6)
    }
    #expect(tracker.liveCount == 0)
    #expect(thrown { _ = try nothing.call() }?.name == "stale")
    #expect(thrown { _ = try nothing.call() }?.name == "stale")
    #expect(nothing.call(default: 1) == 1)
    #expect(try registry.statistics.refused == 3)
  }

  @Test("A callback of another's is called, and not ended with the slot (G19)")
  func anothers() throws {
    let slot = try CallbackSlot<Void, Int>("guest", in: registry)
    let guest = try registry.register("guest") { 1 }
    try slot.set(guest.token)
    #expect(try slot.call() == 1)
    try slot.set("own") { 2 }
    #expect(guest.token.isLive)
    try slot.set(guest.token)
    #expect(guest.end().isEnded)
    #expect(slot.token == nil)
    #expect(cbr_slot_get(slot.handle) == 0)
    #expect(thrown { _ = try slot.call() }?.name == "stale")
    #expect(thrown { try slot.set(guest.token) }?.name == "stale")
    let other = try Registry()
    let foreign = try other.register("foreign") { 3 }
    #expect(thrown { try slot.set(foreign.token) }?.name == "foreign")
  }

  @Test("A slot of C's is taken up, and what C puts there is called (G10)")
  func slotOfC() throws {
    var handle: UInt64 = 0
    #expect(cbr_slot_create(registry.handle, "c", 0, &handle) == CBR_OK)
    let token = try registry.register("mine") { 4 }
    do {
      let slot = try #require(CallbackSlot<Void, Int>(handle: handle))
      #expect(thrown { _ = try slot.call() }?.name == "unset")
      #expect(cbr_slot_set(handle, token.token.handle) == CBR_OK)
      #expect(try slot.call() == 4)
      #expect(
        thrown {
          _ = try CallbackSlot<Void, Int32>(handle: handle)?.call()
        }?.name == "wrongType")
      try slot.set("own") { [object = tracker.make()] in
        object.touch()
        return 5
      }
      #expect(try slot.call() == 5)
    }
    #expect(cbr_is_live(handle))
    #expect(token.token.isLive)
    #expect(tracker.liveCount == 0)
  }

  @Test("A call meets one closure or the next, and never none (B1)")
  func replacing() throws {
    let slot = try CallbackSlot<Int, Int>("slot", in: registry)
    try slot.set("first") { $0 }
    let isOver = Counter()
    let failures = Locked<[String]>([])
    let callers = (0..<2).map { _ in
      Worker {
        while isOver.count == 0 {
          if let error = thrown({ _ = try slot.call(1) }) {
            failures.withLock { $0.append(error.name) }
          }
        }
      }
    }
    for _ in 0..<1_000 {
      try slot.set("next") { [object = tracker.make()] number in
        object.touch()
        return number
      }
    }
    isOver.increment()
    for caller in callers { caller.join() }
    #expect(failures.withLock { $0 }.isEmpty)
    try slot.clear()
    #expect(tracker.liveCount == 0)
    #expect(tracker.madeCount == 1_000)
  }

  @Test("An observer is told when what it holds has ended, each once (G19)")
  func observed() throws {
    let slot = try CallbackSlot<Void, Int>("slot", in: registry)
    let heard = Heard()
    try slot.onClear("told") { [object = tracker.make(), slot = slot.handle] in
      object.touch()
      heard.add("cleared \(cbr_slot_get(slot))")
    }
    let first = try registry.register("first") { 1 }
    let second = try registry.register("second") { 2 }
    try slot.set(first.token)
    try slot.set(second.token)
    #expect(first.end().isEnded)
    #expect(heard.take().isEmpty)
    #expect(second.end().isEnded)
    #expect(heard.take() == ["cleared 0"])
    try slot.set("own") { 3 }
    try slot.clear()
    #expect(heard.take().isEmpty)
    // Another takes its place, and it is released.
    try slot.onClear("other") { [object = tracker.make()] in
      object.touch()
      heard.add("other")
    }
    #expect(tracker.liveCount == 1)
    try slot.set("own") { 3 }
    #expect(try #require(slot.token).end().isEnded)
    #expect(heard.take() == ["other"])
    try slot.onClear("none", nil)
    #expect(tracker.liveCount == 0)
    try slot.onClear("last") { [object = tracker.make()] in object.touch() }
    let label = String(repeating: "x", count: 256)
    let error = thrown {
      try slot.onClear(label) { [object = tracker.make()] in object.touch() }
    }
    #expect(error?.name == "invalid")
    #expect(slot.end().isEnded)
    let late = thrown {
      try slot.onClear("late") { [object = tracker.make()] in object.touch() }
    }
    #expect(late?.name == "stale")
    #expect(tracker.liveCount == 1)
  }

  @Test("An observer is released with its slot, and not told of that")
  func observerReleased() throws {
    let heard = Heard()
    do {
      let slot = try CallbackSlot<Void, Void>("slot", in: registry)
      try slot.set("own") {}
      try slot.onClear("told") { [object = tracker.make()] in
        object.touch()
        heard.add("cleared")
      }
    }
    #expect(tracker.liveCount == 0)
    #expect(heard.take().isEmpty)
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("What cannot be set is released, and leaves the slot as it was (G6)")
  func failures() throws {
    let slot = try CallbackSlot<Void, Int>("slot", in: registry)
    try slot.set("good") { [object = tracker.make()] in
      object.touch()
      return 1
    }
    let label = String(repeating: "x", count: 256)
    let error = thrown {
      try slot.set(label) { [object = tracker.make()] in
        object.touch()
        return 2
      }
    }
    #expect(error?.name == "invalid")
    #expect(try slot.call() == 1)
    #expect(tracker.liveCount == 1)
    #expect(slot.end().isEnded)
    #expect(thrown { _ = try slot.call() }?.name == "stale")
    let late = thrown {
      try slot.set("late") { [object = tracker.make()] in
        object.touch()
        return 2
      }
    }
    #expect(late?.name == "stale")
    #expect(tracker.liveCount == 1)
    #expect(tracker.madeCount == 3)
  }

  @Test("The closure is released with the slot, also from inside it (G12)")
  func released() throws {
    let later = Later<CallbackSlot<Void, Void>>()
    do {
      let slot = try CallbackSlot<Void, Void>("slot", in: registry)
      later.value = slot
      try slot.set("drops") { [object = tracker.make()] in
        later.value = nil
        object.touch()
      }
    }
    let slot = try #require(later.value)
    let handle = slot.handle
    try slot.call()
    #expect(tracker.liveCount == 1)
    _ = consume slot
    #expect(!cbr_is_live(handle))
    #expect(tracker.liveCount == 0)
  }
}

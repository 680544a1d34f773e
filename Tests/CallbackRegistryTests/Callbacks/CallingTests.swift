// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Calling")
struct CallingTests {
  @Test("Inputs and outputs of any number and kind arrive")
  func inputsAndOutputs() throws {
    let registry = try Registry()
    let none = try registry.register("none") { 7 }
    let one = try registry.register("one") { (text: String) in text + "!" }
    let two = try registry.register("two") { (a: Int, b: Double) in
      Double(a) + b
    }
    let three: Registration<(Int, String, [Int]), [String]> =
      try registry.register("three") { (a: Int, b: String, c: [Int]) in
        c.map { "\(b)\($0 + a)" }
      }
    let pair = try registry.register("pair") { (pair: (Int, Int)) in
      pair.0 * pair.1
    }
    #expect(try none.call() == 7)
    #expect(try one.call("hello") == "hello!")
    #expect(try two.call(1, 0.5) == 1.5)
    #expect(try two.call((1, 0.5)) == 1.5)
    #expect(try three.call(1, "x", [1, 2]) == ["x2", "x3"])
    #expect(try pair.call((6, 7)) == 42)
    #expect(try pair.call(6, 7) == 42)
  }

  @Test("An optional output that is nil is an output")
  func nilOutput() throws {
    let registry = try Registry()
    let find = try registry.register("find") { (key: Int) -> String? in
      key == 1 ? "one" : nil
    }
    #expect(try find.call(1) == .some("one"))
    #expect(try find.call(2) == .some(.none))
  }

  @Test("Inputs and outputs are released as often as they are retained")
  func balancedReferences() throws {
    let tracker = Tracker()
    let registry = try Registry()
    do {
      let echo = try registry.register("echo") {
        (object: Tracker.Tracked) in [object, tracker.make()]
      }
      for _ in 0..<10 {
        let answer = try echo.call(tracker.make())
        #expect(answer.count == 2)
      }
      #expect(tracker.liveCount == 0)
      // A refused call passes nothing on, and makes nothing.
      #expect(echo.end().isEnded)
      let token = echo.token
      let error = thrown {
        _ = try token.call(tracker.make())
      }
      #expect(error?.name == "stale")
    }
    #expect(tracker.madeCount == 21)
    #expect(tracker.liveCount == 0)
  }

  @Test("Calls nest and recurse deeper than a thread's pins (G11)")
  func recursion() throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    let itself = Later<Token<Int, Int>>()
    let token = try registry.register("down", owner: owner) {
      (depth: Int) -> Int in
      guard depth > 0 else { return 0 }
      return 1 + ((try? itself.value?.call(depth - 1)) ?? -1_000)
    }.keep()
    itself.value = token
    #expect(try token.call(300) == 300)
    #expect(owner.end().isEnded)
  }

  @Test("Tokens are numbers: equal, hashable, printable")
  func tokensAreValues() throws {
    let registry = try Registry()
    let one = try registry.register("one") { (_: Int) in }.keep()
    let two = try registry.register("two") { (_: Int) in }.keep()
    #expect(one == one)
    #expect(one != two)
    #expect(Set([one, two, one]).count == 2)
    #expect("\(one)".hasPrefix("token 0x"))
    #expect(MemoryLayout<Token<String, String>>.size == 8)
  }

  @Test("A one-shot runs once, and a second call is told so (C21)")
  func oneShot() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let counter = Counter()
    let token = try registry.register("once", options: .oneShot) {
      [object = tracker.make()] in
      object.touch()
      counter.increment()
    }.keep()
    try token.call()
    #expect(tracker.liveCount == 0)
    let error = thrown { try token.call() }
    #expect(error?.name == "consumed")
    #expect(counter.count == 1)
    #expect(token.end().isAlready)
  }

  @Test("A one-shot that calls itself runs once (D9)")
  func oneShotInsideItself() throws {
    let registry = try Registry()
    let itself = Later<Token<Void, Void>>()
    let counter = Counter()
    let refused = Counter()
    let token = try registry.register("once", options: .oneShot) {
      counter.increment()
      let error = thrown {
        try itself.value?.call()
      }
      if error?.name == "consumed" { refused.increment() }
    }.keep()
    itself.value = token
    try token.call()
    #expect(counter.count == 1)
    #expect(refused.count == 1)
  }

  @Test("A thread-bound callback is refused elsewhere (F13)")
  func threadBound() throws {
    let registry = try Registry()
    let bound = try registry.register("bound", options: .threadBound) { 1 }
      .keep()
    #expect(try bound.call() == 1)
    let name = Later<String>()
    Worker {
      let error = thrown { _ = try bound.call() }
      name.value = error?.name
    }.join()
    #expect(name.value == "wrongThread")
    #expect(bound.end().isEnded)
  }
}

// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Ending")
struct EndingTests {
  @Test("Ending says what has become of it, and the second time that (G16)")
  func endedAndAlready() throws {
    let registry = try Registry()
    let token = try registry.register("sensor") { 1 }.keep()
    #expect(token.isLive)
    #expect(token.end(reason: .cancelled).isEnded)
    #expect(!token.isLive)
    guard case .already(let explanation) = token.end() else {
      Issue.record("the second end is not told apart")
      return
    }
    #expect(explanation.handle == token.handle)
    #expect(explanation.sentence.contains("was dead before"))
  }

  @Test("A stale token's second end harms no newer one (C18)")
  func staleEndHarmsNobody() throws {
    let registry = try Registry()
    let stale = try registry.register("old") { 1 }.keep()
    #expect(stale.end().isEnded)
    var fresh: [Token<Void, Int>] = []
    for number in 0..<2_000 {
      fresh.append(try registry.register("new") { number }.keep())
      #expect(stale.end().isAlready)
    }
    for (number, token) in fresh.enumerated() {
      #expect(try token.call() == number)
    }
  }

  @Test("Waiting inside the callback itself is deferred (A7, B1, B15)")
  func deferredInside() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let itself = Later<Token<Void, Bool>>()
    let token = try registry.register("self-ending") {
      [object = tracker.make()] () -> Bool in
      let outcome = itself.value?.end(waiting: .seconds(3_600))
      object.touch()
      return outcome?.isDeferred == true && tracker.liveCount == 1
    }.keep()
    itself.value = token
    #expect(try token.call())
    #expect(tracker.liveCount == 0)
    #expect(token.end().isAlready)
  }

  @Test("Ending waits for the call in flight; none follows it (A1, G9)")
  func waitCoversCallInFlight() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let entered = Gate()
    let mayReturn = Gate()
    let returned = Counter()
    let token = try registry.register("slow") {
      [object = tracker.make()] in
      entered.open()
      mayReturn.wait()
      object.touch()
      returned.increment()
    }.keep()
    let caller = Worker { try? token.call() }
    entered.wait()
    #expect(token.end(waiting: .zero).isTimedOut)
    let outcome = Later<Outcome>()
    let wasWaited = Counter()
    let ender = Worker {
      // Dead already, and still running: it is waited for all the same.
      outcome.value = token.end(waiting: .seconds(3_600))
      if returned.count == 1, tracker.liveCount == 0 { wasWaited.increment() }
    }
    mayReturn.open()
    ender.join()
    caller.join()
    #expect(outcome.value?.isAlready == true)
    #expect(wasWaited.count == 1)
  }

  @Test("Without waiting, what runs elsewhere is pending (A16, G7)")
  func pendingElsewhere() throws {
    let registry = try Registry()
    let tracker = Tracker()
    let entered = Gate()
    let mayReturn = Gate()
    let token = try registry.register("slow") {
      [object = tracker.make()] in
      entered.open()
      mayReturn.wait()
      object.touch()
    }.keep()
    let caller = Worker { try? token.call() }
    entered.wait()
    #expect(token.end().isPending)
    #expect(tracker.liveCount == 1)
    mayReturn.open()
    caller.join()
    // The thread that left last has released the closure.
    #expect(tracker.liveCount == 0)
  }

  @Test("Two that wait for each other: one is told so (B5, G15)")
  func ringOfTwo() throws {
    let registry = try Registry()
    let inFirst = Gate()
    let inSecond = Gate()
    let tokens = (Later<Token<Void, Void>>(), Later<Token<Void, Void>>())
    let outcomes = (Later<Outcome>(), Later<Outcome>())
    tokens.0.value = try registry.register("first") {
      inFirst.open()
      inSecond.wait()
      outcomes.0.value = tokens.1.value?.end(waiting: .seconds(3_600))
    }.keep()
    tokens.1.value = try registry.register("second") {
      inSecond.open()
      inFirst.wait()
      outcomes.1.value = tokens.0.value?.end(waiting: .seconds(3_600))
    }.keep()
    let workers = [
      Worker { try? tokens.0.value?.call() },
      Worker { try? tokens.1.value?.call() },
    ]
    for worker in workers { worker.join() }
    let first = try #require(outcomes.0.value)
    let second = try #require(outcomes.1.value)
    #expect(first.isWouldDeadlock != second.isWouldDeadlock)
    // The other one waited until that one's callback had returned.
    #expect(first.isEnded != second.isEnded)
    let told = first.isWouldDeadlock ? first : second
    #expect("\(told)".contains("ring goes through token"))
    #expect(tokens.0.value?.isLive == false)
    #expect(tokens.1.value?.isLive == false)
  }

  @Test("After a waiting end the counter never moves (A18, G9)")
  func nothingEntersAfterTheEnd() throws {
    let registry = try Registry(level: .lifecycle)
    for _ in 0..<50 {
      let calls = Counter()
      let ended = Counter()
      let late = Counter()
      let token = try registry.register("counter") {
        if ended.count == 1 { late.increment() }
        calls.increment()
      }.keep()
      let started = Gate()
      let callers = (0..<2).map { _ in
        Worker {
          var count = 0
          while (try? token.call()) != nil {
            count += 1
            if count == 10 { started.open() }
          }
        }
      }
      started.wait()
      #expect(token.end(waiting: .seconds(3_600)).isEnded)
      let counted = calls.count
      ended.increment()
      for caller in callers { caller.join() }
      #expect(late.count == 0)
      #expect(calls.count == counted)
    }
  }

  @Test("Durations are bounded, never misread")
  func durations() throws {
    let registry = try Registry()
    for duration in [
      Duration.seconds(-5), .zero, .nanoseconds(1), .seconds(Int64.max),
      Duration(secondsComponent: 1, attosecondsComponent: -1),
    ] {
      let token = try registry.register("timed") {}.keep()
      #expect(token.end(waiting: duration).isEnded)
    }
  }

  @Test("The program's own reasons are told")
  func reasons() throws {
    let registry = try Registry()
    let token = try registry.register("reasoned") {}.keep()
    #expect(token.end(reason: .user(7)).isEnded)
    #expect(EndReason.user(7).number == 1_007)
    #expect(EndReason.user(.max).number == .max)
    #expect("\(EndReason.user(7))" == "reason 1007")
    #expect("\(EndReason.objectDied)" == "object died")
    #expect(try registry.story(of: token).contains("reason 1007"))
  }
}

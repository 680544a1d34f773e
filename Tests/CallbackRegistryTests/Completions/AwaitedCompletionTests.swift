// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Testing

@Suite("Completions that are awaited")
struct AwaitedCompletionTests {
  struct Mishap: Error {}

  @Test("An answer is awaited, whenever it comes")
  func answered() async throws {
    let registry = try Registry()
    let atOnce: Int = try await registry.completion("at once") { completion in
      #expect(throws: Never.self) { try completion.succeed(1) }
    }
    #expect(atOnce == 1)
    let later: String = try await registry.completion("later") { completion in
      _ = Worker { try? completion.succeed("two") }
    }
    #expect(later == "two")
    let failed = await name {
      try await registry.completion("failed") {
        (completion: Completion<Void>) in
        _ = Worker { try? completion.fail(Mishap()) }
      }
    }
    #expect(failed == "thrown")
  }

  @Test("One that is dropped throws neverCalled, naming itself (G27)")
  func dropped() async throws {
    let registry = try Registry()
    do throws(RegistryError) {
      let _: Int = try await registry.completion("forgotten") { _ in }
      Issue.record("it was called")
    } catch {
      #expect(error.name == "neverCalled")
      #expect(error.explanation.sentence.contains("\"forgotten\""))
    }
  }

  @Test("Cancelling the task ends the completion")
  func cancelled() async throws {
    let registry = try Registry()
    let tracker = Tracker()
    let started = Later<Completion<Tracker.Tracked>>()
    let waiting = Task {
      await name {
        let _: Tracker.Tracked = try await registry.completion("slow") {
          started.value = $0
        }
      }
    }
    while started.value == nil { await Task.yield() }
    waiting.cancel()
    #expect(await waiting.value == "cancelled")
    #expect(
      errorName { try started.value?.succeed(tracker.make()) } == "stale")
    #expect(tracker.liveCount == 0)
    started.value = nil
    #expect(try registry.statistics.liveTokens == 0)
  }

  @Test("A cancelled task's completion is cancelled when it was started")
  func cancelledBefore() async throws {
    let registry = try Registry()
    let started = Later<Completion<Int>>()
    let told = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await name {
        let _: Int = try await registry.completion("slow") {
          started.value = $0
        }
      }
    }.value
    #expect(told == "cancelled")
    #expect(started.value?.isLive == false)
  }

  @Test("Answering and cancelling at once gives one of both (A12)")
  func race() async throws {
    let registry = try Registry(level: .lifecycle)
    let tracker = Tracker()
    for _ in 0..<300 {
      let accepted = Counter()
      let done = Gate()
      let task = Task {
        await name {
          let object: Tracker.Tracked = try await registry.completion("race") {
            completion in
            _ = Worker {
              if (try? completion.succeed(tracker.make())) != nil {
                accepted.increment()
              }
              done.open()
            }
          }
          object.touch()
        }
      }
      task.cancel()
      let told = await task.value
      #expect(told == nil || told == "cancelled")
      await done.opened()
      #expect(accepted.count == (told == nil ? 1 : 0))
    }
    #expect(tracker.liveCount == 0)
  }

  @Test("A time on a queue's clock throws timedOut")
  func timeout() async throws {
    let registry = try Registry()
    let clock = try CallQueue("clock", in: registry)
    let kept = Later<Completion<Int>>()
    let told = await name {
      let _: Int = try await registry.completion(
        "slow", within: .milliseconds(1), on: clock
      ) { kept.value = $0 }
    }
    #expect(told == "timedOut")
    #expect(errorName { try kept.value?.succeed(1) } == "stale")
    _ = clock.end()
    let started = Counter()
    let dead = await name {
      let _: Int = try await registry.completion(
        "unstarted", within: .seconds(3_600), on: clock
      ) { _ in started.increment() }
    }
    #expect(dead == "stale")
    #expect(started.count == 0)
  }
}

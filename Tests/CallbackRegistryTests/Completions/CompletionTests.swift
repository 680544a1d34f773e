// SPDX-License-Identifier: Apache-2.0

import CCallbackRegistry
import CallbackRegistry
import Testing

@Suite("Completions")
struct CompletionTests {
  static let long = Duration.seconds(3_600)

  struct Mishap: Error, Equatable { let number: Int }

  /// What a completion's closure was told.
  final class Told<Value: Sendable>: Sendable {
    private let results = Locked<[Result<Value, RegistryError>]>([])

    func add(_ result: Result<Value, RegistryError>) {
      results.withLock { $0.append(result) }
    }

    var all: [Result<Value, RegistryError>] { results.withLock { $0 } }
    var errors: [String] {
      all.compactMap {
        if case .failure(let error) = $0 { return error.name }
        return nil
      }
    }
    var values: [Value] { all.compactMap { try? $0.get() } }
  }

  @Test("The first answer counts, and a second is told who was first (G27)")
  func once() throws {
    let registry = try Registry()
    let told = Told<String>()
    let tracker = Tracker()
    let completion = try Completion<String>("load", in: registry) {
      [object = tracker.make()] result in
      object.touch()
      told.add(result)
    }
    try completion.succeed("done")
    #expect(told.values == ["done"])
    #expect(tracker.liveCount == 0)
    let error = try #require(thrown { try completion.succeed("again") })
    #expect(error.name == "consumed")
    #expect(error.explanation.sentence.contains("\"load\""))
    #expect(error.explanation.sentence.contains("on thread"))
    #expect(errorName { try completion.fail(Mishap(number: 1)) } == "consumed")
    #expect(completion.end().isAlready)
    #expect(told.all.count == 1)
  }

  @Test("An error of the program's arrives as it was")
  func failing() throws {
    let registry = try Registry()
    let told = Told<Int>()
    let completion = try Completion<Int>("load", in: registry) { told.add($0) }
    try completion.fail(Mishap(number: 7))
    guard case .failure(.thrown(let error, let explanation))? = told.all.first
    else {
      Issue.record("\(told.all)")
      return
    }
    #expect(error as? Mishap == Mishap(number: 7))
    #expect(explanation.sentence.contains("\"load\""))
    // One of the registry's is told as it is.
    let other = try Completion<Int>("other", in: registry) { told.add($0) }
    let stale = try #require(thrown { try completion.succeed(1) })
    try other.fail(stale)
    #expect(told.errors == ["thrown", "consumed"])
  }

  /// What ends a completion that nobody calls.
  enum End: CaseIterable {
    case released, owner, handle, cancelled, closed, handleInC
  }

  @Test(
    "One that is never called is told so, by name (G27)",
    arguments: End.allCases)
  func neverCalled(_ end: End) throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    let told = Told<Int>()
    let tracker = Tracker()
    var completion: Completion<Int>? = try Completion(
      "forgotten", in: registry, owner: owner
    ) { [object = tracker.make()] result in
      object.touch()
      told.add(result)
    }
    switch end {
    case .released: completion = nil
    case .owner: _ = owner.end()
    case .handle: #expect(completion?.end().isEnded == true)
    case .cancelled: _ = completion?.end(reason: .cancelled)
    case .closed: _ = registry.close(waiting: Self.long)
    case .handleInC:
      #expect(cbr_invalidate(try #require(completion).handle, 1) == CBR_OK)
    }
    #expect(told.errors == [end == .cancelled ? "cancelled" : "neverCalled"])
    #expect(tracker.liveCount == 0)
    if end != .closed, case .failure(let error)? = told.all.first {
      try registry.flush(waiting: Self.long)
      let sentence = error.explanation.sentence
      #expect(sentence.contains("\"forgotten\""), "\(sentence)")
      #expect(error.explanation.story.contains("CompletionTests.swift"))
    }
    if let completion {
      let name = errorName { try completion.succeed(1) }
      #expect(name == (end == .closed ? "closed" : "stale"))
    }
    #expect(told.all.count == 1)
  }

  @Test("A failed registration takes nothing (G6)")
  func failedRegistration() throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    _ = owner.end()
    let tracker = Tracker()
    let told = Told<Int>()
    let name = errorName {
      _ = try Completion<Int>("late", in: registry, owner: owner) {
        [object = tracker.make()] result in
        object.touch()
        told.add(result)
      }
    }
    #expect(name == "stale")
    #expect(told.all.isEmpty)
    #expect(tracker.liveCount == 0)
  }

  @Test("Answers from all sides: one is told (A12)")
  func race() throws {
    let registry = try Registry(level: .lifecycle)
    let tracker = Tracker()
    for _ in 0..<300 {
      let told = Told<Int>()
      let completion = try Completion<Int>("race", in: registry) {
        [object = tracker.make()] result in
        object.touch()
        told.add(result)
      }
      let accepted = Counter()
      let workers = (0..<3).map { number in
        Worker {
          do throws(RegistryError) {
            if number == 0 {
              if case .ended = completion.end() { accepted.increment() }
            } else if number == 1 {
              try completion.fail(Mishap(number: 1))
              accepted.increment()
            } else {
              try completion.succeed(number)
              accepted.increment()
            }
          } catch {
            #expect(["consumed", "stale"].contains(error.name))
          }
        }
      }
      for worker in workers { worker.join() }
      _ = completion.end(waiting: Self.long)
      #expect(told.all.count == 1)
      #expect(accepted.count <= 1)
    }
    #expect(tracker.liveCount == 0)
  }

  @Test("A timeout on a queue ends it, and not after an answer (G27)")
  func timeout() throws {
    let registry = try Registry()
    let queue = try CallQueue("clock", in: registry)
    let told = Told<Int>()
    let over = Gate()
    let completion = try Completion<Int>("slow", in: registry) {
      told.add($0)
      over.open()
    }
    try completion.setTimeout(.zero, on: queue)
    over.wait()
    #expect(told.errors == ["timedOut"])
    #expect(errorName { try completion.succeed(1) } == "stale")
    let answered = try Completion<Int>("quick", in: registry) { told.add($0) }
    try answered.setTimeout(Self.long, on: queue)
    try answered.removeTimeout()
    try answered.setTimeout(Self.long, on: queue)
    try answered.succeed(2)
    #expect(
      errorName { try answered.setTimeout(.zero, on: queue) } == "consumed")
    let orphan = try Completion<Int>("orphan", in: registry) { told.add($0) }
    try orphan.setTimeout(Self.long, on: queue)
    #expect(queue.end(waiting: Self.long).isEnded)
    #expect(told.errors == ["timedOut", "neverCalled"])
    #expect(told.values == [2])
    #expect(errorName { try orphan.setTimeout(.zero, on: queue) } == "stale")
  }

  @Test("C completes what Swift waits for")
  func fromC() throws {
    let registry = try Registry()
    let told = Told<Int32>()
    let first = try Completion<Int32>("first", in: registry) { told.add($0) }
    var value: Int32 = 12
    #expect(cbr_completion_send(first.handle, 0, &value) == CBR_OK)
    #expect(cbr_completion_send(first.handle, 0, &value) == CBR_E_CONSUMED)
    #expect(told.values == [12])
    let second = try Completion<Int32>("second", in: registry) { told.add($0) }
    #expect(cbr_completion_send(second.handle, 44, nil) == CBR_OK)
    guard case .failure(.failed(let status, _))? = told.all.last else {
      Issue.record("\(told.all)")
      return
    }
    #expect(status == 44)
    let third = try Completion<Int32>("third", in: registry) { told.add($0) }
    #expect(cbr_completion_send(third.handle, 0, nil) == CBR_OK)
    #expect(told.errors == ["failed", "invalid"])
    let empty = Told<Void>()
    let fourth = try Completion<Void>("fourth", in: registry) { empty.add($0) }
    #expect(cbr_completion_send(fourth.handle, 0, nil) == CBR_OK)
    #expect(empty.values.count == 1)
  }
}

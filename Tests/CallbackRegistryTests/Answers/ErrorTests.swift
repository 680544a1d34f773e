// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Foundation
import Testing

@Suite("Errors")
struct ErrorTests {
  @Test("A late call is told who, where, when and why")
  func staleExplanation() throws {
    let registry = try Registry(label: "laboratory")
    let owner = try Owner("experiment", in: registry)
    let token = try registry.register("thermometer", owner: owner) {}.keep()
    let line = #line - 1
    #expect(owner.end().isEnded)
    let error = try #require(
      thrown { try token.call() })
    guard case .stale(let explanation) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(explanation.handle == token.handle)
    #expect(explanation.sentence.contains("dead"))
    try registry.flush(waiting: .seconds(3_600))
    let story = explanation.story
    for part in [
      "thermometer", "CallbackRegistryTests/ErrorTests.swift:\(line)",
      "owner died",
    ] {
      #expect(story.contains(part), "\(part) is missing in:\n\(story)")
    }
    // Both say how long ago it ended, each at its moment.
    let parts = explanation.sentence.split(separator: "\"")
    #expect(parts.count == 3 && parts[1] == "thermometer")
    #expect(error.description.hasPrefix(parts[0]))
    #expect(error.description.contains("thermometer"))
  }

  @Test("It is told so after its slot was used again, too (A3, C9)")
  func explanationAfterReuse() throws {
    let registry = try Registry()
    let token = try registry.register("first holder") {}.keep()
    #expect(token.end().isEnded)
    for _ in 0..<1_000 {
      let error = thrown { try token.call() }
      #expect(error?.name == "stale")
      _ = try registry.register("later holder") {}.keep().end()
    }
    let story = try registry.story(of: token)
    #expect(story.contains("first holder"), "\(story)")
    #expect(!story.contains("later holder"), "\(story)")
  }

  @Test("A sentence stays what it was when other things go wrong")
  func sentencesAreKept() throws {
    let registry = try Registry()
    let long = String(repeating: "x", count: 300)
    let error = try #require(
      thrown {
        _ = try registry.register(long) {}
      })
    _ = thrown { _ = try Owner(long, in: registry) }
    _ = thrown {
      try registry.note(String(repeating: "y", count: 5_000))
    }
    #expect(error.name == "invalid")
    #expect(
      error.explanation.sentence == "label is 300 bytes; the limit is 255")
  }

  @Test("Every status has its case")
  func everyStatus() {
    let names: [(Status, String)] = [
      (.invalid, "invalid"), (.stale, "stale"), (.kind, "wrongKind"),
      (.interface, "wrongType"), (.unimplemented, "unimplemented"),
      (.foreign, "foreign"), (.dying, "dying"), (.closed, "closed"),
      (.full, "full"), (.consumed, "consumed"),
      (.wouldDeadlock, "wouldDeadlock"), (.timeout, "timedOut"),
      (.depth, "tooDeep"), (.thread, "wrongThread"), (.forked, "forked"),
      (.noMemory, "outOfMemory"), (.limit, "limitReached"),
      (.audit, "history"), (.unsupported, "unsupported"), (.user, "failed"),
    ]
    // On a thread of its own, which has had no other error.
    let errors = Later<[RegistryError]>()
    Worker { errors.value = names.map { RegistryError($0.0) } }.join()
    for ((status, name), error) in zip(names, errors.value ?? []) {
      #expect(error.name == name)
      #expect(error.explanation.sentence.contains("\(status.text)"))
      #expect("\(error)".contains("\(status.text)"))
    }
    #expect(errors.value?.count == names.count)
  }

  @Test("Adding to an owner whose death has begun is refused (G18)")
  func dying() throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    let name = Later<String>()
    let token = try registry.register("last words", owner: owner) {
      #expect(owner.end().isDeferred)
      let error = thrown {
        _ = try registry.register("too late", owner: owner) {}
      }
      name.value = error?.name
    }.keep()
    try token.call()
    #expect(name.value == "dying")
  }

  @Test("An owner of another registry is refused, and unharmed (C11)")
  func foreign() throws {
    let registry = try Registry()
    let other = try Registry()
    let owner = try Owner(in: other)
    let error = thrown {
      _ = try registry.register("x", owner: owner) {}
    }
    #expect(error?.name == "foreign")
    let token = try other.register("y", owner: owner) { 1 }.keep()
    #expect(try token.call() == 1)
    let noteError = thrown {
      try registry.note("whose?", about: token)
    }
    #expect(noteError?.name == "foreign")
  }

  @Test("Everything of a closed registry says so, and nothing traps (D3)")
  func closed() throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    let object = Tracker().make()
    let token = try registry.register("x", owner: owner) { 1 }.keep()
    let weak = try registry.register("y", owner: object) { _ in 1 }.keep()
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    #expect(!registry.isLive)
    let attempts: [() throws -> Void] = [
      { _ = try token.call() },
      { _ = try weak.call() },
      { _ = try registry.register("z") {} },
      {
        _ = try registry.register("z", owner: object) { _ in }
      },
      { _ = try Owner(in: registry) },
      { _ = try registry.statistics },
      { _ = try registry.level },
      { try registry.setLevel(.off) },
      { try registry.note("x") },
      { try registry.flush() },
      { _ = try registry.live() },
      { _ = try registry.leaks() },
      { _ = try registry.impact(of: owner) },
      { _ = try registry.impact(of: object) },
      { try token.setLevel(.off) },
    ]
    for (index, attempt) in attempts.enumerated() {
      #expect(thrown(attempt)?.name == "closed", "attempt \(index)")
    }
    #expect(token.end().isAlready)
    #expect(owner.end().isAlready)
    #expect(registry.end(object).isEnded)
    #expect(registry.close().isAlready)
    #expect(!owner.isLive)
    #expect(Registry(handle: registry.handle) == nil)
    #expect(Token<Void, Int>(handle: token.handle) == nil)
  }

  @Test("What is live is told in a sentence, too")
  func sentenceOfTheLiving() throws {
    let registry = try Registry()
    let token = try registry.register("alive") {}
    let sentence = token.explanation.sentence
    #expect(sentence.contains("\"alive\": live"))
    #expect(!sentence.contains("\n"))
    _ = token.end()
    #expect(token.explanation.sentence.contains("\"alive\": dead"))
  }

  @Test("A path that is no history is refused, and left as it was")
  func unusablePaths() throws {
    let text = temporaryPath()
    try Data("not a database, but long enough to look at\n".utf8).write(
      to: URL(fileURLWithPath: text))
    for (path, name) in [
      (text, "history"), (temporaryPath() + "/no/such/folder.db", "history"),
      ("", "invalid"),
    ] {
      let error = try #require(
        thrown {
          _ = try Registry(history: .file(path))
        })
      #expect(error.name == name)
      #expect(!error.explanation.sentence.isEmpty)
    }
    #expect(
      try String(contentsOfFile: text, encoding: .utf8).hasPrefix("not a"))
    try FileManager.default.removeItem(atPath: text)
  }

  @Test("Numbers that are no live token of these types give none (G1, C13)")
  func tokensFromNumbers() throws {
    let registry = try Registry()
    let owner = try Owner(in: registry)
    let token = try registry.register("typed") { (x: Int) in Double(x) }
      .keep()
    #expect(Token<Int, Double>(handle: token.handle) == token)
    #expect(Token<Int, Float>(handle: token.handle) == nil)
    #expect(Token<Double, Double>(handle: token.handle) == nil)
    #expect(Token<(Int, Int), Double>(handle: token.handle) == nil)
    for number in [
      0, UInt64.max, registry.handle, owner.handle, token.handle + 1,
      token.handle ^ 1 << 40, 0x7FFF_1234_5678,
    ] {
      #expect(Token<Int, Double>(handle: number) == nil)
      #expect(Registry(handle: number) == nil || number == registry.handle)
    }
    // Looking is no attempt to call.
    #expect(try registry.statistics.refused == 0)
    #expect(token.end().isEnded)
    #expect(Token<Int, Double>(handle: token.handle) == nil)
  }
}

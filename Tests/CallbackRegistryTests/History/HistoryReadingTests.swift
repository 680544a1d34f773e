// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Foundation
import Testing

@Suite("Reading a history as typed rows")
struct HistoryReadingTests {
  /// All rows, in their order.
  private func all<Row>(_ rows: HistoryRows<Row>) async throws -> [Row] {
    var list: [Row] = []
    for try await row in rows { list.append(row) }
    return list
  }

  @Test(
    "What happened to a callback, in a file and in memory (A1, A2, A3)",
    arguments: [true, false])
  func story(inFile: Bool) async throws {
    let path = temporaryPath()
    let registry = try Registry(
      history: inFile ? .file(path) : .memory, label: "shop")
    let owner = try Owner("till", in: registry)
    let token = try registry.register("order", owner: owner) {
      (_: Int) in
    }.keep()
    for number in 0..<3 { try token.call(number) }
    try registry.note("a remark", about: token)
    #expect(token.end(reason: .cancelled).isEnded)
    for number in 0..<2 {
      #expect(thrown { try token.call(number) }?.name == "stale")
    }

    let history = try registry.auditHistory()
    let events = try await all(history.events(about: token.handle))
    #expect(
      events.map(\.kind) == [
        .registered, .call, .call, .call, .note, .ended, .settled, .refused,
        .refused,
      ])
    #expect(events.allSatisfy { $0.handle == token.handle })
    #expect(events.allSatisfy { $0.label == "order" && $0.run == 1 })
    #expect(events.allSatisfy { !$0.thread.isEmpty })
    #expect(
      events.filter { $0.kind == .call }.allSatisfy { $0.duration != nil })
    #expect(events[4].detail == "a remark")
    #expect(events[5].detail == "cancelled")
    #expect(events[7].detail == "CBR_E_STALE")
    #expect(events.map(\.sequence) == events.map(\.sequence).sorted())
    let later = history.events(about: token.handle, after: events[4].sequence)
    #expect(try await all(later).first?.kind == .ended)
    #expect(try await all(history.events()).count > events.count)

    let lives = try await all(history.lives())
    #expect(lives.map(\.kind) == [.registry, .owner, .token])
    let life = try #require(lives.last)
    #expect(life.label == "order")
    #expect(life.handle == token.handle)
    #expect(life.owner == owner.handle)
    #expect(life.state == .settled)
    #expect(life.reason == .cancelled)
    #expect(life.calls == 3)
    #expect(life.refusals == 2)
    #expect(life.abandoned == 0)
    #expect(life.site.contains("HistoryReadingTests.swift:"))
    #expect(try #require(life.ended) >= #require(life.registered))
    #expect(try #require(life.longest) <= #require(life.total))
    #expect(lives[0].state == .live)
    #expect(lives[0].ended == nil && lives[0].reason == nil)
    #expect(
      try await all(history.lives(label: "till")).map(\.handle)
        == [owner.handle])
    #expect(
      try await all(history.lives(about: owner.handle)).map(\.label)
        == ["till"])
    #expect(try await all(history.lives(label: "nobody")).isEmpty)

    let refusals = try await all(history.refusals(about: token.handle))
    let refusal = try #require(refusals.first)
    #expect(refusals.count == 1)
    #expect(refusal.count == 2)
    #expect(refusal.status == "CBR_E_STALE")
    #expect(refusal.label == "order")
    #expect(refusal.reason == .cancelled)
    #expect(refusal.isLate)
    #expect(refusal.thread == events[7].thread)
    #expect(try await all(history.refusals(about: owner.handle)).isEmpty)
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    if inFile { try expectSoundHistory(path) }
  }

  @Test("More rows than are read at a time, and those written meanwhile")
  func pages() async throws {
    let registry = try Registry(level: .lifecycle)
    for number in 0..<600 {
      _ = try registry.register("number \(number)") {}
    }
    var labels: [String] = []
    for try await life in try registry.auditHistory().lives() {
      if life.kind == .token { labels.append(life.label) }
      guard labels.count == 10 else { continue }
      _ = try registry.register("meanwhile") {}
      try registry.flush()
    }
    #expect(labels == (0..<600).map { "number \($0)" } + ["meanwhile"])
  }

  @Test("A file is read after its program, and where there is none it is told")
  func files() async throws {
    let path = temporaryPath()
    let registry = try Registry(history: .file(path))
    let token = try registry.register("left") {}.keep()
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    let history = try AuditHistory(path: path)
    let lives = try await all(history.lives(label: "left"))
    #expect(lives.map(\.handle) == [token.handle])
    #expect(lives.first?.reason == .registryClosed)

    let missing = temporaryPath()
    let error = thrown { _ = try AuditHistory(path: missing) }
    #expect(error?.name == "history")
    #expect(error?.explanation.sentence.contains(missing) == true)
    #expect(!FileManager.default.fileExists(atPath: missing))
    // C would read the file whose name ends at the zero.
    let zero = thrown { _ = try AuditHistory(path: path + "\0.mine") }
    #expect(zero?.name == "history")
    #expect(zero?.explanation.sentence.contains("path") == true)
    let none = thrown { _ = try AuditHistory(path: "") }
    #expect(none?.name == "history")
    #expect(none?.explanation.sentence.contains("another program") == false)
    let text = temporaryPath()
    let prose = "not a database, but long enough to look at\n"
    try Data(prose.utf8).write(to: URL(fileURLWithPath: text))
    #expect(thrown { _ = try AuditHistory(path: text) }?.name == "history")
    #expect(try String(contentsOfFile: text, encoding: .utf8) == prose)
    try FileManager.default.removeItem(atPath: text)

    // It goes away while somebody reads it.
    try FileManager.default.removeItem(atPath: path)
    var gone: RegistryError?
    do {
      _ = try await all(history.lives())
    } catch { gone = error as? RegistryError }
    #expect(gone?.name == "history")
    for suffix in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: path + suffix)
    }
  }

  @Test("A history in memory is gone with its registry")
  func inMemory() async throws {
    let registry = try Registry()
    _ = try registry.register("short") {}
    let history = try registry.auditHistory()
    #expect(try await all(history.lives(label: "short")).count == 1)
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    var gone: RegistryError?
    do {
      _ = try await all(history.lives())
    } catch { gone = error as? RegistryError }
    #expect(gone?.name == "closed")
    let error = thrown { _ = try registry.auditHistory() }
    #expect(error?.name == "closed")
  }

  @Test("Times are told as the views tell them")
  func times() async throws {
    let path = temporaryPath()
    let registry = try Registry(history: .file(path))
    _ = try registry.register("timed") {}
    let history = try registry.auditHistory()
    let life = try #require(try await all(history.lives(label: "timed")).first)
    let told = try rows(
      "SELECT registered_time FROM token_life WHERE label = 'timed'",
      in: path)
    let registered = try #require(life.registered)
    #expect([registered.description] == told)
    let ended = try #require(life.ended)
    #expect(ended.since(registered) >= .zero)
    #expect(registered.since(ended) <= .zero)
    #expect(
      "\(HistoryTime(nanosecondsSince1970: 0))"
        == "1970-01-01T00:00:00.000000Z")
    #expect(
      "\(HistoryTime(nanosecondsSince1970: -1))"
        == "1969-12-31T23:59:59.999999Z")
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    try expectSoundHistory(path)
  }
}

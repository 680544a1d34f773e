// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CallbackRegistry

@Suite("How a history is kept")
struct HistorySettingsTests {
  @Test("What cannot be is refused, with a sentence that names it")
  func badSettings() throws {
    let changes: [(inout HistorySettings) -> Void] = [
      { $0.threadBytes = 0 }, { $0.threadBytes = 5_000 },
      { $0.maximumBytes = 0 }, { $0.maximumBytes = 1 << 20 },
      { $0.maximumCalls = 9_999 }, { $0.maximumEvents = 0 },
      { $0.eventOverflow = .count }, { $0.ringDirectory = "" },
      { $0.ringDirectory = "a\u{0}b" }, { $0.ringDirectory = "/dev/shm" },
    ]
    let tracker = Tracker()
    for change in changes {
      var settings = HistorySettings()
      let captured = tracker.make()
      settings.whenChanged = { _, _ in captured.touch() }
      change(&settings)
      let error = thrown { _ = try Registry(settings: settings) }
      #expect(error?.name == "invalid")
      #expect(error?.explanation.sentence.isEmpty == false)
    }
    #expect(tracker.liveCount == 0)
  }

  @Test("Limits are kept, and said to be (A5)")
  func limits() async throws {
    var settings = HistorySettings()
    settings.maximumEvents = 10_000
    settings.callsPerSecond = 1
    let registry = try Registry(settings: settings)
    let token = try registry.register("busy") {}
    for _ in 0..<100 { try token.call() }
    for _ in 0..<20_000 { _ = try registry.register("brief") {} }
    let history = try registry.auditHistory()
    let statistics = try registry.statistics
    #expect(statistics.eventsAggregated > 0)
    #expect(statistics.eventsLost == 0)
    // Registered, ended and settled: 60 000, of which the oldest are gone, but
    // for what was added last.
    var events = history.events().makeAsyncIterator()
    #expect(try #require(try await events.next()).sequence > 40_000)
  }

  @Test("Events not yet written are in the directory that is named")
  func ringDirectory() throws {
    let (path, directory) = (temporaryPath(), temporaryPath())
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false)
    func files() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory)
    }
    var settings = HistorySettings()
    settings.ringDirectory = directory
    let registry = try Registry(history: .file(path), settings: settings)
    _ = try registry.register("kept") {}
    #expect(try files().count == 1)
    #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    #expect(try files().isEmpty)
    try FileManager.default.removeItem(atPath: directory)
    try expectSoundHistory(path)
  }

  @Test("Who is told of a history's state is released with the registry (G8)")
  func observer() throws {
    let tracker = Tracker()
    let told = Later<[String]>()
    told.value = []
    do {
      var settings = HistorySettings()
      let captured = tracker.make()
      settings.whenChanged = { state, sentence in
        captured.touch()
        told.value?.append("\(state): \(sentence)")
      }
      let registry = try Registry(settings: settings)
      settings.whenChanged = nil
      let status = Audit.withHistory(of: registry.handle) { history in
        "no room".withCString { history.tell(.degraded, $0) }
        "room again".withCString { history.tell(.good, $0) }
      }
      #expect(status == .ok)
      #expect(registry.close(waiting: .seconds(3_600)).isEnded)
    }
    #expect(told.value == ["degraded: no room", "good: room again"])
    #expect(tracker.madeCount == 1)
    #expect(tracker.liveCount == 0)
  }
}

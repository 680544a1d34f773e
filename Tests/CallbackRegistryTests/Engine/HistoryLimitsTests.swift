// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CallbackRegistry

/// What is deleted by rule (J46, J54), and that it is said.
@Suite struct HistoryLimitsTests {
  private let folder: TestFolder

  init() throws { folder = try TestFolder() }

  private func check(_ history: TestHistory) throws {
    #expect(try history.rows("SELECT * FROM violations") == [])
    #expect(
      try history.rows("SELECT * FROM conservation WHERE difference <> 0")
        == [])
  }

  @Test func callsBeyondTheirLimitGo() throws {
    var limits = HistoryLimits()
    limits.calls = 90_000
    let history = try TestHistory(path: folder.file(), limits: limits)
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    for _ in 0..<30 {
      for _ in 0..<10_000 { producer.call(token) }
      #expect(history.flush() == .ok)
      #expect(try history.number("SELECT count(*) FROM call") <= 98_192)
    }
    producer.end(token)
    producer.settle(token, attempts: 300_000)
    #expect(history.flush() == .ok)
    let kept = try history.number("SELECT count(*) FROM call")
    #expect(kept >= 80_000)
    #expect(
      try history.rows("SELECT sum(rows), min(rule), max(rule) FROM purge")
        == ["\(300_000 - kept)|more calls than 90000|more calls than 90000"])
    // The newest are there, and the others are known to have been.
    #expect(
      try history.number("SELECT max(sequence) - min(sequence) FROM call")
        == kept - 1)
    #expect(
      try history.rows("SELECT called, purged FROM conservation LIMIT 1")
        == ["\(kept)|\(300_000 - kept)"])
    try check(history)
  }

  /// What comes in one batch is no more than what goes after it.
  @Test(arguments: [true, false])
  func eventsBeyondTheirLimitGoAsFastAsTheyCome(inFile: Bool) throws {
    var limits = HistoryLimits()
    limits.events = 10_000
    let history = try TestHistory(
      path: inFile ? folder.file() : nil, limits: limits)
    let producer = TestProducer(history, number: 1)
    var number: UInt64 = 0
    for _ in 0..<10 {
      for _ in 0..<10_000 {
        number += 1
        let token = testToken(number)
        producer.register(token)
        producer.end(token)
        producer.settle(token, attempts: 0)
      }
      #expect(history.flush() == .ok)
      // The limit, a batch, and a step that was not yet due.
      let most = 10_000 + Batch.rowLimit + 2_048
      #expect(
        try history.number("SELECT count(*) FROM control_event") <= most)
      #expect(try history.number("SELECT count(*) FROM token") <= most / 3 + 1)
    }
    #expect(try history.rows("SELECT * FROM violations") == [])
  }

  @Test func theDiskIsBounded() throws {
    var limits = HistoryLimits()
    limits.bytes = 16 << 20
    let history = try TestHistory(
      path: folder.file(), ringBytes: 256 << 10, limits: limits)
    let producer = TestProducer(history, number: 1)
    for number in 1...200 {
      let token = testToken(UInt64(number))
      producer.register(token)
      for _ in 0..<8_000 { producer.call(token) }
      producer.end(token)
      producer.settle(token, attempts: 8_000)
      #expect(history.flush() == .ok)
      #expect(try bytes() <= 16 << 20 / 100 * 105)
    }
    #expect(try history.number("SELECT count(*) FROM call") > 50_000)
    #expect(
      try history.number("SELECT count(*) FROM control_event") == 601)
    try check(history)
  }

  /// All that is on the disk.
  private func bytes() throws -> Int {
    let files = FileManager.default.enumerator(atPath: folder.path)
    var sum = 0
    while let name = files?.nextObject() as? String {
      let status = try FileManager.default.attributesOfItem(
        atPath: folder.path + "/" + name)
      if status[.type] as? FileAttributeType == .typeRegular {
        sum += status[.size] as? Int ?? 0
      }
    }
    return sum
  }

  @Test func otherEventsBeyondTheirLimitGoWithWhatTheyTell() throws {
    var limits = HistoryLimits()
    limits.events = 10_000
    let history = try TestHistory(path: folder.file(), limits: limits)
    let producer = TestProducer(history, number: 1)
    let old = testToken(900_000)
    producer.register(old)
    producer.call(old)
    for number in 1...10_000 {
      let token = testToken(UInt64(number))
      producer.register(token)
      producer.call(token)
      producer.note("about \(number)", about: token)
      producer.end(token)
      producer.settle(token, attempts: 1)
      producer.refuse(token)
      if number % 500 == 0 { #expect(history.flush() == .ok) }
    }
    // One step after each batch.
    for _ in 0..<30 {
      producer.note("later")
      #expect(history.flush() == .ok)
    }
    let events = try history.number("SELECT count(*) FROM control_event")
    #expect((7_000...10_001).contains(events))
    // What has settled and is forgotten has no row; what lives has.
    #expect(try history.number("SELECT count(*) FROM token") < 2_500)
    #expect(
      try history.rows(
        "SELECT state FROM token_life WHERE token = '\(shown(old))'")
        == ["live"])
    #expect(try history.number("SELECT count(*) FROM refusal") < 2_500)
    #expect(
      try history.number(
        "SELECT count(*) FROM note WHERE sequence < "
          + "(SELECT min(sequence) FROM control_event)") == 0)
    // Calls have gone first.
    #expect(
      try history.number(
        "SELECT (SELECT min(sequence) FROM call) > "
          + "(SELECT min(sequence) FROM control_event)") == 1)
    #expect(
      try history.number(
        "SELECT sum(rows) FROM purge WHERE table_name = 'control_event'")
        + events == 50_032)
    try check(history)
  }

  @Test func oldCallsAndThenOldEventsGo() throws {
    var limits = HistoryLimits()
    limits.callAge = 200_000_000
    limits.eventAge = 300_000_000
    let history = try TestHistory(path: folder.file(), limits: limits)
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    for _ in 0..<1_000 { producer.call(token) }
    producer.end(token)
    producer.settle(token, attempts: 1_000)
    #expect(history.flush() == .ok)
    let deadline = Date(timeIntervalSinceNow: 20)
    // Nothing more is recorded: time alone makes them old.
    while try history.number(
      "SELECT (SELECT count(*) FROM call) + (SELECT count(*) FROM control_event)"
    )
      > 0
    {
      try #require(Date() < deadline)
      usleep(20_000)
    }
    #expect(
      try history.rows("SELECT rule FROM purge ORDER BY purge")
        == [
          "calls are older than 200.000 ms",
          "other events are older than 300.000 ms",
        ])
    #expect(try history.rows("SELECT * FROM token_life") == [])
    try check(history)
  }

  /// J57: neither the wall clock nor another boot makes calls old.
  @Test func callsOfAnEarlierBootAreAsOldAsThisOne() throws {
    do {
      let history = try TestHistory(path: folder.file())
      let producer = TestProducer(history, number: 1)
      producer.register(testToken(1))
      producer.call(testToken(1))
      #expect(history.release() == .ok)
    }
    _ = try rows(
      "UPDATE run SET boot = 'another', realtime_offset_ns = 0",
      in: folder.file())
    _ = try rows(
      "UPDATE segment SET last_time_ns = 0x7fffffffffffffff", in: folder.file())
    var limits = HistoryLimits()
    limits.callAge = .max - 1
    var history = try TestHistory(path: folder.file(), limits: limits)
    TestProducer(history, number: 1).note("now")
    #expect(history.flush() == .ok)
    #expect(try history.number("SELECT count(*) FROM call") == 1)
    #expect(history.release() == .ok)
    limits.callAge = 1_000_000
    history = try TestHistory(path: folder.file(), limits: limits)
    let producer = TestProducer(history, number: 1)
    for _ in 0..<3 {
      producer.note("now")
      #expect(history.flush() == .ok)
    }
    #expect(try history.number("SELECT count(*) FROM call") == 0)
    #expect(history.release() == .ok)
  }

  @Test func deletingByHandIsStillRefused() throws {
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1)
    producer.note("kept")
    #expect(history.flush() == .ok)
    for table in ["control_event", "note"] {
      #expect(throws: (any Error).self) {
        try history.rows("DELETE FROM \(table)")
      }
    }
  }
}

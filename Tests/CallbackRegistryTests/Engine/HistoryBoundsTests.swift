// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Foundation
import Testing

@testable import CallbackRegistry

/// What is too much is counted, to the unit, and says so.
@Suite struct HistoryBoundsTests {
  @Test func lossesAreCountedExactly() throws {
    let folder = try TestFolder()
    let history = try TestHistory(
      path: folder.file(), ringBytes: 4096, blockTimeoutNanoseconds: 1_000)
    let producer = TestProducer(history, number: 1)
    producer.register(testToken(1))
    #expect(history.flush() == .ok)

    let lock = TestLock(folder.file())
    var kept = 0
    for _ in 0..<1_000 where producer.refuse(testToken(1)) { kept += 1 }
    lock.end()
    #expect(kept < 200)
    #expect(history.flush() == .ok)
    producer.refuse(testToken(1))
    #expect(history.flush() == .ok)

    let counts = history.pointer.counts()
    #expect(counts.lost == UInt64(1_000 - kept))
    #expect(counts.emitted == counts.written + counts.lost)
    #expect(
      try history.rows(
        "SELECT sum(events), sum(last_ring_sequence "
          + "- first_ring_sequence + 1) FROM losses")
        == ["\(1_000 - kept)|\(1_000 - kept)"])
    #expect(
      try history.rows("SELECT refusals FROM refusals") == ["\(kept + 1)"])
    #expect(try history.rows("SELECT * FROM violations") == [])
    #expect(
      try history.rows(
        "SELECT lost FROM conservation WHERE token = 'total'")
        == ["\(1_000 - kept)"])
  }

  @Test func aNoteLargerThanTheRingIsLostAtOnce() throws {
    let history = try TestHistory(path: nil, ringBytes: 4096)
    let producer = TestProducer(history, number: 1)
    let began = Date()
    producer.note(String(repeating: "x", count: 4095))
    #expect(Date().timeIntervalSince(began) < 0.5)
    #expect(history.flush() == .ok)
    #expect(history.pointer.counts().lost == 1)
    #expect(try history.rows("SELECT events FROM losses") == ["1"])
    #expect(try history.rows("SELECT * FROM violations") == [])
  }

  @Test func callsThatFindNoRoomAreCounted() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file(), ringBytes: 4096)
    let producer = TestProducer(history, number: 1)
    let tokens = (1...3).map { testToken(UInt64($0)) }
    for token in tokens { producer.register(token) }
    #expect(history.flush() == .ok)
    let lock = TestLock(folder.file())
    for _ in 0..<1_000 {
      for token in tokens { producer.call(token, ticks: 1_000) }
    }
    lock.end()
    for token in tokens {
      producer.end(token)
      producer.settle(token, attempts: 1_000)
    }
    #expect(history.flush() == .ok)
    #expect(
      try history.rows(
        "SELECT called + aggregated, aggregated > 900, difference "
          + "FROM conservation WHERE label = '' OR label IS NULL")
        == ["1000|1|0", "1000|1|0", "1000|1|0", "3000|1|0"])
    #expect(
      try history.rows(
        "SELECT DISTINCT cause, total_ns >= max_ns FROM aggregate")
        == ["2|1"])
    #expect(try history.rows("SELECT * FROM violations") == [])
    let counts = history.pointer.counts()
    #expect(
      counts.emitted == counts.written + counts.aggregated + counts.lost)
  }

  @Test func beyondTheBudgetCallsAreCounted() throws {
    let history = try TestHistory(path: nil, callsPerSecond: 100)
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    for _ in 0..<20_000 { producer.call(token, ticks: 100) }
    producer.count(token, attempts: 20_000)
    #expect(history.flush() == .ok)
    let rows = try history.number("SELECT count(*) FROM call")
    #expect((100..<2_000).contains(rows))
    #expect(
      try history.rows("SELECT calls, total_ns >= calls FROM aggregate")
        == ["\(20_000 - rows)|1"])
    #expect(history.pointer.counts().aggregated == UInt64(20_000 - rows))
    #expect(
      try history.rows("SELECT calls, call_rows FROM token")
        == ["20000|\(rows)"])
    #expect(
      try history.rows("SELECT difference FROM conservation") == ["0", "0"])
    // Five hundredths later there is room for two at least; a budget does not
    // shrink, however long it takes.
    usleep(50_000)
    for _ in 0..<2 { producer.call(token) }
    #expect(history.flush() == .ok)
    #expect(try history.number("SELECT count(*) FROM call") == rows + 2)
  }

  @Test func memoryKeepsTheLastMillionCalls() throws {
    let history = try TestHistory(path: nil, ringBytes: 64 << 20)
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    let calls = 1_300_000
    for _ in 0..<calls { producer.call(token) }
    producer.end(token)
    producer.settle(token, attempts: UInt64(calls))
    #expect(history.flush(timeoutNanoseconds: 100 * second) == .ok)
    let kept = try history.number("SELECT count(*) FROM call")
    #expect((1_000_000...1_200_000).contains(kept))
    #expect(
      try history.rows("SELECT sum(rows), min(rule) FROM purge")
        == ["\(calls - kept)|more calls than 1125000"])
    #expect(
      try history.rows("SELECT called, purged, difference FROM conservation")
        == ["\(kept)|\(calls - kept)|0", "\(kept)|\(calls - kept)|0"])
    #expect(try history.rows("SELECT * FROM violations") == [])
    #expect(
      try history.number("SELECT count(*) FROM segment")
        == (try history.number(
          "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'call_0*' "
            + "AND type = 'table'")))
  }

  @Test func aFaultEndsAndIsRecorded() throws {
    let folder = try TestFolder()
    let history = try TestHistory(
      path: folder.file(), ringBytes: 4096, blockTimeoutNanoseconds: 1_000)
    let producer = TestProducer(history, number: 1)
    producer.register(testToken(1))
    #expect(history.flush() == .ok)

    // No page more: transactions fail as on a full disk.
    try limitPages(of: history, to: 1)
    var status = Status.ok
    for _ in 0..<200 where status == .ok {
      producer.note(String(repeating: "y", count: 2_000))
      status = history.flush()
    }
    #expect(status == .audit)
    #expect(history.pointer.counts().state == 2)
    let began = Date()
    for _ in 0..<1_000 { producer.refuse(testToken(1)) }
    #expect(Date().timeIntervalSince(began) < 1)
    let lost = history.pointer.counts().lost
    #expect(lost > 900)

    try limitPages(of: history, to: 1_000_000)
    #expect(history.flush() == .ok)
    #expect(history.pointer.counts().state == 1)
    #expect(
      try history.rows(
        "SELECT cause, failures > 0, ended_time_ns > began_time_ns FROM fault")
        == ["database or disk is full|1|1"])
    #expect(
      try history.rows(
        "SELECT cause, sum(events) FROM losses GROUP BY cause")
        == ["the history could not be written|\(lost)"])
    #expect(try history.rows("SELECT * FROM violations") == [])
    let counts = history.pointer.counts()
    #expect(counts.emitted == counts.written + counts.lost)
    #expect(history.release() == .ok)
  }

  private func limitPages(of history: TestHistory, to pages: Int) throws {
    #expect(history.pointer.pointee.turn.takeAsReader(until: .after(second)))
    defer { history.pointer.pointee.turn.give() }
    let connection = history.pointer.pointee.database!.connection
    try "PRAGMA max_page_count = \(pages)".withCString {
      try connection.execute($0)
    }
  }

  @Test func closingAHistoryThatCannotBeWrittenSaysSo() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1)
    producer.register(testToken(1))
    #expect(history.flush() == .ok)
    let lock = TestLock(folder.file())
    producer.end(testToken(1))
    let began = Date()
    let status = history.release(1_500_000_000)
    #expect(status == .timeout || status == .audit)
    #expect(Date().timeIntervalSince(began) < 3)
    lock.end()
  }

  @Test func lockOfAnotherProgramLosesNothing() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    #expect(history.flush() == .ok)
    let lock = TestLock(folder.file())
    for _ in 0..<1_000 { producer.call(token) }
    usleep(1_500_000)
    #expect(history.pointer.counts().state == 1)
    lock.end()
    producer.count(token, attempts: 1_000)
    #expect(history.flush() == .ok)
    #expect(try history.number("SELECT count(*) FROM call") == 1_000)
    #expect(try history.number("SELECT count(*) FROM loss") == 0)
    #expect(try history.rows("SELECT * FROM violations") == [])
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing

@testable import CallbackRegistry

/// What is recorded arrives, once, in order, and adds up.
@Suite struct HistoryEventTests {
  @Test func everyEventOnceAndInOrder() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let threads = 4
    let calls = 20_000
    let label = history.callback("each")
    onThreads(threads) { thread in
      let producer = TestProducer(history, number: UInt32(thread + 1))
      let token = testToken(UInt64(thread + 1))
      producer.register(token, callback: label)
      for call in 0..<calls {
        producer.call(token)
        // The writer keeps up, so that no ring is ever full.
        if call % 4_000 == 0 { history.flush() }
      }
      producer.end(token)
      producer.settle(token, attempts: UInt64(calls))
    }
    let counts = history.pointer.counts()
    #expect(history.release() == .ok)

    let total = threads * (calls + 4)
    #expect(counts.emitted == UInt64(total))
    #expect(counts.lost == 0)
    let inAll = try history.number("SELECT count(*) FROM event")
    let counted = try history.number(
      "SELECT coalesce(sum(calls), 0) FROM aggregate")
    #expect(inAll + counted == total)
    #expect(
      try history.rows("SELECT min(sequence), max(sequence) FROM event")
        == ["1|\(inAll)"])
    #expect(try history.rows("SELECT * FROM violations") == [])
    #expect(
      try history.rows("SELECT * FROM conservation WHERE difference <> 0")
        == [])
    #expect(
      try history.rows(
        """
        SELECT attempts, called + aggregated, difference FROM conservation
        WHERE token = 'total'
        """) == ["\(threads * calls)|\(threads * calls)|0"])
    #expect(
      try history.rows(
        "SELECT ended FROM run UNION ALL SELECT events FROM losses")
        == ["closed"])
  }

  @Test func orderAcrossThreadsIsThatOfCauses() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let turn = Atomic<UInt64>(0)
    let rounds: UInt64 = 20_000
    onThreads(2) { thread in
      let producer = TestProducer(history, number: UInt32(thread + 1))
      var next = UInt64(thread)
      while next < rounds {
        while turn.load(ordering: .acquiring) != next {}
        producer.recorder.record(
          .leveled, in: producer.ring, handle: 0, argument: UInt32(next),
          time: Ticks.afterEffects)
        turn.store(next + 1, ordering: .releasing)
        next += 2
      }
    }
    #expect(history.flush() == .ok)
    #expect(
      try history.rows(
        """
        SELECT count(*), count(*) FILTER (WHERE argument <> place)
        FROM (SELECT argument, row_number() OVER (ORDER BY sequence) - 1
          AS place FROM control_event WHERE kind = 14)
        """) == ["\(rounds)|0"])
    #expect(
      try history.number(
        """
        SELECT count(*) FROM (SELECT time_ns - lag(time_ns)
          OVER (ORDER BY sequence) AS step FROM control_event
          WHERE kind = 14) WHERE step < 0
        """) == 0)
  }

  @Test func aStoryCanBeRead() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1, name: "main")
    let site = history.site("window.c", 42)
    let token = testToken(1)
    producer.recorder.record(
      .opened, in: producer.ring, handle: testRegistry,
      argument: UInt32(history.callback("app")), payload: Payload(3))
    producer.register(
      testOwner(1), callback: history.callback("window"), owner: testRegistry)
    producer.register(
      token, callback: history.callback("on_data"), site: site,
      owner: testOwner(1))
    for _ in 0..<3 { producer.call(token, ticks: 5_000) }
    producer.recorder.record(
      .leased, in: producer.ring, handle: token, payload: Payload(testLease))
    let other = TestProducer(history, number: 2, name: "download")
    producer.end(token, reason: Reason.ownerDied)
    producer.recorder.record(
      .leaseEnded, in: producer.ring, handle: token,
      payload: Payload(testLease))
    producer.settle(token, attempts: 3)
    for _ in 0..<5 { other.refuse(token) }
    other.refuse(0x1234, .invalid)
    producer.note("héllo, said at some length", about: token)
    #expect(history.flush(3) == .ok)

    #expect(
      try history.rows(
        "SELECT event, thread, token, label, detail FROM history "
          + "WHERE event IN ('registered', 'ended', 'settled', 'note') "
          + "AND label = 'on_data'") == [
          "registered|main#1|\(shown(token))|on_data|for "
            + "\(shown(testOwner(1))) \"window\" at window.c:42",
          "ended|main#1|\(shown(token))|on_data|owner died",
          "settled|main#1|\(shown(token))|on_data|3 calls, destroyed",
          "note|main#1|\(shown(token))|on_data|héllo, said at some length",
        ])
    #expect(
      try history.rows(
        """
        SELECT token, label, caller, attempts, status, ended_reason,
          ended_by, registered_at, owner_label FROM late_callers
        """) == [
          "\(shown(token))|on_data|download#2|5|CBR_E_STALE|owner died|main#1|"
            + "window.c:42|window"
        ])
    #expect(
      try history.rows(
        "SELECT token, status, thread, refusals FROM refusals") == [
          "\(shown(token))|CBR_E_STALE|download#2|5",
          "0x0000000000001234|CBR_E_INVALID|download#2|1",
        ])
    #expect(
      try history.rows(
        "SELECT state, calls, refusals, leases FROM token_life "
          + "WHERE kind = 'token'") == ["settled|3|5|1"])
    #expect(try history.rows("SELECT kind FROM live") == ["registry", "owner"])
    #expect(try history.rows("SELECT * FROM violations") == [])
    #expect(try history.rows("SELECT * FROM leaks") == [])
    #expect(try history.number("SELECT count(*) FROM slowest") == 3)
    #expect(try history.number("SELECT count(*) FROM timeline") == 22)
    #expect(
      try history.rows("SELECT * FROM health WHERE name = 'violations'")
        == ["violations|0"])
    explainsTheStory(history, token: token)
  }

  private func explainsTheStory(_ history: TestHistory, token: UInt64) {
    let text = history.explain(token) ?? ""
    for part in [
      "token \(shown(token)) \"on_data\": dead\n", "registered 20",
      "by main#1 at window.c:42",
      "belongs to \(shown(testOwner(1))) \"window\"",
      "by main#1: owner died\n", "calls: 3; ", "; leases: 1",
      "refused: 5 by download#2, CBR_E_STALE, ", " after its end\n",
    ] {
      #expect(text.contains(part), "\(part) in \(text)")
    }
    #expect(history.explain(testLease)?.contains("of token") == true)
    #expect(history.explain(testToken(77)) == nil)
  }

  @Test func namesAreThoseOfTheEngine() throws {
    let history = try TestHistory(path: nil)
    _ = TestProducer(history, number: 1)
    #expect(history.flush() == .ok)
    for row in try history.rows("SELECT status, name, text FROM status") {
      let parts = row.split(separator: "|", maxSplits: 2).map(String.init)
      let status = Status(rawValue: Int32(parts[0])!)
      #expect(status?.name.description == parts[1])
      #expect(status?.text.description == parts[2])
    }
    #expect(try history.number("SELECT count(*) FROM status") == 26)
    for row in try history.rows("SELECT reason, name FROM reason") {
      let parts = row.split(separator: "|").map(String.init)
      #expect(Reason.name(UInt32(parts[0])!)?.description == parts[1])
    }
    #expect(Reason.name(12) == nil)
    #expect(try history.number("SELECT count(*) FROM reason") == 12)
  }

  @Test func liveTokensBalanceAfterAFlush() throws {
    let history = try TestHistory(path: nil)
    let producer = TestProducer(history, number: 1)
    let calls = testToken(1)
    let lifecycle = testToken(2)
    let short = testToken(3)
    producer.register(calls)
    producer.register(lifecycle, level: 2)
    producer.register(short)
    for _ in 0..<10 { producer.call(calls) }
    producer.count(calls, attempts: 11, unfinished: 1)
    producer.count(lifecycle, attempts: 500)
    // One of four calls has not been recorded: a fault that must be seen.
    for _ in 0..<3 { producer.call(short) }
    producer.count(short, attempts: 4)
    producer.refuse(calls, .interface)
    #expect(history.flush() == .ok)
    #expect(
      try history.rows(
        """
        SELECT token, level, attempts, called, counted_only, refused,
          in_flight, difference FROM conservation
        """) == [
          "\(shown(calls))|calls|12|10|0|1|1|0",
          "\(shown(lifecycle))|lifecycle|500|0|500|0|0|0",
          "\(shown(short))|calls|4|3|0|0|0|1",
          "total||516|13|500|1|1|1",
        ])
  }

  @Test func faultsAreShownByViolations() throws {
    let history = try TestHistory(path: nil)
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    producer.end(token)
    producer.settle(token, attempts: 0)
    producer.call(token)
    producer.end(token)
    producer.call(testToken(2))
    #expect(history.flush() == .ok)
    let rules = Set(try history.rows("SELECT rule FROM violations"))
    for rule in [
      "a call began after its token had ended",
      "a call after its token had settled",
      "an event after its token had settled", "more than one event \"ended\"",
      "more outcomes than calls",
      "a call of a token that was never registered",
    ] {
      #expect(rules.contains(rule), "\(rule)")
    }
    #expect(
      try history.rows("SELECT difference FROM conservation LIMIT 1") == ["-1"])
  }

  /// What was lost may have been the registration: that is no fault.
  @Test func aCallWhoseRegistrationWasLostIsNoViolation() throws {
    let history = try TestHistory(path: nil)
    let producer = TestProducer(history, number: 1)
    producer.call(testToken(2))
    #expect(history.flush() == .ok)
    let rules = "SELECT rule FROM violations"
    #expect(
      try history.rows(rules) == [
        "a call of a token that was never registered"
      ])
    #expect(
      try history.rows(
        """
        INSERT INTO loss (run, events, cause, first_time_ns, last_time_ns)
        SELECT run, 1, 1, 0, 0 FROM run
        """) == [])
    #expect(try history.rows(rules) == [])
  }

  /// J63: a call cannot end before it begins, whatever the counter says.
  @Test func noDurationIsNegative() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1)
    let token = testToken(1)
    producer.register(token)
    let now = Ticks.now
    history.pointer.recorder.recordCall(
      in: producer.ring, token: token, began: now, ended: now - 1_000)
    #expect(history.flush() == .ok)
    #expect(try history.rows("SELECT argument FROM call") == ["0"])
    #expect(
      try history.rows("SELECT total_ns, max_ns FROM token WHERE token <> 0")
        == ["0|0"])
    #expect(try history.rows("SELECT * FROM violations") == [])
  }

  @Test func ringsAreUsedByThreadAfterThread() throws {
    let history = try TestHistory(path: nil)
    let token = testToken(1)
    for number in 1...50 {
      let producer = TestProducer(history, number: UInt32(number))
      if number == 1 { producer.register(token) }
      producer.call(token)
      producer.end()
    }
    #expect(history.flush() == .ok)
    #expect(try history.number("SELECT count(*) FROM ring") == 1)
    #expect(
      try history.rows(
        """
        SELECT count(DISTINCT thread) FROM history WHERE event = 'call'
        """) == ["50"])
    #expect(try history.rows("SELECT * FROM violations") == [])
  }
}

// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing

@testable import CallbackRegistry

/// Which files become histories, and which are left alone.
@Suite struct HistoryOpeningTests {
  /// The sentence with which a path is refused.
  private func refusal(_ path: String) -> String {
    do {
      let history = try TestHistory.open(path)
      _ = history.release(until: .after(second))
      return "opened"
    } catch let refusal as TestHistory.Refusal {
      #expect(refusal.status == .audit)
      #expect(refusal.problem.hasPrefix("history "))
      return refusal.problem
    } catch { return "\(error)" }
  }

  @Test func textIsLeftAsItIs() throws {
    let folder = try TestFolder()
    for text in [
      "x", "This is a diary.\n", String(repeating: "long ", count: 9_000),
    ] {
      let path = folder.file(UUID().uuidString)
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      #expect(
        refusal(path).contains("it is not an SQLite database and was left"))
      #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
      #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
    }
  }

  @Test func otherDatabasesAreLeftAsTheyAre() throws {
    let folder = try TestFolder()
    for (name, sql, words) in [
      ("table", "CREATE TABLE mine (x)", "of another program and was left"),
      (
        "application", "PRAGMA application_id = 17",
        "of another program (application_id 17)"
      ),
      (
        "newer",
        "PRAGMA application_id = 1128419889; PRAGMA user_version = 2",
        "its format is 2, and this library knows formats up to 1"
      ),
    ] {
      let path = folder.file(name)
      _ = FileManager.default.createFile(atPath: path, contents: nil)
      for statement in sql.split(separator: ";") {
        _ = try rows(String(statement), in: path)
      }
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      #expect(refusal(path).contains(words), "\(name)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }
  }

  @Test func anEmptyFileBecomesAHistory() throws {
    let folder = try TestFolder()
    _ = FileManager.default.createFile(atPath: folder.file(), contents: nil)
    let history = try TestHistory(path: folder.file())
    #expect(history.release() == .ok)
    #expect(
      try rows("PRAGMA application_id", in: folder.file()) == ["1128419889"])
    #expect(try rows("PRAGMA user_version", in: folder.file()) == ["1"])
    #expect(try rows("PRAGMA page_size", in: folder.file()) == ["8192"])
    #expect(try rows("PRAGMA integrity_check", in: folder.file()) == ["ok"])
    #expect(
      try rows("SELECT ended FROM run", in: folder.file()) == ["closed"])
  }

  @Test func placesThatCannotBeWritten() throws {
    let folder = try TestFolder()
    #expect(refusal(folder.path).contains("it is a directory"))
    #expect(
      refusal(folder.file("missing/x")).contains(
        "its directory does not exist"))
    // J43: each says what is to be done. Not even root can make files there.
    if access("/sys/kernel", F_OK) == 0 {
      let problem = refusal("/sys/kernel/callbackregistry-test")
      #expect(
        ["is not writable", "is read-only", "no file can be made"].contains {
          problem.contains($0)
        }, "\(problem)")
    }
    #expect(refusal("/dev/null").contains("it is a device"))
    guard getuid() != 0 else { return }
    let history = try TestHistory(path: folder.file())
    #expect(history.release() == .ok)
    chmod(folder.file(), 0o400)
    #expect(refusal(folder.file()).contains("it is read-only"))
    chmod(folder.file(), 0o600)
    chmod(folder.path, 0o500)
    #expect(refusal(folder.file()).contains("its directory is not writable"))
    chmod(folder.path, 0o700)
  }

  @Test func aLockedDatabaseIsNotOpened() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    #expect(history.release() == .ok)
    let lock = TestLock(folder.file())
    #expect(refusal(folder.file()).contains("another program has locked it"))
    lock.end()
  }

  @Test func onePathIsOneHistory() throws {
    let folder = try TestFolder()
    let one = try TestHistory(path: folder.file())
    let other = try TestHistory(
      path: folder.path + "/../"
        + (folder.path as NSString).lastPathComponent + "/test.history")
    #expect(one.pointer == other.pointer)
    let producer = TestProducer(one, number: 1)
    producer.register(testToken(1))
    #expect(other.release() == .ok)
    producer.call(testToken(1))
    #expect(one.release() == .ok)
    #expect(try one.number("SELECT count(*) FROM run") == 1)
    #expect(try one.number("SELECT count(*) FROM call") == 1)
  }

  @Test func openingsAtTheSameTimeShare() throws {
    let folder = try TestFolder()
    let path = folder.file()
    onThreads(8) { thread in
      for round in 0..<10 {
        guard let history = try? TestHistory(path: path) else {
          Issue.record("not opened")
          return
        }
        let producer = TestProducer(
          history, number: UInt32(1 + thread * 100 + round))
        producer.note("here")
        #expect(history.release() == .ok)
      }
    }
    #expect(try rows("SELECT count(*) FROM note", in: path) == ["80"])
    #expect(
      try rows("SELECT count(*) FROM run WHERE ended IS NOT 'closed'", in: path)
        == ["0"])
    #expect(try rows("SELECT * FROM violations", in: path) == [])
  }

  @Test func aSecondRunGoesOn() throws {
    let folder = try TestFolder()
    let token = testToken(1)
    for run in 1...3 {
      let history = try TestHistory(path: folder.file())
      let producer = TestProducer(history, number: 1)
      producer.register(token, callback: history.callback("run \(run)"))
      producer.register(testToken(2), callback: history.callback("each"))
      for _ in 0..<run { producer.call(token) }
      if run == 2 { #expect(history.explain(token)?.contains("run 2") == true) }
      if run == 3 {
        let former = try #require(history.explain(token))
        #expect(former.contains("run 3"))
      }
      producer.end(token)
      producer.settle(token, attempts: UInt64(run))
      #expect(history.release() == .ok)
    }
    let path = folder.file()
    #expect(
      try rows("SELECT count(*), count(DISTINCT uuid) FROM run", in: path)
        == ["3|3"])
    #expect(
      try rows(
        "SELECT min(sequence), max(sequence), count(*) FROM event", in: path)
        == ["1|21|21"])
    #expect(
      try rows(
        "SELECT label, calls FROM token_life WHERE state = 'settled'", in: path)
        == ["run 1|1", "run 2|2", "run 3|3"])
    #expect(
      try rows("SELECT count(*) FROM callback WHERE label = 'each'", in: path)
        == ["1"])
    #expect(try rows("SELECT * FROM violations", in: path) == [])
    #expect(
      try rows("SELECT * FROM conservation WHERE difference <> 0", in: path)
        == [])
  }

  @Test func handlesOfAnEarlierRunAreExplained() throws {
    let folder = try TestFolder()
    let first = try TestHistory(path: folder.file())
    let producer = TestProducer(first, number: 1)
    producer.register(testToken(5), callback: first.callback("former"))
    producer.end(testToken(5), reason: Reason.registryClosed)
    #expect(first.release() == .ok)

    let second = try TestHistory(path: folder.file())
    let text = second.explain(testToken(5)) ?? ""
    #expect(text.contains("\"former\": dead, of run 1 by "))
    #expect(text.contains(": registry closed"))
    #expect(try second.rows("SELECT label FROM leaks") == ["former"])
  }

  @Test func eventsAreNeitherChangedNorDeleted() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1)
    producer.register(testToken(1))
    producer.call(testToken(1))
    producer.note("said")
    #expect(history.release() == .ok)
    for sql in [
      "UPDATE control_event SET time_ns = 0", "DELETE FROM control_event",
      "UPDATE call_000001 SET argument = 0", "DELETE FROM call_000001",
      "UPDATE note SET text = ''", "DELETE FROM note",
      "INSERT INTO callback VALUES (9, 9), (9, 9)",
    ] {
      #expect(throws: (any Error).self) {
        try rows(sql, in: folder.file())
      }
    }
  }

  @Test func theExitOfTheProcessIsNoted() throws {
    let folder = try TestFolder()
    let history = try TestHistory(path: folder.file())
    let producer = TestProducer(history, number: 1)
    producer.note("last words")
    #expect(history.pointer.flushBeforeExit(until: .after(second)) == .ok)
    #expect(try history.rows("SELECT ended FROM run") == ["exit"])
    #expect(try history.number("SELECT count(*) FROM note") == 1)
    #expect(history.release() == .ok)
    #expect(try history.rows("SELECT ended FROM run") == ["closed"])
  }

  @Test func anUnusedHistoryHasNoThread() throws {
    let history = try TestHistory(path: nil)
    #expect(history.pointer.counts().state == 0)
    #expect(history.flush() == .ok)
    #expect(history.explain(testToken(1)) == nil)
    let isStarted = history.pointer.pointee.isStarted.load(
      ordering: .acquiring)
    #expect(!isStarted)
    #expect(history.release() == .ok)
  }
}

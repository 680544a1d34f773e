// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Foundation
import Synchronization

@testable import CallbackRegistry

/// A history of a test's own, its threads, and questions to its database.
final class TestHistory: @unchecked Sendable {
  // Unchecked: the pointer leads to what is made for several threads.
  let pointer: HistoryPointer
  let path: String?
  private var isReleased = false

  init(
    path: String?, ringBytes: UInt64 = 2 << 20, callsPerSecond: UInt64 = .max,
    blockTimeoutNanoseconds: UInt64 = 1_000_000_000,
    limits: HistoryLimits? = nil
  ) throws {
    self.path = path
    pointer = try Self.open(
      path, ringBytes: ringBytes, callsPerSecond: callsPerSecond,
      blockTimeoutNanoseconds: blockTimeoutNanoseconds, limits: limits)
  }

  deinit { if !isReleased { _ = pointer.release(until: .after(second)) } }

  /// Why a history was not opened.
  struct Refusal: Error {
    let status: Status
    let problem: String
  }

  static func open(
    _ path: String?, ringBytes: UInt64 = 2 << 20,
    callsPerSecond: UInt64 = .max, blockTimeoutNanoseconds: UInt64 = second,
    limits: HistoryLimits? = nil
  ) throws -> HistoryPointer {
    // Ticks must not become another clock's while the history is open.
    _ = CallbackRegistry.Process.currentThread()
    var problem = [CChar](repeating: 0, count: 1024)
    var status = Status.ok
    let history = problem.withUnsafeMutableBufferPointer { buffer in
      var text = Text(buffer.baseAddress, size: buffer.count)
      func open(_ path: UnsafePointer<CChar>?) -> HistoryPointer? {
        HistoryPointer.open(
          HistoryOptions(
            path: path, ringBytes: ringBytes, callsPerSecond: callsPerSecond,
            blockTimeoutNanoseconds: blockTimeoutNanoseconds, limits: limits),
          status: &status, problem: &text)
      }
      return path.map { $0.withCString { open($0) } } ?? open(nil)
    }
    guard let history else {
      throw Refusal(
        status: status,
        problem: problem.withUnsafeBufferPointer {
          String(cString: $0.baseAddress!)
        })
    }
    return history
  }

  func release(_ timeoutNanoseconds: UInt64 = 10 * second) -> Status {
    isReleased = true
    return pointer.release(until: .after(timeoutNanoseconds))
  }

  @discardableResult
  func flush(
    _ level: UInt32 = 2, timeoutNanoseconds: UInt64 = 20 * second
  ) -> Status {
    var achieved: UInt64 = 0
    return pointer.flush(
      level: level, until: .after(timeoutNanoseconds), achieved: &achieved)
  }

  func explain(_ handle: UInt64) -> String? {
    var text = [CChar](repeating: 0, count: 4096)
    let isKnown = text.withUnsafeMutableBufferPointer { buffer in
      var text = Text(buffer.baseAddress, size: buffer.count)
      return pointer.explain(handle, into: &text)
    }
    return isKnown
      ? text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) } : nil
  }

  func callback(_ label: String) -> UInt64 {
    let recorder = pointer.recorder
    return recorder.pointee.monitor.locked {
      UInt64(
        label.withCString {
          recorder.intern(.callback, $0, length: label.utf8.count)!
        })
    }
  }

  func site(_ file: String, _ line: UInt32) -> UInt64 {
    let recorder = pointer.recorder
    return recorder.pointee.monitor.locked {
      UInt64(
        file.withCString {
          recorder.intern(
            .site, $0, length: file.utf8.count, line: line)!
        })
    }
  }

  /// Rows of a question to the database, columns joined by "|".
  func rows(_ sql: String) throws -> [String] {
    if let path { return try CallbackRegistryTests.rows(sql, in: path) }
    guard pointer.pointee.turn.takeAsReader(until: .after(10 * second)) else {
      throw Refusal(status: .timeout, problem: "the turn")
    }
    defer { pointer.pointee.turn.give() }
    guard let connection = pointer.pointee.database?.connection else {
      return []
    }
    let statement = try sql.withCString {
      try connection.prepare($0, length: sql.utf8.count)
    }
    defer { statement.finalize() }
    var rows: [String] = []
    while try statement.step() {
      rows.append(
        (0..<statement.columns).map {
          statement.text($0).map { String(cString: $0) } ?? ""
        }.joined(separator: "|"))
    }
    return rows
  }

  func number(_ sql: String) throws -> Int {
    Int(try rows(sql).first ?? "") ?? Int.min
  }
}

let second: UInt64 = 1_000_000_000

/// Asks a database as the sqlite3 shell would, on a connection of its own.
func rows(_ sql: String, in path: String) throws -> [String] {
  struct Failure: Error { let message: String }
  var database: OpaquePointer?
  var statement: OpaquePointer?
  defer {
    sqlite3_finalize(statement)
    sqlite3_close(database)
  }
  func check(_ code: Int32) throws {
    guard code == SQLITE_OK || code == SQLITE_DONE else {
      throw Failure(message: String(cString: sqlite3_errmsg(database)))
    }
  }
  try check(
    sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, nil))
  sqlite3_busy_timeout(database, 5_000)
  try check(sqlite3_prepare_v2(database, sql, -1, &statement, nil))
  var rows: [String] = []
  while true {
    let code = sqlite3_step(statement)
    guard code == SQLITE_ROW else {
      try check(code)
      return rows
    }
    rows.append(
      (0..<sqlite3_column_count(statement)).map { column in
        sqlite3_column_text(statement, column).map { String(cString: $0) }
          ?? ""
      }.joined(separator: "|"))
  }
}

/// One thread's way into a history, as the engine would use it.
final class TestProducer: @unchecked Sendable {
  // Unchecked: a producer is used by one thread.
  let recorder: RecorderPointer
  let ring: RingPointer

  init(_ history: TestHistory, number: UInt32, name: String = "producer") {
    recorder = history.pointer.recorder
    var bytes: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &bytes) {
      $0.copyBytes(from: Array(name.utf8.prefix(15)))
    }
    let identity = ThreadIdentity(
      number: number, kernelNumber: 1_000 + number, name: bytes)
    ring = recorder.takeRing(for: identity) { $0 < 1_000_000 }!
  }

  /// Lets the next producer take over the ring.
  func end() { ring.pointee.holder.store(2_000_000, ordering: .releasing) }

  func register(
    _ handle: UInt64, callback: UInt64 = 0, site: UInt64 = 0,
    owner: UInt64 = 0, level: UInt32 = 3
  ) {
    recorder.record(
      .registered, in: ring, handle: handle, argument: level << 16,
      payload: Payload(owner, callback << 32 | site))
  }

  func call(_ token: UInt64, ticks: UInt64 = 0) {
    let began = Ticks.now
    recorder.recordCall(
      in: ring, token: token, began: began, ended: max(Ticks.now, began + ticks)
    )
  }

  func end(_ handle: UInt64, reason: UInt32 = Reason.ended) {
    recorder.record(.ended, in: ring, handle: handle, argument: reason)
  }

  func settle(_ token: UInt64, attempts: UInt64, unfinished: UInt32 = 0) {
    recorder.record(
      .settled, in: ring, handle: token, argument: unfinished,
      payload: Payload(attempts, 1))
  }

  func count(_ token: UInt64, attempts: UInt64, unfinished: UInt64 = 0) {
    recorder.record(
      .counted, in: ring, handle: token,
      payload: Payload(attempts, unfinished))
  }

  @discardableResult
  func refuse(_ handle: UInt64, _ status: Status = .stale) -> Bool {
    recorder.record(
      .refused, in: ring, handle: handle,
      argument: UInt32(bitPattern: status.rawValue))
  }

  func note(_ text: String, about token: UInt64 = 0) {
    var text = text
    text.withUTF8 { bytes in
      _ = recorder.record(
        .note, in: ring, handle: token, argument: UInt32(bytes.count),
        payload: UnsafeRawBufferPointer(bytes))
    }
  }
}

/// Handles of the form that the engine gives out: kind in bits 2 to 5.
func testToken(_ number: UInt64) -> UInt64 { 7 << 40 | number << 6 | 2 << 2 }
func testOwner(_ number: UInt64) -> UInt64 { 7 << 40 | number << 6 | 3 << 2 }
let testRegistry: UInt64 = 9 << 40 | 1 << 2
let testLease: UInt64 = 9 << 40 | 4 << 2

func shown(_ handle: UInt64) -> String {
  let digits = String(handle, radix: 16)
  return "0x" + String(repeating: "0", count: 16 - digits.count) + digits
}

/// Runs a body on threads of its own and waits for them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let group = DispatchGroup()
  for index in 0..<count {
    group.enter()
    let thread = Thread {
      body(index)
      group.leave()
    }
    thread.start()
  }
  group.wait()
}

/// A folder that is there for one test.
final class TestFolder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "history-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String = "test.history") -> String { path + "/" + name }
}

/// Keeps everyone else from writing to a database while it lives.
final class TestLock {
  private var database: OpaquePointer?

  init(_ path: String) {
    sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, nil)
    sqlite3_busy_timeout(database, 5_000)
    sqlite3_exec(database, "BEGIN IMMEDIATE", nil, nil, nil)
  }

  func end() {
    sqlite3_close(database)
    database = nil
  }

  deinit { end() }
}

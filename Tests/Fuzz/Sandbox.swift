// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import CallbackRegistry

/// A history in memory, into which files of rings are recovered.
struct Sandbox {
  private let folder: Folder
  private var database: Database
  private(set) var run: Int64 = 0
  private var runs = 0

  init() {
    _ = Process.currentThread()
    folder = Folder()
    database = Self.makeDatabase()
  }

  private static func makeDatabase() -> Database {
    do { return try Database.open(nil, run: RunIdentity()) } catch {
      fatalError("no database")
    }
  }

  /// Begins a run, whose rings are then recovered.
  mutating func beginRun() -> RingFileIdentity.Identifier {
    runs += 1
    if runs % 100 == 0 {
      database.connection.close()
      database = Self.makeDatabase()
    }
    do {
      let identity = RunIdentity()
      run = try Run.begin(identity, on: database.connection)
      return identity.identifier
    } catch { fatalError("no run") }
  }

  /// Notes that the present run's first ring has been written up to somewhere.
  func noteWritten(position: Int, events: Int) {
    let sql = """
      INSERT INTO ring (run, number, capacity_records, first_event,
        consumed_position, consumed_events)
      VALUES (\(run), 1, 1024, 0, \(position), \(events))
      """
    do { try sql.withCString { try database.connection.execute($0) } } catch {
      fatalError(sql)
    }
  }

  func recover(_ image: RingFileImage) -> RecoveryReport {
    folder.write(image.bytes, to: "a.ring")
    var report = RecoveryReport()
    folder.path.withCString {
      Recovery.recoverFiles(in: $0, database: database, report: &report)
    }
    unlink(folder / "a.ring")
    unlink(folder / "a.ring.set-aside")
    return report
  }

  /// The rows of the present run.
  func events() -> [RingFileImage.Event: Int] {
    do {
      let statement = try database.connection.prepare(
        """
        SELECT e.kind, e.token FROM ring r JOIN event e ON e.ring = r.ring
        WHERE r.run = ?1
        """)
      defer { statement.finalize() }
      statement.bind(1, run)
      var events: [RingFileImage.Event: Int] = [:]
      while try statement.step() {
        let event = RingFileImage.Event(
          kind: statement.integer(0), handle: statement.integer(1))
        events[event, default: 0] += 1
      }
      return events
    } catch { fatalError("the history cannot be read") }
  }

  /// Recovers a file, and stops the process if it is left for the next time,
  /// or a row is there that no whole record vouches for.
  @discardableResult
  func judge(_ image: RingFileImage) -> RecoveryReport {
    let report = recover(image)
    guard report.recovered + report.setAside == 1, report.inUse == 0,
      report.failed == 0
    else { fatalError("\(report)") }
    let vouched = image.events
    for (event, count) in events() where count > vouched[event] ?? 0 {
      fatalError("\(count) rows of \(event), \(vouched[event] ?? 0) records")
    }
    return report
  }

  func remove() { folder.remove() }
}

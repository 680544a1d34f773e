// SPDX-License-Identifier: Apache-2.0
//
// A file is read on a connection of one's own, which cannot write. A history
// in memory has one connection, which is the writer's: it is read between two
// of the writer's batches.

import CPlatform
import CSQLite

#if !hasFeature(Embedded)
  final class HistoryReader {
    private enum Source {
      case file(Connection, String)
      case registry(UInt64)
    }

    private let source: Source

    init(_ source: AuditHistory.Source) throws(RegistryError) {
      self.source =
        switch source {
        case .file(let path): .file(try Self.open(path), path)
        case .registry(let handle): .registry(handle)
        }
    }

    convenience init(path: String) throws(RegistryError) {
      try self.init(.file(path))
    }

    deinit {
      if case .file(let connection, _) = source { connection.close() }
    }

    func read(
      _ body: (Connection) throws(DatabaseError) -> Void
    ) throws(RegistryError) {
      switch source {
      case .file(let connection, let path):
        do throws(DatabaseError) {
          try body(connection)
        } catch {
          throw RegistryError(.database(error), path: path)
        }
      case .registry(let handle):
        var isRead = false
        let status = Audit.withHistory(of: handle) { history in
          isRead = history.read { connection throws(DatabaseError) in
            try body(connection)
            return true
          }
        }
        try RegistryError.check(status, about: handle)
        // The writer did not let go of it, or there is no memory.
        if !isRead { throw RegistryError(.audit, about: handle) }
      }
    }

    private static func open(
      _ path: String
    ) throws(RegistryError) -> Connection {
      // C would open the file whose name ends there.
      guard !path.utf8.contains(0) else {
        throw RegistryError(refusing: .audit, "path contains a zero")
      }
      let opened = path.withCString { path in
        Result { () throws(OpeningError) in
          // SQLite would make a database for it that is nowhere.
          guard path[0] != 0 else {
            throw .database(DatabaseError(code: SQLITE_CANTOPEN))
          }
          try Admission.check(path)
          let connection: Connection
          do throws(DatabaseError) {
            connection = try Connection.openToRead(path)
          } catch { throw .database(error) }
          do throws(OpeningError) {
            connection.waitForLocks(milliseconds: 2_000)
            if try Admission.isEmpty(connection) {
              throw .notAHistory(application: 0)
            }
          } catch {
            connection.close()
            throw error
          }
          return connection
        }
      }
      do throws(OpeningError) {
        return try opened.get()
      } catch { throw RegistryError(error, path: path) }
    }
  }

  extension RegistryError {
    fileprivate init(_ error: OpeningError, path: String) {
      guard let thread = Process.currentThread() else {
        self.init(.noMemory)
        return
      }
      let status = thread.fail(error.status) { text in
        path.withCString { text.append(error, path: $0) }
      }
      self.init(status)
    }
  }
#endif

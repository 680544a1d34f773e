// SPDX-License-Identifier: Apache-2.0

import CSQLite
import CallbackRegistry

extension Command {
  /// Says how a history is: its view `health`.
  static func stat(_ arguments: Arguments) throws -> Ending {
    let path = try arguments.values("PATH")[0]
    let rows = try Reader.reading(path) {
      try $0.rows("SELECT name, value FROM health")
    }
    if arguments.isJSON {
      let pairs = rows.map { "\(json($0[0])): \(value($0[1]))" }
      print("{\(pairs.joined(separator: ", "))}")
    } else {
      let width = rows.map { $0[0].count }.max() ?? 0
      for row in rows {
        let gap = String(repeating: " ", count: width - row[0].count)
        print("\(row[0])\(gap)  \(row[1])")
      }
    }
    return .done
  }

  private static func value(_ text: String) -> String {
    Int64(text) == nil ? json(text) : text
  }

  static func version() -> Ending {
    print(
      "cbr \(Library.version), SQLite \(String(cString: sqlite3_libversion()))")
    return .done
  }
}

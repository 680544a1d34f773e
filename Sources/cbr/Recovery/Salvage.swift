// SPDX-License-Identifier: Apache-2.0

import CSQLite

extension Command {
  /// Copies what can be read of a damaged history into a new file.
  static func salvage(_ arguments: Arguments) throws -> Ending {
    let values = try arguments.values("PATH", "COPY")
    let copy = try Copy(to: values[1])
    let found = try copy.salvage(from: values[0])
    try copy.publish()
    let gaps = found.reduce(0) { $0 + $1.gaps }
    if arguments.isJSON {
      let tables = found.map { table in
        """
        {"table": \(json(table.name)), "rows": \(table.rows), \
        "unreadable_stretches": \(table.gaps)}
        """
      }
      print(
        """
        {"copy": \(json(values[1])), \
        "tables": [\(tables.joined(separator: ", "))]}
        """)
    } else {
      print(
        """
        copied into \(values[1]): \(found.reduce(0) { $0 + $1.rows }) rows; \
        unreadable stretches: \(gaps)
        """)
      for table in found where table.gaps > 0 {
        print("  \(table.name): \(table.rows) rows around \(table.gaps)")
      }
    }
    return gaps > 0 ? .negative : .done
  }
}

/// What became of a table.
struct SalvagedTable {
  let name: String
  var rows = 0
  /// Stretches of rows that could not be read.
  var gaps = 0
}

extension Copy {
  /// Makes the tables anew, copies their rows one by one, and then makes what
  /// refers to them.
  func salvage(from path: String) throws -> [SalvagedTable] {
    let source = try Salvage(path, SQLITE_OPEN_READONLY)
    let target = try Salvage(draft, SQLITE_OPEN_READWRITE)
    let schema = try source.schema()
    try target.execute("PRAGMA journal_mode = OFF")
    try target.execute("BEGIN")
    for entry in schema where entry.type == "table" {
      try target.execute(entry.sql)
    }
    var found: [SalvagedTable] = []
    for entry in schema where entry.type == "table" {
      found.append(try source.copyRows(of: entry.name, to: target))
    }
    for entry in schema where entry.type != "table" {
      try target.execute(entry.sql)
    }
    try target.execute("COMMIT")
    for setting in ["application_id", "user_version"] {
      if let value = source.number("PRAGMA \(setting)") {
        try target.execute("PRAGMA \(setting) = \(value)")
      }
    }
    return found
  }
}

// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

/// A block of a history, and what it has of each table.
struct ChainedBlock {
  let number: Int64
  let run: Int64
  let first: Int64
  let last: Int64
  let previousRoot: Digest
  let root: Digest
  var parts: [Part] = []

  /// The root as it must be.
  func root(by hash: Hash) -> Digest? {
    var text = "\(hexadecimal(previousRoot)):\(number):\(run):\(first):\(last)"
    for part in parts {
      text +=
        ":\(part.table):\(part.first):\(part.last):\(part.rows)"
        + ":\(hexadecimal(part.content))"
    }
    hash.begin()
    text.withCString { hash.append(bytes: $0, count: text.utf8.count) }
    return hash.end()
  }
}

/// Rows of one table in one block.
struct Part {
  enum State {
    case right
    /// Deleted by rule.
    case purged
    case changed
    case missing
    case added
    case dropped
  }

  let block: Int64
  let table: String
  let first: Int64
  let last: Int64
  let rows: Int64
  let content: Digest
}

/// A digest in hexadecimal digits.
func hexadecimal(_ digest: Digest) -> String {
  digest.withBytes { bytes in
    bytes.map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}

extension ChainedTable {
  /// The table of that name.
  init?(named name: String) {
    for index in 0..<ChainedTable.count {
      guard let table = ChainedTable(rawValue: index) else { continue }
      let isIt =
        table == .call
        ? name.hasPrefix("call_")
          && name.utf8.dropFirst(5).first.map { 48...57 ~= $0 } == true
          && name.utf8.allSatisfy(Self.isPlain)
        : name == table.name.description
      if isIt {
        self = table
        return
      }
    }
    return nil
  }

  /// Names become parts of queries, so that nothing else is believed.
  private static func isPlain(_ character: UInt8) -> Bool {
    switch Unicode.Scalar(character) {
    case "a"..."z", "0"..."9", "_": true
    default: false
    }
  }

  /// What its rows are called.
  var rows: String {
    switch self {
    case .call: "calls"
    case .callback: "callbacks"
    case .controlEvent: "control events"
    case .fault: "faults"
    case .loss: "losses"
    case .note: "notes"
    case .purge: "purges"
    case .site: "sites"
    }
  }

  /// Whether its rows are numbered as events are.
  var isOfEvents: Bool {
    self == .call || self == .controlEvent || self == .note
  }
}

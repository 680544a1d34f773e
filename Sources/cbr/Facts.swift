// SPDX-License-Identifier: Apache-2.0

/// What a history says of itself.
struct Facts {
  struct Run {
    let number: String
    let identifier: String
    let host: String
    let boot: String
    let process: Int32
  }

  struct Ring: Hashable {
    let run: String
    let number: UInt32
  }

  /// The view `health`.
  let health: [String: String]
  /// Those that have not ended.
  let open: [Run]
  /// How far the history has come with each ring.
  let consumed: [Ring: UInt64]
  /// Files of rings that are not beside the history.
  let places: [RingPlaces.Place]

  init(_ reader: borrowing Reader, of path: String) throws {
    places = try RingPlaces.all(reader, of: path)
    let lines = try reader.rows("SELECT name, value FROM health")
    health = Dictionary(lines.map { ($0[0], $0[1]) }) { first, _ in first }
    open = try reader.rows(
      "SELECT run, uuid, host, boot, pid FROM run WHERE ended IS NULL"
    ).map { row in
      Run(
        number: row[0], identifier: row[1], host: row[2], boot: row[3],
        process: Int32(row[4]) ?? 0)
    }
    let rings = try reader.rows(
      """
      SELECT u.uuid, r.number, r.consumed_position
      FROM ring r JOIN run u ON u.run = r.run
      """)
    consumed = Dictionary(
      rings.map { row in
        (
          Ring(run: row[0], number: UInt32(row[1]) ?? 0),
          UInt64(row[2]) ?? 0
        )
      }
    ) { first, _ in first }
  }

  func number(_ name: String) -> Int64 { Int64(health[name] ?? "") ?? 0 }
}

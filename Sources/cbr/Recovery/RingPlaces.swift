// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry
import Glibc

/// Files of rings that are not beside their history, as its table `ring_place`
/// has them (see RingPlace.swift in the library).
enum RingPlaces {
  struct Place {
    let file: String
    let hasEnded: Bool
  }

  /// Those of the history at a path; not those of another one, of which it is
  /// a copy.
  static func all(
    _ reader: borrowing Reader, of path: String
  ) throws -> [Place] {
    // A history of an earlier library has no such table.
    let tables = try reader.rows(
      "SELECT name FROM sqlite_schema WHERE name = 'ring_place'")
    if tables.isEmpty { return [] }
    let rows = try reader.rows(
      """
      SELECT p.directory || u.uuid || '.ring', p.history,
        u.ended IS NOT NULL
      FROM ring_place p JOIN run u ON u.run = p.run ORDER BY p.run
      """)
    return rows.compactMap { row in
      isOurs(row[1], path) ? Place(file: row[0], hasEnded: row[2] == "1") : nil
    }
  }

  private static func isOurs(_ noted: String, _ path: String) -> Bool {
    guard let former = FileIdentity(of: noted) else { return true }
    return former == FileIdentity(of: path)
  }
}

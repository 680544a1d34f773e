// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// The deletion of old rows because of a rule, in a transaction of the
/// caller's.
///
/// A row of `purge` says what was deleted. The triggers that keep events let
/// those go that are before `meta.kept_from`.
struct Purge {
  let run: Int64
  let rule: UnsafePointer<CChar>
  let connection: Connection

  /// Notes that the table of a segment is dropped.
  func note(segment: Int64) throws(DatabaseError) {
    try note(
      """
      INSERT INTO purge (run, time_ns, rule, table_name, rows, first_sequence,
        last_sequence, first_run, first_time_ns, last_run, last_time_ns)
      SELECT ?2, ?3, ?4, table_name, rows, first_sequence, last_sequence,
        first_run, first_time_ns, last_run, last_time_ns
      FROM segment WHERE segment = ?1
      """, bound: segment)
  }

  /// Deletes all other events before a sequence number, and what is only about
  /// them: notes, and rows of handles that have settled.
  ///
  /// There are no calls before it.
  func deleteEvents(before sequence: Int64) throws(DatabaseError) {
    try note(
      """
      INSERT INTO purge (run, time_ns, rule, table_name, rows, first_sequence,
        last_sequence, first_run, first_time_ns, last_run, last_time_ns)
      SELECT ?2, ?3, ?4, 'control_event', d.rows, f.sequence, l.sequence,
        fr.run, f.time_ns, lr.run, l.time_ns
      FROM (SELECT count(*) AS rows, min(sequence) AS first,
          max(sequence) AS last
        FROM control_event WHERE sequence < ?1) d
      JOIN control_event f ON f.sequence = d.first
      JOIN ring fr ON fr.ring = f.ring
      JOIN control_event l ON l.sequence = d.last
      JOIN ring lr ON lr.ring = l.ring
      """, bound: sequence)
    try run(
      "UPDATE meta SET value = max(value, ?1) WHERE name = 'kept_from'",
      before: sequence)
    try run(
      """
      DELETE FROM aggregate WHERE (token, run) IN (
        SELECT e.token, r.run FROM control_event e JOIN ring r USING (ring)
        WHERE e.sequence < ?1 AND e.kind IN (4, 7))
      """, before: sequence)
    try run(
      """
      DELETE FROM queue WHERE (queue, run) IN (
        SELECT e.token, r.run FROM control_event e JOIN ring r USING (ring)
        WHERE e.sequence < ?1 AND e.kind = 7)
      """, before: sequence)
    try run(
      """
      DELETE FROM token WHERE (token, run) IN (
        SELECT e.token, r.run FROM control_event e JOIN ring r USING (ring)
        WHERE e.sequence < ?1 AND e.kind IN (4, 7))
      """, before: sequence)
    try run(
      """
      DELETE FROM refusal WHERE last_sequence < ?1 AND token IN (
        SELECT token FROM control_event WHERE sequence < ?1 AND kind = 8)
      """, before: sequence)
    // The ring's last thread is still the one whose events follow.
    try run(
      """
      DELETE FROM thread WHERE (ring, began_sequence) IN (
          SELECT ring, sequence FROM control_event
          WHERE sequence < ?1 AND kind = 2)
        AND EXISTS (SELECT 1 FROM thread l WHERE l.ring = thread.ring
          AND l.began_sequence > thread.began_sequence
          AND l.began_sequence < ?1)
      """, before: sequence)
    try run("DELETE FROM note WHERE sequence < ?1", before: sequence)
    try run("DELETE FROM control_event WHERE sequence < ?1", before: sequence)
  }

  /// Deletes blocks whose rows have all been deleted, when there are many.
  ///
  /// Those that also have rows which stay are kept.
  func deleteBlocks() throws(DatabaseError) {
    let purged = try connection.integer(
      "SELECT value FROM meta WHERE name = 'purged_blocks'")
    let last = try connection.integer(
      """
      SELECT max(block) FROM block WHERE last_sequence <
        (SELECT value FROM meta WHERE name = 'kept_from')
      """)
    guard let purged, let last, last - purged >= Self.blocksAtOnce else {
      return
    }
    let bounds = (first: purged + 1, last: last)
    try insert(
      """
      INSERT INTO purge (run, time_ns, rule, table_name, rows, first_sequence,
        last_sequence)
      SELECT ?2, ?3, ?4, 'block', count(*), ?5, ?1 FROM block
      WHERE block BETWEEN ?5 AND ?1 AND NOT EXISTS (
        SELECT 1 FROM block_content c WHERE c.block = block.block
          AND c.table_name IN ('callback', 'fault', 'loss', 'purge', 'site'))
      """, bound: last, first: bounds.first)
    try run(
      "UPDATE meta SET value = ?1 WHERE name = 'purged_blocks'",
      before: last)
    try run(
      """
      DELETE FROM block WHERE block BETWEEN ?2 AND ?1 AND NOT EXISTS (
        SELECT 1 FROM block_content c WHERE c.block = block.block
          AND c.table_name IN ('callback', 'fault', 'loss', 'purge', 'site'))
      """, before: last, first: bounds.first)
    // The names of tables of calls are found one after the other.
    try run(
      """
      WITH RECURSIVE found (name) AS (
        SELECT min(table_name) FROM block_content
        UNION ALL
        SELECT (SELECT min(table_name) FROM block_content
          WHERE table_name > found.name) FROM found WHERE name IS NOT NULL)
      DELETE FROM block_content
      WHERE table_name IN (SELECT name FROM found)
        AND block BETWEEN ?2 AND ?1
        AND NOT EXISTS (SELECT 1 FROM block b
          WHERE b.block = block_content.block)
      """, before: last, first: bounds.first)
  }

  private static var blocksAtOnce: Int64 { 1_000 }

  private func note(
    _ sql: StaticString, bound: Int64
  ) throws(DatabaseError) {
    try insert(sql, bound: bound)
    try connection.execute(
      """
      UPDATE meta SET value = value + (SELECT rows FROM purge
        WHERE purge = (SELECT max(purge) FROM purge))
      WHERE name = 'purged_rows'
      """)
  }

  private func insert(
    _ sql: StaticString, bound: Int64, first: Int64? = nil
  ) throws(DatabaseError) {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    statement.bind(1, bound)
    statement.bind(2, run)
    statement.bind(3, cbr_monotonic_nanoseconds())
    statement.bind(4, rule)
    if let first { statement.bind(5, first) }
    try statement.run()
  }

  private func run(
    _ sql: StaticString, before bound: Int64, first: Int64? = nil
  ) throws(DatabaseError) {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    statement.bind(1, bound)
    if let first { statement.bind(2, first) }
    try statement.run()
  }
}

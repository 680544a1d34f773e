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

  private func note(
    _ sql: StaticString, bound: Int64
  ) throws(DatabaseError) {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    statement.bind(1, bound)
    statement.bind(2, run)
    statement.bind(3, cbr_monotonic_nanoseconds())
    statement.bind(4, rule)
    try statement.run()
    try connection.execute(
      """
      UPDATE meta SET value = value + (SELECT rows FROM purge
        WHERE purge = (SELECT max(purge) FROM purge))
      WHERE name = 'purged_rows'
      """)
  }

  private func run(
    _ sql: StaticString, before sequence: Int64
  ) throws(DatabaseError) {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    statement.bind(1, sequence)
    try statement.run()
  }
}

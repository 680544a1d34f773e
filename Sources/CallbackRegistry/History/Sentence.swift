// SPDX-License-Identifier: Apache-2.0

/// What the writer says to SQLite, over and over.
enum Sentence: Int {
  case begin
  case commit
  case takeSequences
  case addCallback
  case addSite
  case addName
  case addRing
  case advanceRing
  case addThread
  case findToken
  case addToken
  case addRegistration
  case addCalls
  case addLife
  case addControl
  case addNote
  case setQueue
  case addRefusals
  case addAggregate
  case addLoss
  case addSync
  case addFault
  case advanceSegment
  case countRingFullCalls
  case repairSequence
  case findUncovered
  case findLastBlock
  case countBlock
  case addContent
  case addBlock
  case measureUsage
  case oldestCalls
  case oldestEvent
  case boundOfEvents

  static var count: Int { boundOfEvents.rawValue + 1 }

  var sql: StaticString {
    switch self {
    case .begin: "BEGIN IMMEDIATE"
    case .commit: "COMMIT"
    case .takeSequences:
      """
      UPDATE meta SET value = value + ?1 WHERE name = 'next_sequence'
      RETURNING value - ?1, (SELECT min(segment) FROM segment),
        (SELECT max(segment) FROM segment),
        (SELECT rows FROM segment ORDER BY segment DESC LIMIT 1)
      """
    case .addCallback:
      """
      INSERT INTO callback (label) VALUES (?1)
      ON CONFLICT (label) DO UPDATE SET label = label RETURNING callback
      """
    case .addSite:
      """
      INSERT INTO site (file, line) VALUES (?1, ?2)
      ON CONFLICT (file, line) DO UPDATE SET line = line RETURNING site
      """
    case .addName:
      "INSERT OR REPLACE INTO dictionary VALUES (?1, ?2, ?3, ?4)"
    case .addRing:
      """
      INSERT INTO ring (run, number, capacity_records, first_event)
      VALUES (?1, ?2, ?3, ?4)
      """
    case .advanceRing:
      """
      UPDATE ring SET consumed_position = ?2, consumed_events = ?3, rows = ?4,
        updates = ?5, aggregated = ?6, lost = ?7 WHERE ring = ?1
      """
    case .addThread:
      """
      INSERT INTO thread (run, ring, number, kernel_number, name,
        began_sequence, began_time_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """
    case .findToken:
      """
      SELECT registration, callback FROM token WHERE token = ?1 AND run = ?2
      """
    case .addToken:
      """
      INSERT INTO token (token, run, kind, callback, owner, flags, level, tag,
        registered_sequence, registered_time_ns, registered_site,
        registered_thread, refusals, abandoned, leases, leases_ended,
        attempts, outstanding, ended_sequence, ended_time_ns, ended_thread,
        ended_reason, settled_sequence, settled_time_ns, destroyed, calls,
        call_rows, aggregated, total_ns, max_ns, last_time_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
        ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28,
        ?29, ?30, ?31)
      ON CONFLICT (token, run) DO NOTHING
      """
    case .addRegistration:
      """
      UPDATE token SET callback = ?4, owner = ?5, flags = ?6, level = ?7,
        tag = ?8, registered_sequence = ?9, registered_time_ns = ?10,
        registered_site = ?11, registered_thread = ?12
      WHERE token = ?1 AND run = ?2 AND kind = ?3
        AND registered_sequence IS NULL
      """
    case .addCalls:
      """
      UPDATE token SET calls = calls + ?2, call_rows = call_rows + ?3,
        aggregated = aggregated + ?4, total_ns = total_ns + ?5,
        max_ns = max(max_ns, ?6),
        last_time_ns = max(coalesce(last_time_ns, ?7), ?7)
      WHERE registration = ?1
      """
    case .addLife:
      """
      UPDATE token SET refusals = refusals + ?2, abandoned = abandoned + ?3,
        leases = leases + ?4, leases_ended = leases_ended + ?5,
        outstanding = CASE WHEN ?12 IS NULL
            AND (settled_sequence IS NOT NULL OR ?6 < attempts)
          THEN outstanding ELSE coalesce(?7, outstanding) END,
        attempts = CASE WHEN ?12 IS NULL
            AND (settled_sequence IS NOT NULL OR ?6 < attempts)
          THEN attempts ELSE coalesce(?6, attempts) END,
        ended_sequence = coalesce(ended_sequence, ?8),
        ended_time_ns = coalesce(ended_time_ns, ?9),
        ended_thread = coalesce(ended_thread, ?10),
        ended_reason = coalesce(ended_reason, ?11),
        settled_sequence = coalesce(settled_sequence, ?12),
        settled_time_ns = coalesce(settled_time_ns, ?13),
        destroyed = coalesce(destroyed, ?14)
      WHERE registration = ?1
      """
    case .addControl:
      """
      INSERT INTO control_event (sequence, time_ns, ring, kind, token,
        callback, argument, thread, ring_sequence, related, site, value,
        second_value)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
      """
    case .addNote: "INSERT INTO note VALUES (?1, ?2, ?3)"
    case .setQueue:
      """
      INSERT INTO queue VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
        ?12)
      ON CONFLICT DO UPDATE SET posted = ?3, delivered = ?4, merged = ?5,
        dropped_full = ?6, dropped_stale = ?7, dropped_refused = ?8,
        dropped_ended = ?9, waiting = ?10, most_waiting = ?11,
        last_sequence = ?12
      WHERE ?3 > posted OR ?3 = posted AND ?10 <= waiting
      """
    case .addRefusals:
      """
      INSERT INTO refusal VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
      ON CONFLICT DO UPDATE SET refusals = refusals + ?5,
        last_sequence = ?7, last_time_ns = ?9
      """
    case .addAggregate:
      """
      INSERT INTO aggregate VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      ON CONFLICT DO UPDATE SET calls = calls + ?4, total_ns = total_ns + ?5,
        max_ns = max(max_ns, ?6), first_time_ns = min(first_time_ns, ?7),
        last_time_ns = max(last_time_ns, ?8)
      """
    case .addLoss:
      """
      INSERT INTO loss (run, ring, first_ring_sequence, last_ring_sequence,
        events, cause, first_time_ns, last_time_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      """
    case .addSync:
      """
      INSERT INTO clock_sync (run, ticks, time_ns, realtime_ns, step_ns)
      VALUES (?1, ?2, ?3, ?4, ?5)
      """
    case .addFault:
      """
      INSERT INTO fault (run, cause, sqlite_code, began_time_ns,
        ended_time_ns, failures, lost) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """
    case .advanceSegment:
      """
      UPDATE segment SET rows = rows + ?2,
        first_sequence = coalesce(first_sequence, ?3), last_sequence = ?4,
        first_run = coalesce(first_run, ?7),
        first_time_ns = min(coalesce(first_time_ns, ?5),
          iif(first_run IS NULL OR first_run = ?7, ?5, first_time_ns)),
        last_time_ns = iif(last_run = ?7, max(last_time_ns, ?6), ?6),
        last_run = ?7
      WHERE segment = ?1
      """
    case .countRingFullCalls:
      "UPDATE run SET ring_full_calls = ring_full_calls + ?2 WHERE run = ?1"
    case .repairSequence:
      """
      UPDATE meta SET value = max(value,
        1 + coalesce((SELECT max(sequence) FROM call), 0),
        1 + coalesce((SELECT max(sequence) FROM control_event), 0))
      WHERE name = 'next_sequence'
      """
    // The numbers are those of ChainedTable.
    case .findUncovered:
      """
      SELECT number, coalesce((SELECT last_row FROM block_content
          WHERE table_name = name ORDER BY block DESC LIMIT 1), 0) + 1 AS first,
        last
      FROM (SELECT 1 AS number, 'callback' AS name,
          (SELECT max(callback) FROM callback) AS last
        UNION ALL SELECT 3, 'fault', (SELECT max(fault) FROM fault)
        UNION ALL SELECT 4, 'loss', (SELECT max(loss) FROM loss)
        UNION ALL SELECT 6, 'purge', (SELECT max(purge) FROM purge)
        UNION ALL SELECT 7, 'site', (SELECT max(site) FROM site))
      WHERE first <= last
      """
    case .findLastBlock:
      """
      SELECT m.value, b.root, b.seal IS NOT NULL FROM meta m
      LEFT JOIN (SELECT root, seal FROM block ORDER BY block DESC LIMIT 1) b
      WHERE m.name = 'blocks'
      """
    case .countBlock: "UPDATE meta SET value = ?1 WHERE name = 'blocks'"
    case .addContent:
      "INSERT INTO block_content VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    case .addBlock:
      """
      INSERT INTO block SELECT ?1, ?2, ?3, ?4,
        coalesce((SELECT root FROM block ORDER BY block DESC LIMIT 1),
          zeroblob(32)), ?5, ?6
      """
    case .measureUsage:
      """
      SELECT calls, next - 1 - purged - calls, (pages - free) * size
      FROM (SELECT (SELECT sum(rows) FROM segment) AS calls,
        (SELECT value FROM meta WHERE name = 'next_sequence') AS next,
        (SELECT value FROM meta WHERE name = 'purged_rows') AS purged,
        (SELECT page_count FROM pragma_page_count) AS pages,
        (SELECT freelist_count FROM pragma_freelist_count) AS free,
        (SELECT page_size FROM pragma_page_size) AS size)
      """
    case .oldestCalls:
      """
      SELECT s.last_time_ns, u.boot = (SELECT boot FROM run WHERE run = ?1)
      FROM segment s JOIN run u ON u.run = s.last_run
      WHERE s.rows > 0 ORDER BY s.segment LIMIT 1
      """
    case .oldestEvent:
      """
      SELECT e.time_ns, u.boot = (SELECT boot FROM run WHERE run = ?1)
      FROM control_event e JOIN ring r ON r.ring = e.ring
      JOIN run u ON u.run = r.run ORDER BY e.sequence LIMIT 1
      """
    // Whole blocks are deleted, so that the rest can be verified.
    // So many control events, up to the end of a block if they are in one.
    case .boundOfEvents:
      """
      SELECT bound, coalesce((SELECT first_sequence FROM segment
        WHERE rows > 0 ORDER BY segment LIMIT 1) < bound, 0)
      FROM (SELECT iif(of_blocks > first, of_blocks, of_events) AS bound
        FROM (SELECT min(sequence) AS first, (SELECT max(sequence) + 1
          FROM (SELECT sequence FROM control_event ORDER BY sequence
            LIMIT ?1)) AS of_events,
          (SELECT max(last_sequence) + 1
            FROM (SELECT b.last_sequence,
                sum(coalesce(c.rows, 0)) OVER (ORDER BY b.block) AS total,
                b.block = min(b.block) OVER () AS is_first
              FROM (SELECT block, last_sequence FROM block
                WHERE last_sequence >=
                  (SELECT min(sequence) FROM control_event)
                ORDER BY last_sequence LIMIT 256) b
              LEFT JOIN block_content c
                ON c.table_name = 'control_event' AND c.block = b.block)
            WHERE total <= ?1 OR is_first) AS of_blocks
          FROM control_event))
      WHERE bound IS NOT NULL
      """
    }
  }
}

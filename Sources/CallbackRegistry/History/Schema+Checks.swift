// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// Views that anyone can check the history with.
  ///
  /// `conservation` sets the engine's own count of calls begun, which it
  /// keeps at the token and hands over when the token is quiescent, against
  /// the rows that the recorder delivered: two ways that meet nowhere. The
  /// count of a settled token is final, and the difference exact. That of a
  /// live one is of its last flush: there rows may be missing, but not be too
  /// many. Single calls are recorded at level calls only; where a token was
  /// at another, the calls without rows are `counted_only`.
  static var conservation: StaticString {
    """
    CREATE VIEW conservation AS
    WITH written (run, token, calls) AS (
      SELECT r.run, c.token, sum(c.calls)
      FROM (SELECT ring, token, count(*) AS calls FROM call
        GROUP BY ring, token) c
      JOIN ring r ON r.ring = c.ring
      GROUP BY r.run, c.token
    ),
    switched (run, token, sequence) AS MATERIALIZED (
      SELECT r.run, o.token, o.sequence FROM control_event o
      JOIN ring r ON r.ring = o.ring WHERE o.kind = 14
    ),
    account AS (
      SELECT t.run, t.token, t.callback, t.registration,
        t.settled_sequence IS NOT NULL AS settled,
        CASE
          WHEN EXISTS (SELECT 1 FROM switched s
            WHERE s.run = t.run AND s.sequence > t.registered_sequence
              AND (s.token = t.token OR (s.token >> 2 & 15) = 1)
              AND (t.settled_sequence IS NULL
                OR s.sequence < t.settled_sequence)) THEN 'mixed'
          WHEN t.registered_sequence IS NULL THEN 'unknown'
          ELSE (SELECT name FROM level WHERE level = t.level)
        END AS level,
        t.attempts AS begun, coalesce(t.outstanding, 0) AS outstanding,
        coalesce(w.calls, 0) AS called,
        CASE WHEN EXISTS (SELECT 1 FROM purge)
          THEN t.call_rows - coalesce(w.calls, 0) ELSE 0 END AS purged,
        t.aggregated, t.refusals AS refused,
        min(t.abandoned, coalesce(t.outstanding, t.abandoned)) AS abandoned
      FROM token t
      LEFT JOIN written w ON w.run = t.run AND w.token = t.token
      WHERE t.kind = 2
    ),
    balance AS (
      SELECT *, called + purged + aggregated + abandoned AS known,
        CASE WHEN settled AND begun IS NOT NULL THEN begun
          ELSE max(coalesce(begun, 0),
            called + purged + aggregated + abandoned) END AS total
      FROM account
    ),
    flying AS (
      SELECT *, CASE WHEN settled THEN 0 ELSE
        max(0, min(total - known, outstanding - abandoned)) END AS in_flight
      FROM balance
    ),
    result AS (
      SELECT *, CASE WHEN level IN ('calls', 'default') THEN 0
        ELSE max(0, total - known - in_flight) END AS counted_only
      FROM flying
    ),
    stray (refusals) AS (
      SELECT coalesce(sum(r.refusals), 0) FROM refusal r
      LEFT JOIN token t ON t.token = r.token AND t.run = r.run AND t.kind = 2
      WHERE t.token IS NULL
    ),
    claimed (lost, refusals) AS (
      SELECT (SELECT coalesce(sum(events), 0) FROM loss),
        (SELECT coalesce(sum(second_value), 0) FROM control_event
         WHERE kind = 4 AND NOT EXISTS (SELECT 1 FROM purge
           WHERE table_name = 'control_event'))
    )
    SELECT f.run AS run, printf('0x%016x', f.token) AS token,
      c.label AS label, f.level AS level,
      CASE WHEN f.begun IS NULL THEN 'unknown'
        WHEN f.settled THEN 'final' ELSE 'so far' END AS engine_count,
      f.total + f.refused AS attempts, f.called AS called,
      f.purged AS purged, f.aggregated AS aggregated,
      f.counted_only AS counted_only, f.refused AS refused,
      f.abandoned AS abandoned, f.in_flight AS in_flight, NULL AS lost,
      f.total - f.known - f.in_flight - f.counted_only AS difference,
      f.total - f.known - f.in_flight - f.counted_only = 0 AS holds
    FROM result f LEFT JOIN callback c ON c.callback = f.callback
    UNION ALL
    SELECT *, difference = 0 FROM (
    SELECT NULL, 'total', NULL, NULL, NULL,
      coalesce(sum(f.total + f.refused), 0) + s.refusals,
      coalesce(sum(f.called), 0), coalesce(sum(f.purged), 0),
      coalesce(sum(f.aggregated), 0), coalesce(sum(f.counted_only), 0),
      coalesce(sum(f.refused), 0) + s.refusals,
      coalesce(sum(f.abandoned), 0), coalesce(sum(f.in_flight), 0), l.lost,
      coalesce(sum(f.total - f.known - f.in_flight - f.counted_only), 0)
        + max(0, l.refusals - l.lost - s.refusals
          - coalesce(sum(f.refused), 0)) AS difference
    FROM stray s, claimed l LEFT JOIN result f);
    """
  }

  /// What must never be: each row is a fault of the library or of whoever
  /// changed the file.
  static var violations: StaticString {
    """
    CREATE VIEW violations AS
    WITH life AS (
      SELECT c.sequence, c.time_ns, c.token, r.run, t.registered_sequence,
        t.ended_time_ns, t.settled_sequence, t.registration
      FROM call c JOIN ring r ON r.ring = c.ring
      LEFT JOIN token t ON t.token = c.token AND t.run = r.run
    ),
    control AS (
      SELECT o.sequence, o.kind, o.token, o.ring_sequence, r.run,
        lag(o.ring_sequence) OVER (PARTITION BY o.ring ORDER BY o.sequence)
          AS ring_sequence_before
      FROM control_event o JOIN ring r ON r.ring = o.ring
    )
    SELECT 'a call began after its token had ended' AS rule, run,
      printf('0x%016x', token) AS token, sequence
    FROM life WHERE time_ns > ended_time_ns
    UNION ALL
    SELECT 'a call of a token that was never registered', run,
      printf('0x%016x', token), sequence
    FROM life WHERE registered_sequence IS NULL
      AND run IN (SELECT run FROM run WHERE predecessor IS NULL)
      AND run NOT IN (SELECT run FROM loss)
    UNION ALL
    SELECT 'a call after its token had settled', run,
      printf('0x%016x', token), sequence
    FROM life WHERE sequence > settled_sequence
    UNION ALL
    SELECT 'an event after its token had settled', o.run,
      printf('0x%016x', o.token), o.sequence
    FROM control o JOIN token t ON t.token = o.token AND t.run = o.run
    WHERE o.sequence > t.settled_sequence 
      AND o.kind IN (5, 6, 7, 9, 10, 11, 24, 25)
    UNION ALL
    SELECT 'more than one event "' || k.name || '"', o.run,
      printf('0x%016x', o.token), max(o.sequence)
    FROM control o JOIN event_kind k ON k.kind = o.kind
    WHERE o.kind BETWEEN 3 AND 7
    GROUP BY o.run, o.token, o.kind HAVING count(*) > 1
    UNION ALL
    SELECT 'an event of a ring is not behind the one before', run,
      printf('0x%016x', token), sequence
    FROM control WHERE ring_sequence <= ring_sequence_before
    UNION ALL
    SELECT 'more outcomes than calls', run, printf('0x%016x', token),
      settled_sequence
    FROM token
    WHERE settled_sequence IS NOT NULL
      AND call_rows + aggregated + min(abandoned, outstanding) > attempts
    UNION ALL
    SELECT 'a settled token has calls that were never over', run,
      printf('0x%016x', token), settled_sequence
    FROM token WHERE settled_sequence IS NOT NULL AND outstanding > abandoned
    UNION ALL
    SELECT 'the sum of a token''s calls is not that of its rows', t.run,
      printf('0x%016x', t.token), t.registered_sequence
    FROM token t
    LEFT JOIN (SELECT run, token, count(*) AS calls FROM life
      GROUP BY run, token) w ON w.run = t.run AND w.token = t.token
    WHERE t.call_rows <> coalesce(w.calls, 0)
      AND NOT EXISTS (SELECT 1 FROM purge)
    UNION ALL
    SELECT 'a token''s counted calls are not those of its aggregates', t.run,
      printf('0x%016x', t.token), t.registered_sequence
    FROM token t
    WHERE t.aggregated <> (SELECT coalesce(sum(a.calls), 0) FROM aggregate a
      WHERE a.token = t.token AND a.run = t.run)
    UNION ALL
    SELECT 'a queue''s messages are not all accounted for', run, queue, NULL
    FROM queues
    WHERE difference <> 0 OR state = 'settled' AND waiting <> 0
    UNION ALL
    SELECT 'the events of ring ' || number || ' are not all accounted for',
      run, NULL, NULL
    FROM ring WHERE consumed_events <> 0 AND consumed_events <>
      first_event + rows + updates + aggregated + lost
    UNION ALL
    SELECT 'the losses of ring ' || r.number || ' are not all there', r.run,
      NULL, NULL
    FROM ring r
    WHERE r.lost <> (SELECT coalesce(sum(l.events), 0) FROM loss l
      WHERE l.ring = r.ring)
    UNION ALL
    SELECT 'the number of rows is not that of sequence numbers', NULL, NULL,
      n.value
    FROM meta n
    WHERE n.name = 'next_sequence' AND n.value - 1 <>
      (SELECT count(*) FROM call) + (SELECT count(*) FROM control_event)
      + (SELECT coalesce(sum(rows), 0) FROM purge
        WHERE table_name <> 'block');
    """
  }

  /// The state of the whole in a dozen lines.
  static var health: StaticString {
    """
    CREATE VIEW health AS
    SELECT 'format' AS name, (SELECT value FROM meta WHERE name = 'format')
      AS value
    UNION ALL SELECT 'runs', (SELECT count(*) FROM run)
    UNION ALL SELECT 'runs not closed',
      (SELECT count(*) FROM run WHERE ended IS NOT 'closed')
    UNION ALL SELECT 'calls', (SELECT count(*) FROM call)
    UNION ALL SELECT 'control events', (SELECT count(*) FROM control_event)
    UNION ALL SELECT 'calls counted instead of written',
      (SELECT coalesce(sum(calls), 0) FROM aggregate)
    UNION ALL SELECT 'events lost',
      (SELECT coalesce(sum(events), 0) FROM loss)
    UNION ALL SELECT 'calls deleted by rule',
      (SELECT coalesce(sum(rows), 0) FROM purge
       WHERE table_name LIKE 'call%')
    UNION ALL SELECT 'other events deleted by rule',
      (SELECT coalesce(sum(rows), 0) FROM purge
       WHERE table_name = 'control_event')
    UNION ALL SELECT 'faults', (SELECT count(*) FROM fault)
    UNION ALL SELECT 'leaks', (SELECT count(*) FROM leaks)
    UNION ALL SELECT 'differences in conservation',
      (SELECT count(*) FROM conservation WHERE difference <> 0)
    UNION ALL SELECT 'violations', (SELECT count(*) FROM violations)
    UNION ALL SELECT 'crashes',
      (SELECT count(*) FROM run WHERE ended = 'crash')
    UNION ALL SELECT 'crash protection',
      (SELECT crash_protection FROM run ORDER BY run DESC LIMIT 1)
    UNION ALL SELECT 'steps of the wall clock',
      (SELECT count(*) FROM clock_sync WHERE step_ns <> 0)
    UNION ALL SELECT 'tamper evidence',
      (SELECT tamper_evidence FROM run ORDER BY run DESC LIMIT 1);
    """
  }
}

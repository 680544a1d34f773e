// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// Views that tell what happened, event by event.
  ///
  /// `{x}` stands for the time x of run u, for people (`execute`).
  static var eventViews: StaticString {
    """
    CREATE VIEW event AS
    SELECT sequence, time_ns, ring, kind, token, callback, argument FROM call
    UNION ALL
    SELECT sequence, time_ns, ring, kind, token, callback, argument
    FROM control_event;

    CREATE VIEW history AS SELECT * FROM (
    SELECT
      e.sequence AS sequence,
      {e.time_ns} AS time,
      r.run AS run,
      (SELECT h.title FROM thread h
       WHERE h.ring = e.ring AND h.began_sequence <= e.sequence
       ORDER BY h.began_sequence DESC LIMIT 1) AS thread,
      k.name AS event,
      CASE e.token WHEN 0 THEN NULL
        ELSE printf('0x%016x', e.token) END AS token,
      c.label AS label,
      CASE e.kind
        WHEN 2 THEN (SELECT title FROM thread
          WHERE began_sequence = e.sequence AND ring = e.ring)
        WHEN 3 THEN 'level ' || (SELECT name FROM level WHERE level = o.value)
        WHEN 5 THEN
          CASE o.related WHEN 0 THEN ''
            ELSE printf('for 0x%016x', o.related) END
          || coalesce((SELECT ' "' || oc.label || '"' FROM token ot
            JOIN callback oc ON oc.callback = ot.callback
            WHERE ot.token = o.related AND ot.run = r.run), '')
          || coalesce((SELECT ' at ' || file || coalesce(':' || nullif(line, 0), '')
            FROM site
            WHERE site = o.site), '')
        WHEN 6 THEN coalesce(
          (SELECT name FROM reason WHERE reason = e.argument),
          'reason ' || e.argument)
        WHEN 7 THEN o.value || ' calls'
          || CASE o.second_value WHEN 0 THEN '' ELSE ', destroyed' END
        WHEN 8 THEN coalesce(
          (SELECT name FROM status WHERE status = e.argument),
          'status ' || e.argument)
        WHEN 9 THEN printf('0x%016x', o.related)
        WHEN 10 THEN printf('0x%016x', o.related)
        WHEN 11 THEN
          CASE e.argument WHEN 1 THEN 'thread ended' ELSE 'unwound' END
        WHEN 14 THEN (SELECT name FROM level WHERE level = e.argument)
        WHEN 15 THEN (SELECT text FROM note n WHERE n.sequence = e.sequence)
        WHEN 17 THEN CASE o.related WHEN 0 THEN 'nothing'
          ELSE printf('0x%016x', o.related) || coalesce(
            (SELECT ' "' || oc.label || '"' FROM token ot
              JOIN callback oc ON oc.callback = ot.callback
              WHERE ot.token = o.related AND ot.run = r.run), '') END
        WHEN 18 THEN printf('0x%016x', o.related) || coalesce(
            (SELECT ' "' || oc.label || '"' FROM token ot
              JOIN callback oc ON oc.callback = ot.callback
              WHERE ot.token = o.related AND ot.run = r.run), '') || ': '
          || coalesce((SELECT name FROM reason WHERE reason = e.argument),
            'reason ' || e.argument)
        WHEN 19 THEN e.argument || ' times'
        WHEN 20 THEN e.argument || ' times'
        WHEN 24 THEN o.value || ' for ' || printf('0x%016x', o.related)
          || coalesce((SELECT ' "' || oc.label || '"' FROM token ot
            JOIN callback oc ON oc.callback = ot.callback
            WHERE ot.token = o.related AND ot.run = r.run), '') || ': '
          || coalesce((SELECT name FROM status WHERE status = e.argument),
            'status ' || e.argument)
        WHEN 25 THEN o.value || ' posted, ' || o.second_value || ' delivered'
        WHEN 21 THEN o.value || ' times ' || (SELECT name FROM session_event
          WHERE session_event = e.argument)
        WHEN 22 THEN CASE e.argument WHEN 1 THEN 'finish' ELSE 'cancel' END
        WHEN 23 THEN CASE e.argument WHEN 0 THEN 'well'
            WHEN -2147483648 THEN 'cancelled'
            WHEN -2147483647 THEN 'delegate gone'
            WHEN -2147483646 THEN 'timed out'
            ELSE 'error ' || e.argument END
          || ', ' || o.second_value || ' bytes'
      END AS detail,
      CASE e.kind WHEN 1 THEN e.argument END AS duration_ns
    FROM event e
    JOIN ring r ON r.ring = e.ring
    JOIN run u ON u.run = r.run
    LEFT JOIN event_kind k ON k.kind = e.kind
    LEFT JOIN callback c ON c.callback = e.callback
    LEFT JOIN control_event o ON o.sequence = e.sequence
    ) ORDER BY sequence;

    CREATE VIEW timeline AS
    SELECT {m.moment} AS time, r.run AS run,
      (SELECT h.title FROM thread h
       WHERE h.ring = m.ring AND h.began_sequence <= m.sequence
       ORDER BY h.began_sequence DESC LIMIT 1) AS thread,
      CASE WHEN m.kind <> 1 THEN k.name
        WHEN m.is_end THEN 'call ended' ELSE 'call began' END AS event,
      CASE m.token WHEN 0 THEN NULL
        ELSE printf('0x%016x', m.token) END AS token,
      c.label AS label,
      CASE WHEN m.kind <> 1 THEN (SELECT h.detail FROM history h
        WHERE h.sequence = m.sequence) END AS detail,
      CASE WHEN m.is_end THEN m.argument END AS duration_ns,
      m.sequence AS sequence
    FROM (
      SELECT sequence, time_ns AS moment, ring, kind, token, callback,
        argument, 0 AS is_end FROM event
      UNION ALL
      SELECT sequence, time_ns + argument, ring, kind, token, callback,
        argument, 1 FROM call) m
    JOIN ring r ON r.ring = m.ring
    JOIN run u ON u.run = r.run
    LEFT JOIN event_kind k ON k.kind = m.kind
    LEFT JOIN callback c ON c.callback = m.callback
    ORDER BY u.run, m.moment, m.sequence;

    CREATE VIEW slowest AS
    SELECT s.argument AS duration_ns, {s.time_ns} AS time, r.run AS run,
      (SELECT h.title FROM thread h
       WHERE h.ring = s.ring AND h.began_sequence <= s.sequence
       ORDER BY h.began_sequence DESC LIMIT 1) AS thread,
      printf('0x%016x', s.token) AS token, c.label AS label,
      s.sequence AS sequence
    FROM (SELECT * FROM call ORDER BY argument DESC LIMIT 100) s
    JOIN ring r ON r.ring = s.ring
    JOIN run u ON u.run = r.run
    LEFT JOIN callback c ON c.callback = s.callback
    ORDER BY s.argument DESC;

    CREATE VIEW losses AS
    SELECT l.run AS run, r.number AS ring, l.events AS events,
      k.name AS cause,
      {l.first_time_ns} AS first_time,
      {l.last_time_ns} AS last_time,
      l.first_ring_sequence AS first_ring_sequence,
      l.last_ring_sequence AS last_ring_sequence
    FROM loss l
    JOIN run u ON u.run = l.run
    LEFT JOIN ring r ON r.ring = l.ring
    LEFT JOIN loss_cause k ON k.cause = l.cause
    ORDER BY l.loss;

    CREATE VIEW in_flight_at_crash AS
    SELECT f.run AS run, h.title AS thread, f.depth AS depth,
      printf('0x%016x', f.token) AS token, c.label AS label,
      {f.began_time_ns} AS began_time
    FROM in_flight f
    JOIN run u ON u.run = f.run
    LEFT JOIN thread h ON h.thread = f.thread
    LEFT JOIN callback c ON c.callback = f.callback
    ORDER BY f.run, f.ring, f.depth;
    """
  }
}

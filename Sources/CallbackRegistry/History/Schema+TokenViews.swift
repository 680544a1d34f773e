// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// Views that tell the lives of handles.
  static var tokenViews: StaticString {
    """
    CREATE VIEW token_life AS
    SELECT t.run AS run, k.name AS kind, printf('0x%016x', t.token) AS token,
      c.label AS label,
      CASE t.owner WHEN 0 THEN NULL
        ELSE printf('0x%016x', t.owner) END AS owner,
      oc.label AS owner_label,
      CASE
        WHEN t.ended_sequence IS NULL THEN 'live'
        WHEN t.settled_sequence IS NOT NULL THEN 'settled'
        ELSE 'ended'
      END AS state,
      {t.registered_time_ns} AS registered_time,
      rs.file || coalesce(':' || nullif(rs.line, 0), '') AS registered_at,
      rh.title AS registered_by,
      {t.ended_time_ns} AS ended_time,
      CASE WHEN t.ended_sequence IS NOT NULL THEN
        coalesce(w.name, 'reason ' || t.ended_reason) END AS ended_reason,
      eh.title AS ended_by,
      t.ended_time_ns - t.registered_time_ns AS life_ns,
      max(t.calls, coalesce(t.attempts - t.outstanding, 0)) AS calls,
      t.refusals AS refusals, t.abandoned AS abandoned,
      t.leases AS leases, t.total_ns AS total_ns, t.max_ns AS max_ns,
      t.total_ns / nullif(t.calls, 0) AS mean_ns,
      {t.last_time_ns} AS last_call_time,
      t.registration AS registration
    FROM token t
    JOIN run u ON u.run = t.run
    LEFT JOIN handle_kind k ON k.kind = t.kind
    LEFT JOIN callback c ON c.callback = t.callback
    LEFT JOIN token o ON o.token = t.owner AND o.run = t.run
    LEFT JOIN callback oc ON oc.callback = o.callback
    LEFT JOIN site rs ON rs.site = t.registered_site
    LEFT JOIN thread rh ON rh.thread = t.registered_thread
    LEFT JOIN thread eh ON eh.thread = t.ended_thread
    LEFT JOIN reason w ON w.reason = t.ended_reason;

    CREATE VIEW live AS
    SELECT l.run AS run, l.kind AS kind, l.token AS token, l.label AS label,
      l.owner AS owner, l.owner_label AS owner_label,
      l.registered_time AS registered_time, l.registered_at AS registered_at,
      l.registered_by AS registered_by, l.calls AS calls,
      coalesce(u.ended, 'open') AS run_state
    FROM token_life l JOIN run u ON u.run = l.run
    WHERE l.state = 'live'
    ORDER BY l.registration;

    CREATE VIEW leaks AS
    SELECT l.run AS run, l.token AS token, l.label AS label,
      l.owner AS owner, l.owner_label AS owner_label,
      l.registered_time AS registered_time, l.registered_at AS registered_at,
      l.registered_by AS registered_by, l.calls AS calls,
      l.life_ns AS life_ns
    FROM token_life l JOIN token t ON t.registration = l.registration
    WHERE t.kind IN (2, 8) AND t.ended_reason = 4
    ORDER BY l.registration;

    CREATE VIEW sessions AS
    SELECT l.run AS run, l.token AS session, l.label AS label,
      l.owner AS owner, l.owner_label AS owner_label,
      printf('0x%016x', t.tag) AS delegate, dc.label AS delegate_label,
      l.state AS state, l.registered_time AS began_time,
      l.registered_at AS began_at, l.registered_by AS began_by,
      (SELECT CASE argument WHEN 1 THEN 'finish' ELSE 'cancel' END
        FROM control_event e JOIN ring r ON r.ring = e.ring
        WHERE e.kind = 22 AND e.token = t.token AND r.run = t.run
        ORDER BY e.sequence DESC LIMIT 1) AS told_to,
      l.ended_time AS ended_time, l.ended_reason AS ended_reason,
      l.ended_by AS ended_by, l.life_ns AS life_ns,
      count(k.registration) AS tasks,
      coalesce(sum(k.ended_reason = 7), 0) AS cancelled,
      coalesce(sum(k.ended_reason = 8), 0) AS timed_out,
      count(k.registration) - count(k.ended_sequence) AS open_tasks
    FROM token_life l JOIN token t ON t.registration = l.registration
    LEFT JOIN token d ON d.token = t.tag AND d.run = t.run
    LEFT JOIN callback dc ON dc.callback = d.callback
    LEFT JOIN token k ON k.owner = t.token AND k.run = t.run AND k.kind = 9
    WHERE t.kind = 8
    GROUP BY l.registration
    ORDER BY l.registration;

    CREATE VIEW open_sessions AS
    SELECT s.run AS run, s.session AS session, s.label AS label,
      s.delegate AS delegate, s.delegate_label AS delegate_label,
      s.began_time AS began_time, s.began_at AS began_at,
      s.began_by AS began_by, s.told_to AS told_to, s.tasks AS tasks,
      s.open_tasks AS open_tasks, coalesce(u.ended, 'open') AS run_state
    FROM sessions s JOIN run u ON u.run = s.run
    WHERE s.state = 'live';

    CREATE VIEW unanswered AS
    SELECT l.run AS run, l.token AS reply, l.owner AS task,
      l.label AS label, l.registered_at AS task_began_at,
      CASE WHEN s.token IS NOT NULL THEN printf('0x%016x', s.token) END
        AS session, sc.label AS session_label,
      l.registered_time AS asked_time, l.registered_by AS asked_by,
      l.ended_time AS given_up_time, l.ended_by AS given_up_by,
      l.life_ns AS age_ns,
      l.ended_reason AS ended_reason, coalesce(u.ended, 'open') AS run_state
    FROM token_life l JOIN token t ON t.registration = l.registration
    JOIN run u ON u.run = t.run
    LEFT JOIN token k ON k.token = t.owner AND k.run = t.run
    LEFT JOIN token s ON s.token = k.owner AND s.run = t.run
    LEFT JOIN callback sc ON sc.callback = s.callback
    WHERE t.kind = 10 AND t.ended_reason IS NOT 5
    ORDER BY l.registration;

    CREATE VIEW undelivered AS
    SELECT r.run AS run, {o.time_ns} AS time, h.title AS thread,
      printf('0x%016x', o.token) AS handle, k.name AS kind,
      c.label AS label, e.name AS event, o.value AS times,
      CASE o.related WHEN 0 THEN NULL
        ELSE printf('0x%016x', o.related) END AS delegate,
      dc.label AS delegate_label, o.sequence AS sequence
    FROM control_event o
    JOIN ring r ON r.ring = o.ring
    JOIN run u ON u.run = r.run
    LEFT JOIN thread h ON h.thread = o.thread
    LEFT JOIN token t ON t.token = o.token AND t.run = r.run
    LEFT JOIN handle_kind k ON k.kind = t.kind
    LEFT JOIN callback c ON c.callback = o.callback
    LEFT JOIN token d ON d.token = o.related AND d.run = r.run
    LEFT JOIN callback dc ON dc.callback = d.callback
    LEFT JOIN session_event e ON e.session_event = o.argument
    WHERE o.kind = 21
    ORDER BY o.sequence;

    CREATE VIEW busiest AS
    SELECT c.label AS label, count(*) AS tokens,
      sum(max(t.calls, coalesce(t.attempts - t.outstanding, 0))) AS calls,
      sum(t.refusals) AS refusals, sum(t.total_ns) AS total_ns,
      sum(t.total_ns) / nullif(sum(t.calls), 0) AS mean_ns,
      max(t.max_ns) AS max_ns
    FROM token t LEFT JOIN callback c ON c.callback = t.callback
    WHERE t.kind = 2
    GROUP BY t.callback
    ORDER BY calls DESC;

    CREATE VIEW refusals AS
    SELECT r.run AS run, printf('0x%016x', r.token) AS token,
      l.label AS label, s.name AS status, h.title AS thread,
      r.refusals AS refusals, {r.first_time_ns} AS first_time,
      {r.last_time_ns} AS last_time, l.state AS token_state,
      l.ended_time AS ended_time, l.ended_reason AS ended_reason,
      l.ended_by AS ended_by, l.registered_at AS registered_at,
      r.first_sequence AS first_sequence
    FROM refusal r
    JOIN run u ON u.run = r.run
    LEFT JOIN status s ON s.status = r.status
    LEFT JOIN thread h ON h.thread = r.thread
    LEFT JOIN token t ON t.token = r.token AND t.run = r.run
    LEFT JOIN token_life l ON l.registration = t.registration
    ORDER BY r.first_sequence;

    CREATE VIEW late_callers AS
    SELECT r.run AS run, printf('0x%016x', r.token) AS token,
      l.label AS label, h.title AS caller, r.refusals AS attempts,
      max(r.first_time_ns - t.ended_time_ns, 0) AS late_by_ns,
      {r.first_time_ns} AS first_attempt_time,
      {r.last_time_ns} AS last_attempt_time, s.name AS status,
      l.ended_time AS ended_time, l.ended_reason AS ended_reason,
      l.ended_by AS ended_by, l.registered_at AS registered_at,
      l.owner_label AS owner_label
    FROM refusal r
    JOIN token t ON t.token = r.token AND t.run = r.run
    JOIN run u ON u.run = r.run
    JOIN token_life l ON l.registration = t.registration
    LEFT JOIN status s ON s.status = r.status
    LEFT JOIN thread h ON h.thread = r.thread
    WHERE t.ended_sequence IS NOT NULL AND r.last_time_ns >= t.ended_time_ns
    ORDER BY r.first_sequence;
    """
  }
}

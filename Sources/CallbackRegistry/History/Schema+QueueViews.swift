// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// Views that tell what became of the messages of queues.
  ///
  /// `queues` sets what was posted against what became of it: the queue counts
  /// them at different places. Beside it is what the events of drops add up to,
  /// which are told one by one or as runs.
  static var queueViews: StaticString {
    """
    CREATE VIEW queues AS
    SELECT q.run AS run, printf('0x%016x', q.queue) AS queue,
      l.label AS label, coalesce(l.state, 'unknown') AS state,
      q.posted AS posted, q.delivered AS delivered, q.merged AS merged,
      q.dropped_full AS dropped_full, q.dropped_stale AS dropped_stale,
      q.dropped_refused AS dropped_refused, q.dropped_ended AS dropped_ended,
      q.waiting AS waiting, q.most_waiting AS most_waiting,
      (SELECT coalesce(sum(o.value), 0) FROM control_event o
        JOIN ring r ON r.ring = o.ring
        WHERE o.kind = 24 AND o.token = q.queue AND r.run = q.run
          AND o.sequence <= q.last_sequence) AS dropped_told,
      q.posted - q.delivered - q.merged - q.dropped_full - q.dropped_stale
        - q.dropped_refused - q.dropped_ended - q.waiting AS difference
    FROM queue q
    LEFT JOIN token t ON t.token = q.queue AND t.run = q.run
    LEFT JOIN token_life l ON l.registration = t.registration
    ORDER BY q.run, t.registration;

    CREATE VIEW dropped_messages AS
    SELECT r.run AS run, {o.time_ns} AS time,
      printf('0x%016x', o.token) AS queue, qc.label AS queue_label,
      printf('0x%016x', o.related) AS token, c.label AS label,
      coalesce(s.name, 'status ' || o.argument) AS reason,
      o.value AS messages, o.second_value AS first_message,
      h.title AS thread, o.sequence AS sequence
    FROM control_event o
    JOIN ring r ON r.ring = o.ring
    JOIN run u ON u.run = r.run
    LEFT JOIN callback qc ON qc.callback = o.callback
    LEFT JOIN token t ON t.token = o.related AND t.run = r.run
    LEFT JOIN callback c ON c.callback = t.callback
    LEFT JOIN status s ON s.status = o.argument
    LEFT JOIN thread h ON h.thread = o.thread
    WHERE o.kind = 24
    ORDER BY o.sequence;
    """
  }
}

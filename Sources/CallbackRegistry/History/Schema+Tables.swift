// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// The history itself, and the process that wrote it.
  ///
  /// Times are nanoseconds of a run's monotonic clock; `run.realtime_offset_ns`
  /// makes them UNIX time. Handles are 64 bits without a sign, stored as
  /// SQLite's integers.
  static var runTables: StaticString {
    """
    CREATE TABLE meta (
      name TEXT PRIMARY KEY,
      value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE run (
      run INTEGER PRIMARY KEY AUTOINCREMENT,
      uuid TEXT NOT NULL,
      host TEXT NOT NULL,
      boot TEXT NOT NULL,
      pid INTEGER NOT NULL,
      executable TEXT NOT NULL,
      library_version TEXT NOT NULL,
      sqlite_version TEXT NOT NULL,
      clock TEXT NOT NULL,
      crash_protection TEXT NOT NULL DEFAULT 'off',
      tamper_evidence TEXT NOT NULL DEFAULT 'off',
      ring_full_calls INTEGER NOT NULL DEFAULT 0,
      began_time_ns INTEGER NOT NULL,
      realtime_offset_ns INTEGER NOT NULL,
      predecessor TEXT,
      ended TEXT,
      ended_time_ns INTEGER
    ) STRICT;

    CREATE TABLE ring (
      ring INTEGER PRIMARY KEY AUTOINCREMENT,
      run INTEGER NOT NULL,
      number INTEGER NOT NULL,
      capacity_records INTEGER NOT NULL,
      first_event INTEGER NOT NULL,
      consumed_position INTEGER NOT NULL DEFAULT 0,
      consumed_events INTEGER NOT NULL DEFAULT 0,
      rows INTEGER NOT NULL DEFAULT 0,
      updates INTEGER NOT NULL DEFAULT 0,
      aggregated INTEGER NOT NULL DEFAULT 0,
      lost INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    CREATE TABLE thread (
      thread INTEGER PRIMARY KEY AUTOINCREMENT,
      run INTEGER NOT NULL,
      ring INTEGER NOT NULL,
      number INTEGER NOT NULL,
      kernel_number INTEGER NOT NULL,
      name TEXT NOT NULL,
      began_sequence INTEGER NOT NULL,
      began_time_ns INTEGER NOT NULL,
      title TEXT NOT NULL
        AS (CASE name WHEN '' THEN 'thread' ELSE name END || '#' || number)
    ) STRICT;
    CREATE INDEX thread_by_ring ON thread (ring, began_sequence);

    CREATE TABLE callback (
      callback INTEGER PRIMARY KEY,
      label TEXT NOT NULL UNIQUE
    ) STRICT;

    CREATE TABLE site (
      site INTEGER PRIMARY KEY,
      file TEXT NOT NULL,
      line INTEGER NOT NULL,
      UNIQUE (file, line)
    ) STRICT;

    CREATE TABLE dictionary (
      run INTEGER NOT NULL,
      kind INTEGER NOT NULL,
      number INTEGER NOT NULL,
      name INTEGER NOT NULL,
      PRIMARY KEY (run, kind, number)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE clock_sync (
      clock_sync INTEGER PRIMARY KEY,
      run INTEGER NOT NULL,
      ticks INTEGER NOT NULL,
      time_ns INTEGER NOT NULL,
      realtime_ns INTEGER NOT NULL,
      step_ns INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE fault (
      fault INTEGER PRIMARY KEY,
      run INTEGER NOT NULL,
      cause TEXT NOT NULL,
      sqlite_code INTEGER NOT NULL,
      began_time_ns INTEGER NOT NULL,
      ended_time_ns INTEGER NOT NULL,
      failures INTEGER NOT NULL,
      lost INTEGER NOT NULL
    ) STRICT;
    """
  }

  /// Files of rings that are not beside the history.
  ///
  /// A history of an earlier library gets the table with its first row.
  static var ringPlaces: StaticString {
    """
    CREATE TABLE IF NOT EXISTS ring_place (
      run INTEGER PRIMARY KEY,
      directory TEXT NOT NULL,
      history TEXT NOT NULL,
      missing INTEGER NOT NULL
    ) STRICT;
    """
  }

  /// Events, and what they add up to.
  ///
  /// `sequence` is the order of events in this database, over all runs.
  static var eventTables: StaticString {
    """
    CREATE TABLE control_event (
      sequence INTEGER PRIMARY KEY,
      time_ns INTEGER NOT NULL,
      ring INTEGER NOT NULL,
      kind INTEGER NOT NULL,
      token INTEGER NOT NULL,
      callback INTEGER NOT NULL,
      argument INTEGER NOT NULL,
      thread INTEGER NOT NULL,
      ring_sequence INTEGER NOT NULL,
      related INTEGER,
      site INTEGER,
      value INTEGER,
      second_value INTEGER
    ) STRICT;

    CREATE TABLE note (
      sequence INTEGER PRIMARY KEY,
      token INTEGER NOT NULL,
      text TEXT NOT NULL
    ) STRICT;

    CREATE TABLE token (
      registration INTEGER PRIMARY KEY,
      token INTEGER NOT NULL,
      run INTEGER NOT NULL,
      kind INTEGER NOT NULL,
      callback INTEGER NOT NULL,
      owner INTEGER NOT NULL,
      flags INTEGER NOT NULL,
      level INTEGER NOT NULL,
      tag INTEGER NOT NULL,
      registered_sequence INTEGER,
      registered_time_ns INTEGER,
      registered_site INTEGER,
      registered_thread INTEGER,
      ended_sequence INTEGER,
      ended_time_ns INTEGER,
      ended_thread INTEGER,
      ended_reason INTEGER,
      settled_sequence INTEGER,
      settled_time_ns INTEGER,
      destroyed INTEGER,
      attempts INTEGER,
      outstanding INTEGER,
      calls INTEGER NOT NULL DEFAULT 0,
      call_rows INTEGER NOT NULL DEFAULT 0,
      aggregated INTEGER NOT NULL DEFAULT 0,
      refusals INTEGER NOT NULL DEFAULT 0,
      abandoned INTEGER NOT NULL DEFAULT 0,
      leases INTEGER NOT NULL DEFAULT 0,
      leases_ended INTEGER NOT NULL DEFAULT 0,
      total_ns INTEGER NOT NULL DEFAULT 0,
      max_ns INTEGER NOT NULL DEFAULT 0,
      last_time_ns INTEGER,
      UNIQUE (token, run)
    ) STRICT;

    CREATE TABLE refusal (
      token INTEGER NOT NULL,
      status INTEGER NOT NULL,
      thread INTEGER NOT NULL,
      run INTEGER NOT NULL,
      refusals INTEGER NOT NULL,
      first_sequence INTEGER NOT NULL,
      last_sequence INTEGER NOT NULL,
      first_time_ns INTEGER NOT NULL,
      last_time_ns INTEGER NOT NULL,
      PRIMARY KEY (token, status, thread, run)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE aggregate (
      token INTEGER NOT NULL,
      run INTEGER NOT NULL,
      cause INTEGER NOT NULL,
      calls INTEGER NOT NULL,
      total_ns INTEGER NOT NULL,
      max_ns INTEGER NOT NULL,
      first_time_ns INTEGER NOT NULL,
      last_time_ns INTEGER NOT NULL,
      PRIMARY KEY (token, run, cause)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE queue (
      queue INTEGER NOT NULL,
      run INTEGER NOT NULL,
      posted INTEGER NOT NULL,
      delivered INTEGER NOT NULL,
      merged INTEGER NOT NULL,
      dropped_full INTEGER NOT NULL,
      dropped_stale INTEGER NOT NULL,
      dropped_refused INTEGER NOT NULL,
      dropped_ended INTEGER NOT NULL,
      waiting INTEGER NOT NULL,
      most_waiting INTEGER NOT NULL,
      last_sequence INTEGER NOT NULL,
      PRIMARY KEY (queue, run)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE loss (
      loss INTEGER PRIMARY KEY,
      run INTEGER NOT NULL,
      ring INTEGER,
      first_ring_sequence INTEGER,
      last_ring_sequence INTEGER,
      events INTEGER NOT NULL,
      cause INTEGER NOT NULL,
      first_time_ns INTEGER NOT NULL,
      last_time_ns INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE in_flight (
      run INTEGER NOT NULL,
      ring INTEGER NOT NULL,
      depth INTEGER NOT NULL,
      thread INTEGER NOT NULL,
      token INTEGER NOT NULL,
      callback INTEGER NOT NULL,
      began_time_ns INTEGER,
      PRIMARY KEY (run, ring, depth)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE segment (
      segment INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL,
      rows INTEGER NOT NULL DEFAULT 0,
      first_sequence INTEGER,
      last_sequence INTEGER,
      first_run INTEGER,
      first_time_ns INTEGER,
      last_run INTEGER,
      last_time_ns INTEGER
    ) STRICT;

    CREATE TABLE purge (
      purge INTEGER PRIMARY KEY,
      run INTEGER NOT NULL,
      time_ns INTEGER NOT NULL,
      rule TEXT NOT NULL,
      table_name TEXT NOT NULL,
      rows INTEGER NOT NULL,
      first_sequence INTEGER,
      last_sequence INTEGER,
      first_run INTEGER,
      first_time_ns INTEGER,
      last_run INTEGER,
      last_time_ns INTEGER
    ) STRICT;

    CREATE TRIGGER control_event_keeps_rows BEFORE UPDATE ON control_event
    BEGIN SELECT RAISE(ABORT, 'events of a history are not changed'); END;
    CREATE TRIGGER control_event_is_kept BEFORE DELETE ON control_event
    WHEN OLD.sequence >= (SELECT value FROM meta WHERE name = 'kept_from')
    BEGIN SELECT RAISE(ABORT, 'events of a history are not deleted'); END;
    CREATE TRIGGER note_keeps_rows BEFORE UPDATE ON note
    BEGIN SELECT RAISE(ABORT, 'notes of a history are not changed'); END;
    CREATE TRIGGER note_is_kept BEFORE DELETE ON note
    WHEN OLD.sequence >= (SELECT value FROM meta WHERE name = 'kept_from')
    BEGIN SELECT RAISE(ABORT, 'notes of a history are not deleted'); END;
    CREATE TRIGGER loss_keeps_rows BEFORE UPDATE ON loss
    BEGIN SELECT RAISE(ABORT, 'losses of a history are not changed'); END;
    CREATE TRIGGER loss_is_kept BEFORE DELETE ON loss
    BEGIN SELECT RAISE(ABORT, 'losses of a history are not deleted'); END;
    CREATE TRIGGER purge_keeps_rows BEFORE UPDATE ON purge
    BEGIN SELECT RAISE(ABORT, 'purges of a history are not changed'); END;
    CREATE TRIGGER purge_is_kept BEFORE DELETE ON purge
    BEGIN SELECT RAISE(ABORT, 'purges of a history are not deleted'); END;
    CREATE TRIGGER fault_keeps_rows BEFORE UPDATE ON fault
    BEGIN SELECT RAISE(ABORT, 'faults of a history are not changed'); END;
    CREATE TRIGGER fault_is_kept BEFORE DELETE ON fault
    BEGIN SELECT RAISE(ABORT, 'faults of a history are not deleted'); END;
    """
  }
}

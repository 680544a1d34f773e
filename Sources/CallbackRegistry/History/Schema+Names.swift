// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// What the numbers in rows mean.
  static var nameTables: StaticString {
    """
    CREATE TABLE event_kind (kind INTEGER PRIMARY KEY, name TEXT NOT NULL)
      STRICT;
    INSERT INTO event_kind VALUES
      (1, 'call'), (2, 'thread began'), (3, 'registry opened'),
      (4, 'registry closed'), (5, 'registered'), (6, 'ended'),
      (7, 'settled'), (8, 'refused'), (9, 'leased'), (10, 'lease ended'),
      (11, 'abandoned'), (12, 'counted'), (13, 'aggregated'),
      (14, 'level changed'), (15, 'note'), (16, 'forked'), (17, 'slot set'),
      (18, 'slot cleared'), (19, 'blocked'), (20, 'unblocked'),
      (21, 'undelivered'), (22, 'session ending'), (23, 'task completed'),
      (24, 'messages dropped'), (25, 'queue counted');

    CREATE TABLE handle_kind (kind INTEGER PRIMARY KEY, name TEXT NOT NULL)
      STRICT;
    INSERT INTO handle_kind VALUES
      (1, 'registry'), (2, 'token'), (3, 'owner'), (4, 'lease'),
      (5, 'slot'), (6, 'signal'), (7, 'queue'), (8, 'session'), (9, 'task'),
      (10, 'reply'), (11, 'thunk');

    CREATE TABLE session_event (
      session_event INTEGER PRIMARY KEY, name TEXT NOT NULL
    ) STRICT;
    INSERT INTO session_event VALUES
      (0, 'response'), (1, 'data'), (2, 'completion'), (3, 'invalidation'),
      (4, 'hand-over');

    CREATE TABLE level (level INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
    INSERT INTO level VALUES
      (0, 'default'), (1, 'off'), (2, 'lifecycle'), (3, 'calls');

    CREATE TABLE status (
      status INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL
    ) STRICT;
    INSERT INTO status VALUES
      (0, 'CBR_OK', 'done'),
      (1, 'CBR_PENDING',
        'dead; it finishes where its last call or lease ends'),
      (2, 'CBR_DEFERRED',
        'dead; it finishes when the caller''s own call unwinds'),
      (3, 'CBR_ALREADY', 'it was dead before'),
      (4, 'CBR_STOPPED', 'a visitor or handler asked to stop'),
      (5, 'CBR_EMPTY', 'the slot holds no token'),
      (-1, 'CBR_E_INVALID', 'an argument is wrong'),
      (-2, 'CBR_E_STALE', 'the handle is dead, or was never given out'),
      (-3, 'CBR_E_KIND', 'the handle is of another kind'),
      (-4, 'CBR_E_INTERFACE', 'another interface or type tag'),
      (-5, 'CBR_E_UNIMPLEMENTED', 'the optional method is absent'),
      (-6, 'CBR_E_FOREIGN', 'the handle belongs to another registry'),
      (-7, 'CBR_E_DYING', 'the owner''s death has begun'),
      (-8, 'CBR_E_CLOSED', 'it, or its registry, has been closed'),
      (-9, 'CBR_E_FULL', 'a bound is reached'),
      (-10, 'CBR_E_CONSUMED', 'the one-shot was used before'),
      (-11, 'CBR_E_WOULD_DEADLOCK',
        'waiting would close a ring of waiting threads'),
      (-12, 'CBR_E_TIMEOUT', 'the time is over; something is still running'),
      (-13, 'CBR_E_DEPTH', 'nested too deeply'),
      (-14, 'CBR_E_THREAD', 'not allowed on this thread'),
      (-15, 'CBR_E_FORKED', 'inherited through fork'),
      (-16, 'CBR_E_NOMEM', 'out of memory; nothing changed'),
      (-17, 'CBR_E_LIMIT',
        'a limit of the library is reached; nothing changed'),
      (-18, 'CBR_E_AUDIT', 'the history cannot be opened or written'),
      (-19, 'CBR_E_UNSUPPORTED', 'not possible here'),
      (-1000, 'CBR_E_USER', 'a status of the program''s own');

    CREATE TABLE reason (reason INTEGER PRIMARY KEY, name TEXT NOT NULL)
      STRICT;
    INSERT INTO reason VALUES
      (0, 'no reason given'), (1, 'ended'), (2, 'owner died'),
      (3, 'object died'), (4, 'registry closed'), (5, 'consumed'),
      (6, 'replaced'), (7, 'cancelled'), (8, 'timed out'), (9, 'unloaded'),
      (10, 'delegate died'), (11, 'queue ended');

    CREATE TABLE loss_cause (cause INTEGER PRIMARY KEY, name TEXT NOT NULL)
      STRICT;
    INSERT INTO loss_cause VALUES
      (1, 'the ring was full'), (2, 'the history could not be written'),
      (3, 'no memory for a ring'),
      (4, 'the process died before it was written'),
      (5, 'the ring was damaged'), (6, 'dropped, as its policy says');

    CREATE TABLE aggregate_cause (
      cause INTEGER PRIMARY KEY, name TEXT NOT NULL
    ) STRICT;
    INSERT INTO aggregate_cause VALUES
      (1, 'more calls a second than the budget'), (2, 'the ring was full'),
      (3, 'a reader kept the log from being used again');
    """
  }
}

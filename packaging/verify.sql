-- SPDX-License-Identifier: Apache-2.0
--
-- Says whether a history is as it was written:
--
--     sqlite3 -readonly app.history < verify.sql
--
-- One line for each kind of fault, with the first block that has it; or
-- "intact: ...", and the root of the last block, which stands for all before.
-- It needs the sqlite3 shell, for its functions sha3 and sha3_query. Seals are
-- not looked at: that is for cbr verify --seal. What this proves, and what not:
-- Documentation/TamperEvidence.md.

.bail on
.headers off
.mode list
BEGIN;

-- For each table what its rows are called, and what is hashed of which.
CREATE TEMP TABLE source (
  pattern TEXT PRIMARY KEY, rows TEXT, columns TEXT, condition TEXT DEFAULT '1');
INSERT INTO source (pattern, rows, columns) VALUES
  ('call_[0-9]*', 'calls',
    'sequence, time_ns, ring * 4294967296 + callback, token, argument'),
  ('callback', 'callbacks', 'callback, label'),
  ('control_event', 'control events',
    'sequence, time_ns, ring, kind, token, callback, argument, thread, '
    || 'ring_sequence, related, site, value, second_value'),
  ('fault', 'faults',
    'fault, run, cause, sqlite_code, began_time_ns, ended_time_ns, failures, '
    || 'lost'),
  ('loss', 'losses',
    'loss, run, ring, first_ring_sequence, last_ring_sequence, events, cause, '
    || 'first_time_ns, last_time_ns'),
  ('note', 'notes', 'sequence, token, text'),
  ('purge', 'purges',
    'purge, run, time_ns, rule, table_name, rows, first_sequence, '
    || 'last_sequence, first_run, first_time_ns, last_run, last_time_ns'),
  ('site', 'sites', 'site, file, line');
UPDATE source SET condition = 'kind = 1 AND ring BETWEEN 0 AND 2147483647 '
  || 'AND callback BETWEEN 0 AND 4294967295' WHERE rows = 'calls';

-- The tables that there are, of calls each segment's. Their names become parts
-- of queries, so no others are believed.
CREATE TEMP TABLE place (
  name TEXT PRIMARY KEY, rows TEXT, columns TEXT, condition TEXT,
  is_there INTEGER);
INSERT INTO place
SELECT t.name, coalesce(s.rows, 'unknown rows'), s.columns, s.condition,
  EXISTS (SELECT 1 FROM main.sqlite_schema
    WHERE type = 'table' AND name = t.name)
FROM (SELECT name FROM main.sqlite_schema WHERE type = 'table'
    UNION SELECT table_name FROM main.block_content) t
LEFT JOIN source s
  ON t.name GLOB s.pattern AND t.name NOT GLOB '*[^a-z0-9_]*';

-- What each block has of each table.
CREATE TEMP TABLE part (
  block INTEGER, name TEXT, first INTEGER, last INTEGER, number INTEGER,
  hash BLOB, query TEXT, found BLOB, state TEXT,
  PRIMARY KEY (block, name)) WITHOUT ROWID;
INSERT INTO part
SELECT c.block, c.table_name, c.first_row, c.last_row, c.rows, c.content,
  CASE WHEN p.is_there AND p.columns IS NOT NULL THEN printf('SELECT %s '
    || 'FROM %s WHERE %s AND rowid BETWEEN %d AND %d ORDER BY rowid', p.columns,
    p.name, p.condition, c.first_row, c.last_row) END, NULL, NULL
FROM main.block_content c LEFT JOIN place p ON p.name = c.table_name;

UPDATE part SET found = sha3_query(query, 256) WHERE query IS NOT NULL;

-- Deleted by rule is what has a row in purge, and no row of its own. Notes go
-- with their events.
UPDATE part SET state = CASE
  WHEN found = hash THEN 'right'
  WHEN EXISTS (SELECT 1 FROM main.purge g
      WHERE g.table_name = CASE name WHEN 'note' THEN 'control_event'
        ELSE name END AND g.first_sequence <= first AND g.last_sequence >= last)
    AND (query IS NULL
      OR found = sha3(printf('S%d:%s', length(query), query), 256))
    THEN 'purged'
  WHEN query IS NULL THEN 'dropped'
  ELSE 'wrong' END;

-- Questions about a table whose name is only known now. What sha3_query makes
-- of a query that answers with one word is known for each word.
CREATE TEMP TABLE question (
  block INTEGER, name TEXT, query TEXT, answer BLOB);
INSERT INTO question
SELECT block, name, printf('SELECT CASE WHEN count(*) < %d THEN ''less'' '
  || 'WHEN count(*) > %d THEN ''more'' ELSE ''same'' END FROM %s '
  || 'WHERE rowid BETWEEN %d AND %d', number, number, name, first, last), NULL
FROM part WHERE state = 'wrong';
UPDATE question SET answer = sha3_query(query, 256);
UPDATE part SET state = CASE q.answer
  WHEN sha3(printf('S%d:%sRT4:less', length(q.query), q.query), 256)
    THEN 'missing'
  WHEN sha3(printf('S%d:%sRT4:more', length(q.query), q.query), 256)
    THEN 'added'
  ELSE 'changed' END
FROM question q WHERE q.block = part.block AND q.name = part.name;

-- The blocks, each with the one before it.
CREATE TEMP TABLE chain AS
SELECT block, run, first_sequence, last_sequence, previous_root, root,
  lag(block) OVER (ORDER BY block) AS before,
  lag(root) OVER (ORDER BY block) AS root_before,
  coalesce(lag(last_sequence) OVER (ORDER BY block),
    CASE block WHEN 1 THEN 0 ELSE first_sequence - 1 END) AS sequence_before,
  0 AS is_after_purge
FROM main.block ORDER BY block;
-- Blocks were deleted by rule that were just before: rules delete from the
-- first one on, and each goes on where the one before has come to.
UPDATE chain SET is_after_purge = 1
WHERE coalesce(before, 0) < block - 1 AND block - 1 <=
  (SELECT max(last_sequence) FROM main.purge WHERE table_name = 'block');

CREATE TEMP TABLE content AS
SELECT block, group_concat(text, '') AS text FROM (
  SELECT block, printf(':%s:%d:%d:%d:%s', name, first, last, number,
    lower(hex(hash))) AS text
  FROM part ORDER BY block, name)
GROUP BY block;
CREATE INDEX temp.content_by_block ON content (block);

CREATE TEMP TABLE final AS
SELECT (SELECT value FROM main.meta WHERE name = 'blocks') AS blocks,
  (SELECT value FROM main.meta WHERE name = 'next_sequence') AS next_sequence,
  coalesce(max(block), 0) AS last, coalesce(min(block), 0) AS first,
  coalesce(min(first_sequence), 1) AS first_sequence,
  coalesce(max(last_sequence), 0) AS last_sequence FROM chain;

-- Each table has no rows but those of the blocks, and, where rows are not
-- events, those that are too new for a block.
DELETE FROM question;
INSERT INTO question
SELECT NULL, p.name, printf('SELECT CASE WHEN count(*) > %d THEN ''more'' '
  || 'ELSE ''same'' END FROM %s WHERE rowid BETWEEN %d AND %d',
  coalesce(sum(t.number) FILTER (WHERE t.state = 'right'), 0), p.name,
  CASE WHEN f.first <= 1 THEN -9223372036854775808
    WHEN p.rows IN ('calls', 'control events', 'notes') THEN f.first_sequence
    ELSE coalesce(min(t.first), 1) END,
  CASE WHEN p.rows IN ('calls', 'control events', 'notes')
    THEN 9223372036854775807 ELSE coalesce(max(t.last), 0) END), NULL
FROM place p JOIN final f LEFT JOIN part t ON t.name = p.name
WHERE p.is_there AND p.columns IS NOT NULL
GROUP BY p.name
HAVING count(*) FILTER (WHERE t.state NOT IN ('right', 'purged')) = 0;
UPDATE question SET answer = sha3_query(query, 256);

CREATE TEMP TABLE problem (block INTEGER, opening TEXT, ending TEXT);
INSERT INTO problem
SELECT block, CASE state
    WHEN 'changed' THEN 'content of block '
    WHEN 'missing' THEN 'rows of block '
    WHEN 'added' THEN 'rows beside those of block '
    ELSE 'table of block ' END,
  CASE state
    WHEN 'changed' THEN ' differs: '
    WHEN 'missing' THEN ' are missing: '
    WHEN 'added' THEN ' are there: '
    ELSE ' is missing: ' END || p.rows
FROM part JOIN place p USING (name) WHERE state NOT IN ('right', 'purged')
UNION ALL
SELECT c.block, 'root of block ', ' differs'
FROM chain c LEFT JOIN content t USING (block)
WHERE c.root <> sha3(printf('%s:%d:%d:%d:%d%s', lower(hex(c.previous_root)),
  c.block, c.run, c.first_sequence, c.last_sequence, t.text), 256)
UNION ALL
SELECT block, 'block ', ' does not follow the one before'
FROM chain
WHERE previous_root <> CASE block WHEN 1 THEN zeroblob(32)
  ELSE coalesce(root_before, previous_root) END AND NOT is_after_purge
UNION ALL
SELECT block, 'blocks before block ', ' are missing'
FROM chain WHERE before <> block - 1 AND NOT is_after_purge
UNION ALL
SELECT first, 'head is cut: block ', ' is the first'
FROM final WHERE first > 1 AND NOT (SELECT is_after_purge FROM chain
  WHERE block = first)
UNION ALL
SELECT last, 'tail is cut: block ', printf(' is the last of %d', blocks)
FROM final WHERE blocks IS NOT last
UNION ALL
SELECT DISTINCT block, 'block ', ' is missing, its content is there'
FROM part WHERE block NOT IN (SELECT block FROM chain)
UNION ALL
SELECT block, 'events before block ', ' are in no block'
FROM chain WHERE first_sequence <> sequence_before + 1 AND NOT is_after_purge
UNION ALL
SELECT last, 'events after block ', ' are in no block'
FROM final WHERE next_sequence IS NOT last_sequence + 1
UNION ALL
SELECT NULL, 'rows are in no block: ', p.rows
FROM question q JOIN place p USING (name)
WHERE q.answer = sha3(printf('S%d:%sRT4:more', length(q.query), q.query), 256);

SELECT opening || coalesce(min(block), '') || ending
  || CASE WHEN count(block) > 1
    THEN printf(' (the first of %d)', count(block)) ELSE '' END
FROM problem GROUP BY opening, ending
ORDER BY min(block) IS NULL, min(block), opening, ending;

SELECT printf('intact: %d blocks, %d rows, head %s',
  (SELECT count(*) FROM chain),
  (SELECT coalesce(sum(number), 0) FROM part WHERE state = 'right'),
  lower(hex(coalesce((SELECT root FROM chain ORDER BY block DESC LIMIT 1),
    zeroblob(32)))))
WHERE NOT EXISTS (SELECT 1 FROM problem);

-- Until a block has them, somebody may have added them.
SELECT printf('in no block yet: %d deletions by rule', count(*))
FROM main.purge WHERE purge > coalesce((SELECT max(last) FROM part
  WHERE name = 'purge'), 0) HAVING count(*) > 0;
COMMIT;

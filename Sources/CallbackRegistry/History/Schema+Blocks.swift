// SPDX-License-Identifier: Apache-2.0

extension Schema {
  /// The chain of blocks: see Documentation/TamperEvidence.md.
  ///
  /// A row of `block_content` says which rows of a table a block covers, by
  /// their rowids, and their hash.
  static var blockTables: StaticString {
    """
    CREATE TABLE block (
      block INTEGER PRIMARY KEY,
      run INTEGER NOT NULL,
      first_sequence INTEGER NOT NULL,
      last_sequence INTEGER NOT NULL,
      previous_root BLOB NOT NULL,
      root BLOB NOT NULL,
      seal BLOB
    ) STRICT;
    CREATE INDEX block_by_sequence ON block (last_sequence);

    CREATE TABLE block_content (
      table_name TEXT NOT NULL,
      block INTEGER NOT NULL,
      first_row INTEGER NOT NULL,
      last_row INTEGER NOT NULL,
      rows INTEGER NOT NULL,
      content BLOB NOT NULL,
      PRIMARY KEY (table_name, block)
    ) STRICT, WITHOUT ROWID;

    INSERT INTO meta VALUES ('blocks', 0), ('purged_blocks', 0);

    CREATE TRIGGER block_keeps_rows BEFORE UPDATE ON block
    BEGIN SELECT RAISE(ABORT, 'blocks of a history are not changed'); END;
    CREATE TRIGGER block_is_kept BEFORE DELETE ON block
    WHEN OLD.block > (SELECT value FROM meta WHERE name = 'purged_blocks')
    BEGIN SELECT RAISE(ABORT, 'blocks of a history are not deleted'); END;
    CREATE TRIGGER block_content_keeps_rows BEFORE UPDATE ON block_content
    BEGIN SELECT RAISE(ABORT, 'blocks of a history are not changed'); END;
    CREATE TRIGGER block_content_is_kept BEFORE DELETE ON block_content
    WHEN OLD.block > (SELECT value FROM meta WHERE name = 'purged_blocks')
    BEGIN SELECT RAISE(ABORT, 'blocks of a history are not deleted'); END;
    """
  }
}

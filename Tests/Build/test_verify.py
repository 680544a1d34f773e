#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tamper evidence: what the shell with packaging/verify.sql and the command
`cbr verify` say about histories as they were written, and changed by hand.

Both must say the same.
"""

import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/bin/cbr"
SCRIPT = ROOT / "packaging/verify.sql"

# Registers, calls, notes, flushes; then ends as it is told to.
WRITER = r"""
#include <callback_registry.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void nothing(void *context) { (void)context; }

static int check(cbr_status status) {
  if (status < 0) fprintf(stderr, "%s\n", cbr_last_error());
  if (status < 0) exit(1);
  return status;
}

int main(int count, char **arguments) {
  cbr_registry registry;
  cbr_token token;
  cbr_call call;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  const char *ending = count > 2 ? arguments[2] : "close";
  int rounds = count > 3 ? atoi(arguments[3]) : 3;
  options.history_path = arguments[1];
  options.calls_per_second = UINT64_MAX;
  options.ring_bytes = 1 << 16;
  int is_limited = strcmp(ending, "limited") == 0;
  if (is_limited) options.max_calls = options.max_events = 10000;
  if (strcmp(ending, "idle") == 0) options.level = CBR_LEVEL_OFF;
  check(cbr_registry_open(&options, &registry));
  int waits = strcmp(ending, "step") == 0;
  int is_busy = strcmp(ending, "busy") == 0;
  struct pollfd input = {0, POLLIN, 0};
  for (int round = 0; is_busy ? !poll(&input, 1, 0) : round < rounds; round++) {
    if (waits) getchar();
    check(CBR_REGISTER(registry, "the writer's", nothing, NULL, NULL, CBR_NONE,
                       &token));
    for (int each = 0; each < 10; each++) {
      check(cbr_enter(token, &call));
      check(cbr_leave(&call));
    }
    check(cbr_audit_note(registry, token, "a note of the writer's"));
    check(cbr_invalidate(token, CBR_REASON_ENDED));
    if (is_limited && round % 50) continue;
    check(cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, NULL));
    if (waits) puts("done"), fflush(stdout);
  }
  if (strcmp(ending, "flood") == 0) {
    puts("somebody may lock the history now");
    fflush(stdout);
    getchar();
    check(CBR_REGISTER(registry, "flood", nothing, NULL, NULL, CBR_NONE,
                       &token));
    for (int each = 0; each < 100000; each++) {
      check(cbr_enter(token, &call));
      check(cbr_leave(&call));
    }
    kill(getpid(), SIGKILL);
  }
  if (strcmp(ending, "kill") == 0) {
    check(CBR_REGISTER(registry, "late", nothing, NULL, NULL, CBR_NONE,
                       &token));
    kill(getpid(), SIGKILL);
  }
  if (strcmp(ending, "exit") == 0) return 0;
  return check(cbr_registry_close(registry, CBR_FOREVER));
}
"""

# A libcrypto whose digests are zero, and fail after some; without FAILS it has
# nothing at all.
FALSE_LIBRARY = r"""
#ifdef FAILS
#include <string.h>
static int context, digests;
int OPENSSL_init_crypto(unsigned long options, const void *more) {
  (void)options, (void)more;
  return 1;
}
const void *EVP_sha3_256(void) { return &context; }
void *EVP_MD_CTX_new(void) { return &context; }
void EVP_MD_CTX_free(void *it) { (void)it; }
int EVP_DigestInit_ex(void *it, const void *type, void *engine) {
  (void)it, (void)type, (void)engine;
  return 1;
}
int EVP_DigestUpdate(void *it, const void *bytes, unsigned long count) {
  (void)it, (void)bytes, (void)count;
  return 1;
}
int EVP_DigestFinal_ex(void *it, unsigned char *digest, unsigned *bytes) {
  (void)it;
  memset(digest, 0, *bytes = 32);
  return ++digests < 10;
}
#else
int nothing;
#endif
"""


# Removes what is in the blocks after one, but for how many there were.
CUT_TAIL = """
    DELETE FROM block WHERE block > {block};
    DELETE FROM block_content WHERE block > {block};
    DELETE FROM control_event WHERE sequence >
      (SELECT max(last_sequence) FROM block);
    DELETE FROM note WHERE sequence > (SELECT max(last_sequence) FROM block);
    CREATE TEMP TABLE last AS SELECT max(last_sequence) AS sequence FROM block;
    UPDATE meta SET value = 1 + (SELECT sequence FROM last)
      WHERE name = 'next_sequence';
    DELETE FROM {calls} WHERE sequence > (SELECT sequence FROM last);
    """


def compile_c(source, *options):
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-x", "c", "-",
                    *options], input=source, text=True, check=True)


def false_library(folder, *options):
    """Returns an environment in which libcrypto is another one."""
    folder.mkdir()
    for name in "libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so":
        compile_c(FALSE_LIBRARY, "-shared", "-fPIC", *options,
                  "-o", folder / name)
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


def setUpModule():
    global build, writer
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    build = pathlib.Path(folder.name)
    writer = build / "writer"
    compile_c(WRITER, f"-I{ROOT}/include", f"-L{ROOT}/build/lib",
              "-lcallbackregistry", f"-Wl,-rpath,{ROOT}/build/lib",
              "-o", writer)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "history"

    def write(self, *arguments, status=0, environment=None):
        result = subprocess.run(
            [writer, self.path, *arguments], capture_output=True, text=True,
            env=environment)
        self.assertEqual(result.returncode, status, result.stderr)

    def change(self, sql):
        """Changes the history as somebody would who may write the file."""
        with sqlite3.connect(self.path) as database:
            for name, in database.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
                    ).fetchall():
                database.execute(f"DROP TRIGGER {name}")
            database.executescript(sql)
        database.close()

    def ask(self, sql):
        database = sqlite3.connect(self.path)
        try:
            return database.execute(sql).fetchone()[0]
        finally:
            database.close()

    def verify(self, *options):
        """Returns what both say, and the status of the command."""
        with open(SCRIPT) as script:
            shell = subprocess.run(
                ["sqlite3", "-init", "/dev/null", "-readonly", self.path],
                stdin=script, capture_output=True, text=True)
        self.assertEqual(shell.stderr, "")
        command = subprocess.run(
            [COMMAND, "verify", self.path, *options], capture_output=True,
            text=True)
        self.assertEqual(command.stderr, "")
        if not options:
            self.assertEqual(shell.stdout, command.stdout)
        return command.stdout.splitlines(), command.returncode

    def expect_intact(self):
        lines, status = self.verify()
        self.assertRegex(
            "\n".join(lines),
            r"^intact: \d+ blocks, \d+ rows, head [0-9a-f]{64}$")
        self.assertEqual(status, 0)
        return lines[0].split()[-1]

    def expect(self, *expected):
        lines, status = self.verify()
        self.assertEqual(lines, list(expected))
        self.assertEqual(status, 1)


class AsWritten(Case):
    def test_after_a_run_and_another(self):
        self.write()
        head = self.expect_intact()
        self.write()
        self.assertNotEqual(self.expect_intact(), head)
        self.assertEqual(self.verify("--anchor", head)[1], 0)
        self.assertEqual(
            self.ask("SELECT value FROM health WHERE name = 'violations'"), 0)

    def test_covers_all_rows(self):
        self.write()
        for table in ("call_000001", "control_event", "note", "callback",
                      "site"):
            self.assertEqual(
                self.ask(f"SELECT count(*) FROM {table}"),
                self.ask("SELECT sum(rows) FROM block_content "
                         f"WHERE table_name = '{table}'"), table)

    def test_after_two_processes_in_turns(self):
        both = [subprocess.Popen(
            [writer, self.path, "step", "5"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for _ in range(5):
            for each in both:
                each.stdin.write("\n")
                each.stdin.flush()
                self.assertEqual(each.stdout.readline(), "done\n")
        for each in both:
            each.communicate()
            self.assertEqual(each.returncode, 0)
        self.assertGreaterEqual(
            self.ask("SELECT count(*) FROM block b JOIN block n "
                     "ON n.block = b.block + 1 WHERE n.run <> b.run"), 9)
        self.expect_intact()

    def test_after_two_processes_at_once(self):
        both = [subprocess.Popen([writer, self.path, "close", "200"])
                for _ in range(2)]
        for each in both:
            self.assertEqual(each.wait(), 0)
        self.expect_intact()

    def test_while_it_is_written(self):
        with subprocess.Popen(
                [writer, self.path, "busy"], stdin=subprocess.PIPE) as process:
            seen = set()
            while len(seen) < 4:
                result = subprocess.run(
                    [COMMAND, "verify", self.path], capture_output=True,
                    text=True)
                if seen or self.path.exists() and result.returncode != 3:
                    self.assertEqual(result.returncode, 0, result.stdout)
                    seen.add(result.stdout)
            process.stdin.close()
            self.assertEqual(process.wait(), 0)
        self.expect_intact()

    def test_after_a_kill(self):
        self.write("kill", status=-signal.SIGKILL)
        self.expect_intact()
        before = self.ask("SELECT max(block) FROM block")
        subprocess.run([COMMAND, "recover", self.path], check=True,
                       capture_output=True)
        self.assertEqual(self.ask("SELECT ended FROM run"), "crash")
        self.assertEqual(self.ask(
            "SELECT count(*) FROM callback WHERE label = 'late'"), 1)
        self.assertGreater(self.ask("SELECT max(block) FROM block"), before)
        self.expect_intact()

    def test_after_a_kill_and_another_run(self):
        self.write("kill", status=-signal.SIGKILL)
        self.write()
        self.expect_intact()

    def test_what_a_recovery_adds_is_covered(self):
        with subprocess.Popen(
                [writer, self.path, "flood"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            database = sqlite3.connect(self.path, isolation_level=None)
            database.execute("BEGIN IMMEDIATE")
            process.stdin.write(b"\n")
            process.stdin.close()
            self.assertEqual(process.wait(), -signal.SIGKILL)
            database.close()
        subprocess.run([COMMAND, "recover", self.path], check=True,
                       capture_output=True)
        self.assertEqual(self.ask("SELECT cause FROM loss"), 4)
        self.assertEqual(self.ask(
            "SELECT count(*) FROM block_content WHERE table_name = 'loss'"), 1)
        self.expect_intact()

    def test_after_an_exit(self):
        self.write("exit")
        self.assertEqual(self.ask("SELECT ended FROM run"), "exit")
        self.expect_intact()

    def test_what_was_added_between_runs_is_covered(self):
        self.write("kill", status=-signal.SIGKILL)
        file, = pathlib.Path(f"{self.path}.rings").iterdir()
        file.write_bytes(b"no rings at all")
        events = self.ask("SELECT max(sequence) FROM control_event")
        self.write("idle", "0")
        self.assertEqual(self.ask("SELECT max(sequence) FROM control_event"),
                         events)
        self.assertEqual(self.ask("SELECT count(*) FROM fault"), 1)
        self.assertEqual(self.ask(
            "SELECT last_row FROM block_content WHERE table_name = 'fault'"),
            1)
        self.expect_intact()

    def test_only_an_anchor_shows_a_cut_that_leaves_no_trace(self):
        self.write()
        early = self.expect_intact()
        block = self.ask("SELECT max(block) FROM block")
        self.write()
        late = self.expect_intact()
        self.change(CUT_TAIL.format(block=block, calls="call_000001") + f"""
            UPDATE meta SET value = {block} WHERE name = 'blocks'""")
        self.assertEqual(self.expect_intact(), early)
        self.assertEqual(self.verify("--anchor", early)[1], 0)
        self.assertEqual(self.verify("--anchor", late),
                         ([f"anchor is in no block: {late}"], 1))

    def test_what_a_rule_has_deleted(self):
        """Is told from what was deleted by hand."""
        self.write("limited", "4000")
        for table in "call_%", "control_event":
            self.assertGreater(self.ask(
                "SELECT count(*) FROM purge "
                f"WHERE table_name LIKE '{table}'"), 1)
        self.expect_intact()
        self.change("DELETE FROM control_event WHERE sequence = "
                    "(SELECT min(sequence) FROM control_event)")
        block = self.ask(
            "SELECT min(block) FROM block_content WHERE last_row > "
            "(SELECT max(last_sequence) FROM purge "
            "WHERE table_name = 'control_event') "
            "AND table_name = 'control_event'")
        self.expect(f"rows of block {block} are missing: control events")
        self.change("DELETE FROM purge WHERE table_name = 'control_event' "
                    "AND purge = (SELECT min(purge) FROM purge "
                    "WHERE table_name = 'control_event')")
        self.assertIn("rows of block 1 are missing: control events",
                      self.verify()[0][0])

    def test_without_libcrypto(self):
        empty = false_library(self.folder / "none")
        evidence = "SELECT value FROM health WHERE name = 'tamper evidence'"
        self.write(environment=empty)
        self.assertEqual(self.ask(evidence), "off: no libcrypto")
        self.assertEqual(self.ask("SELECT count(*) FROM block"), 0)
        self.assertIn("events after block 0 are in no block",
                      self.verify()[0])
        self.write("kill", status=-signal.SIGKILL)
        self.assertEqual(self.ask(evidence), "on")
        self.assertIn("events before block 1 are in no block",
                      self.verify()[0])
        subprocess.run([COMMAND, "recover", self.path], env=empty, check=True,
                       capture_output=True)
        self.assertEqual(self.ask(evidence), "off: no libcrypto")
        result = subprocess.run([COMMAND, "verify", self.path], env=empty,
                                capture_output=True, text=True)
        self.assertEqual(
            (result.returncode, result.stderr),
            (3, "cbr: libcrypto is needed, and cannot be loaded\n"))

    def test_libcrypto_fails(self):
        self.write(environment=false_library(self.folder / "bad", "-DFAILS"))
        self.assertEqual(self.ask(
            "SELECT value FROM health WHERE name = 'tamper evidence'"),
            "off: libcrypto failed")
        self.assertEqual(self.ask("SELECT count(*) FROM call"), 30)
        lines = self.verify()[0]
        self.assertIn("content of block 1 differs: control events", lines)
        self.assertRegex(lines[-1] + lines[-2] + lines[-3], "in no block")
        self.assertNotIn("tail is cut", "".join(lines))


class ChangedByHand(Case):
    """Each is noticed, and told from the others."""

    @classmethod
    def setUpClass(cls):
        """A history of three runs: with rows of each kind, and with a segment
        of calls that was deleted by rule."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.original = f"{folder.name}/history"

        def write():
            subprocess.run([writer, cls.original], check=True)

        def execute(sql):
            subprocess.run(["sqlite3", "-bail", cls.original, sql],
                           check=True)

        write()
        segment, = subprocess.run(
            ["sqlite3", cls.original, "SELECT replace(sql, 'call_000001', "
             "'call_000002') FROM sqlite_schema WHERE name = 'call_000001'"],
            check=True, capture_output=True, text=True).stdout.split("\n\n")
        execute(segment + """;
            INSERT INTO segment (segment, table_name) VALUES (2, 'call_000002');
            DROP VIEW call;
            CREATE VIEW call AS SELECT * FROM call_000002;
            INSERT INTO loss (run, events, cause, first_time_ns, last_time_ns)
            VALUES (1, 5, 1, 1, 2), (1, 6, 1, 3, 4);
            INSERT INTO fault (run, cause, sqlite_code, began_time_ns,
              ended_time_ns, failures, lost) VALUES (1, 'full', 13, 1, 2, 3, 0)
            """)
        write()
        execute("""
            INSERT INTO purge (run, time_ns, rule, table_name, rows,
              first_sequence, last_sequence)
            SELECT 1, 9, 'a rule', table_name, rows, first_sequence,
              last_sequence FROM segment WHERE segment = 1;
            DROP TABLE call_000001;
            DELETE FROM segment WHERE segment = 1""")
        write()

    def setUp(self):
        super().setUp()
        shutil.copy(self.original, self.path)
        self.last = self.ask("SELECT max(block) FROM block")

    def block_of(self, table, row):
        return self.ask(
            f"SELECT block FROM block_content WHERE table_name = '{table}' "
            f"AND {row} BETWEEN first_row AND last_row")

    def row_of(self, table):
        """A row in the middle of a table."""
        return self.ask(f"SELECT rowid FROM {table} ORDER BY rowid "
                        f"LIMIT 1 OFFSET (SELECT count(*) / 2 FROM {table})")

    def test_nothing(self):
        self.expect_intact()
        self.assertEqual(json.loads(subprocess.run(
            [COMMAND, "verify", "--json", self.path], capture_output=True,
            text=True).stdout)["problems"], [])

    # How a row of each table is changed, and what its rows are called.
    TABLES = {
        "call_000002": ("argument = argument + 1", "calls"),
        "control_event": ("time_ns = time_ns - 1", "control events"),
        "note": ("text = 'another'", "notes"),
        "loss": ("ring = 0", "losses"),
        "fault": ("cause = 'fuller'", "faults"),
        "purge": ("rows = rows + 1", "purges"),
        "callback": ("label = 'another'", "callbacks"),
        "site": ("line = line + 1", "sites"),
    }

    def test_a_changed_row(self):
        for table, (change, rows) in self.TABLES.items():
            with self.subTest(table):
                shutil.copy(self.original, self.path)
                row = self.row_of(table)
                block = self.block_of(table, row)
                self.change(f"UPDATE {table} SET {change} WHERE rowid = {row}")
                self.expect(f"content of block {block} differs: {rows}")

    def test_each_column_of_a_call(self):
        row = self.row_of("call_000002")
        block = self.block_of("call_000002", row)
        for change in ("time_ns = 1", "ring = ring + 1", "kind = 2",
                       "token = -token", "callback = callback + 1",
                       "argument = argument + 1",
                       "ring = ring - 1, callback = callback + 4294967296"):
            with self.subTest(change):
                shutil.copy(self.original, self.path)
                self.change(
                    f"UPDATE call_000002 SET {change} WHERE sequence = {row}")
                self.expect(f"content of block {block} differs: calls")

    def test_a_changed_row_of_two_blocks(self):
        self.change("UPDATE control_event SET value = 77")
        blocks = self.ask("SELECT count(*) FROM block_content "
                          "WHERE table_name = 'control_event'")
        self.expect("content of block 1 differs: control events "
                    f"(the first of {blocks})")

    def test_a_row_less(self):
        for table, (_, rows) in self.TABLES.items():
            if table == "purge":
                continue
            with self.subTest(table):
                shutil.copy(self.original, self.path)
                row = self.row_of(table)
                block = self.block_of(table, row)
                self.change(f"DELETE FROM {table} WHERE rowid = {row}")
                self.expect(f"rows of block {block} are missing: {rows}")

    def test_a_row_more(self):
        event = self.row_of("control_event")
        self.change("INSERT INTO call_000002 "
                    f"VALUES ({event}, 1, 1, 1, 1, 1, 1)")
        lines, status = self.verify()
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"^rows beside those of block \d+ are "
                         r"there: calls$|^rows are in no block: calls$")
        shutil.copy(self.original, self.path)
        self.change("INSERT INTO note VALUES (-5, 1, 'forged')")
        self.expect("rows are in no block: notes")
        shutil.copy(self.original, self.path)
        self.change("INSERT INTO note VALUES (99999, 1, 'forged')")
        self.expect("rows are in no block: notes")

    def test_a_removed_purge(self):
        block = self.block_of("purge", 1)
        self.change("DELETE FROM purge")
        lines = self.verify()[0]
        self.assertIn(f"rows of block {block} are missing: purges", lines)
        self.assertTrue(
            lines[0].startswith("table of block 1 is missing: calls"), lines)
        self.assertEqual(len(lines), 2)

    def test_calls_that_no_rule_has_deleted(self):
        self.change("DELETE FROM call_000002; DROP TABLE call_000002; "
                    "DROP VIEW call")
        lines = self.verify()[0]
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"^table of block \d+ is missing: calls")

    def test_calls_that_a_new_purge_excuses(self):
        """Only an anchor of the time before tells it from a rule."""
        self.change("""
            INSERT INTO purge (run, time_ns, rule, table_name, rows,
              first_sequence, last_sequence)
            SELECT 1, 9, 'no rule', table_name, rows, first_sequence,
              last_sequence FROM segment WHERE segment = 2;
            DROP VIEW call; DROP TABLE call_000002""")
        lines, _ = self.verify()
        self.assertEqual(lines[1:], ["in no block yet: 1 deletions by rule"])

    def test_a_purge_does_not_excuse_rows_that_are_there(self):
        row = self.row_of("call_000002")
        block = self.block_of("call_000002", row)
        self.change(f"""
            INSERT INTO purge (run, time_ns, rule, table_name, rows,
              first_sequence, last_sequence)
            VALUES (1, 9, 'no rule', 'call_000002', 9, 0, 999999);
            UPDATE call_000002 SET token = 5 WHERE rowid = {row}""")
        self.expect(f"content of block {block} differs: calls",
                    "in no block yet: 1 deletions by rule")

    def test_a_changed_block(self):
        for table, column in (("block", "run"), ("block", "last_sequence"),
                              ("block_content", "rows"),
                              ("block_content", "last_row")):
            with self.subTest(f"{table}.{column}"):
                shutil.copy(self.original, self.path)
                self.change(f"UPDATE {table} SET {column} = {column} + 1 "
                            "WHERE block = 2")
                self.assertIn("root of block 2 differs", self.verify()[0])

    def test_a_changed_root(self):
        self.change("UPDATE block SET root = zeroblob(32) WHERE block = 2")
        self.expect("root of block 2 differs",
                    "block 3 does not follow the one before")

    def test_a_name_that_would_be_a_command(self):
        harm = self.folder / "harm"
        name = f"call_1 WHERE writefile('{harm}', 1) --"
        self.change(f"""
            CREATE TABLE "{name}" (kind, ring, callback, sequence, time_ns,
              token, argument);
            INSERT INTO "{name}" VALUES (1, 1, 1, 1, 1, 1, 1);
            INSERT INTO block_content VALUES ("{name}", 2, 1, 1, 1,
              zeroblob(32))""")
        self.expect("root of block 2 differs",
                    "table of block 2 is missing: unknown rows")
        self.assertFalse(harm.exists())

    def test_a_block_less(self):
        self.change("DELETE FROM block WHERE block = 2")
        lines = self.verify()[0]
        self.assertIn("block 2 is missing, its content is there", lines)
        self.assertIn("blocks before block 3 are missing", lines)
        self.assertIn("block 3 does not follow the one before", lines)

    def test_the_head_is_cut(self):
        self.change("""
            DELETE FROM block WHERE block < 3;
            DELETE FROM block_content WHERE block < 3;
            DELETE FROM control_event WHERE sequence <
              (SELECT min(first_sequence) FROM block);
            DELETE FROM note WHERE sequence <
              (SELECT min(first_sequence) FROM block)""")
        self.expect("head is cut: block 3 is the first")

    def test_the_head_is_cut_by_rule(self):
        self.change("""
            DELETE FROM block WHERE block < 3;
            DELETE FROM block_content WHERE block < 3;
            INSERT INTO purge (run, time_ns, rule, table_name, rows,
              first_sequence, last_sequence)
            VALUES (1, 9, 'a rule', 'block', 2, 1, 2)""")
        self.write()
        self.expect_intact()

    def test_the_tail_is_cut(self):
        self.change(CUT_TAIL.format(
            block=self.last - 2, calls="call_000002"))
        self.expect(f"tail is cut: block {self.last - 2} is the last of "
                    f"{self.last}")

    def test_the_last_events_are_cut(self):
        self.change("DELETE FROM block WHERE block > 2; "
                    "DELETE FROM block_content WHERE block > 2; "
                    "UPDATE meta SET value = 2 WHERE name = 'blocks'")
        self.assertIn("events after block 2 are in no block",
                      self.verify()[0])

    def test_a_cut_that_the_program_has_written_after(self):
        self.change("""
            DELETE FROM block WHERE block = (SELECT max(block) FROM block);
            DELETE FROM block_content WHERE block >
              (SELECT max(block) FROM block)""")
        self.write()
        self.assertIn(f"blocks before block {self.last + 1} are missing",
                      self.verify()[0])

    def test_each_byte_of_a_call(self):
        """J61: a byte of a row is turned over in the file."""
        database = sqlite3.connect(self.path)
        size, = database.execute("PRAGMA page_size").fetchone()
        root, token = database.execute(
            "SELECT rootpage, (SELECT token FROM call_000002) "
            "FROM sqlite_schema WHERE name = 'call_000002'").fetchone()
        database.close()
        original = self.path.read_bytes()
        page = original.index(token.to_bytes(8, "big", signed=True),
                              (root - 1) * size)
        self.assertLess(page, root * size)
        for offset in range(page, page + 8):
            data = bytearray(original)
            data[offset] ^= 1
            self.path.write_bytes(data)
            lines, status = self.verify()
            self.assertEqual(status, 1)
            self.assertRegex(lines[0], r"^content of block \d+ differs: calls$")

    def test_usage_and_what_is_no_history(self):
        other = self.folder / "other"
        subprocess.run(["sqlite3", other, "CREATE TABLE t (x)"], check=True)
        for words, status in ((["verify"], 2), (["verify", other], 3),
                              (["verify", self.folder / "none"], 3),
                              (["verify", self.path, "--anchor"], 2)):
            self.assertEqual(
                subprocess.run([COMMAND, *words], capture_output=True)
                .returncode, status)

    def test_the_database_itself_refuses_changes(self):
        database = sqlite3.connect(self.path)
        self.addCleanup(database.close)
        for table in "block", "block_content":
            for sql in (f"UPDATE {table} SET block = 9",
                        f"DELETE FROM {table}"):
                with self.assertRaisesRegex(sqlite3.IntegrityError, "blocks"):
                    database.execute(sql)


if __name__ == "__main__":
    counting.run()

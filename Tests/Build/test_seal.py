#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sealing: what `cbr verify --seal` says about histories whose blocks were
sealed, and about what somebody did to them who has the machine, and with it the
present key."""

import contextlib
import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import time
import unittest

import counting
import test_verify
from test_verify import (
    COMMAND, CUT_TAIL, compile_c, false_library, setUpModule)

LAYOUT = "=8sQQ32sQ"
NOTES = "SELECT sequence, token, text FROM note WHERE 1 " \
    "AND rowid BETWEEN {} AND {} ORDER BY rowid"

# Stands before the overwriting of a key: lets it fail, or kills the process at
# the one whose number is in DIES_AT.
OVERWRITING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  static int times;
  ssize_t (*write)(int, const void *, size_t, off_t);
  *(void **)&write = dlsym(RTLD_NEXT, "pwrite");
  if (count != 64 || memcmp(bytes, "CBR-SEAL", 8) != 0)
    return write(file, bytes, count, offset);
  const char *last = getenv("DIES_AT");
  errno = EIO;
  if (!last) return -1;
  if (++times == atoi(last)) kill(getpid(), SIGKILL);
  return write(file, bytes, count, offset);
}
"""


def sha3(*parts):
    return hashlib.sha3_256(b"".join(parts)).digest()


def ratchet(key, times):
    for _ in range(times):
        key = sha3(b"ratchet", key)
    return key


def content(query, rows):
    """What SQLite's sha3_query makes of rows."""
    def column(value):
        if isinstance(value, int):
            return b"I" + struct.pack(">q", value)
        return b"T%d:%s" % (len(value.encode()), value.encode())
    return sha3(b"S%d:%s" % (len(query), query.encode()),
                *(b"R" + b"".join(map(column, row)) for row in rows))


class Case(test_verify.Case):
    def setUp(self):
        super().setUp()
        self.seal_path = self.folder / "history.seal"

    def begin(self):
        """Writes some blocks, and has those to come sealed."""
        self.write()
        self.expect_intact()
        self.key = self.seal()
        self.first = int(self.key.split(":")[0])

    def seal(self):
        return subprocess.run(
            [COMMAND, "seal", self.path], check=True, capture_output=True,
            text=True).stdout.strip()

    def key_of(self, block):
        first, key = self.key.split(":")
        return ratchet(bytes.fromhex(key), block - int(first))

    def file(self):
        """The block and the key in the seal's file."""
        _, _, block, key, _ = struct.unpack(
            LAYOUT, self.seal_path.read_bytes())
        return block, key

    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            return database.execute(sql).fetchall()

    def last(self):
        return self.ask("SELECT max(block) FROM block")

    def faults(self):
        return [cause for cause, in self.rows("SELECT cause FROM fault")]

    def verify_seals(self, key=None, path=None):
        result = subprocess.run(
            [COMMAND, "verify", "--seal", key or self.key, path or self.path],
            capture_output=True, text=True)
        self.assertEqual(result.stderr, "")
        return result.stdout.splitlines(), result.returncode

    def expect_sealed(self):
        """Every block from the first sealed one on has its seal."""
        self.expect_intact()
        blocks = self.last() - self.first + 1
        lines, status = self.verify_seals()
        self.assertEqual(
            (lines[1:], status),
            ([f"sealed: {blocks} blocks, from block {self.first} on"], 0))
        self.assertTrue(lines[0].startswith("intact: "))

    def expect_faults(self, *expected):
        """The seals alone tell it: without them the history is intact."""
        self.expect_intact()
        lines, status = self.verify_seals()
        self.assertEqual((lines[:-1], status), (list(expected), 1))

    @contextlib.contextmanager
    def stepping(self, steps):
        """A program that goes on when it is told to."""
        with subprocess.Popen(
                [test_verify.writer, self.path, "step", str(steps)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as process:
            yield process
            process.communicate()
            self.assertEqual(process.returncode, 0)

    def step(self, process):
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "done\n")


class Sealed(Case):
    def test_from_the_next_block_on(self):
        self.begin()
        self.assertEqual(self.first, self.last() + 1)
        self.assertEqual(self.file(), (self.first, self.key_of(self.first)))
        self.assertEqual(
            stat.S_IMODE(self.seal_path.stat().st_mode), 0o600)
        self.write()
        self.write()
        for block, root, seal in self.rows(
                "SELECT block, root, seal FROM block"):
            self.assertEqual(
                seal, None if block < self.first
                else sha3(b"seal", self.key_of(block), root), block)
        after = self.last() + 1
        self.assertGreater(after, self.first + 4)
        self.assertEqual(self.file(), (after, self.key_of(after)))
        self.expect_sealed()
        self.assertEqual(self.faults(), [])
        self.assertEqual(json.loads(subprocess.run(
            [COMMAND, "verify", "--json", "--seal", self.key.upper(),
             self.path], check=True, capture_output=True).stdout)["sealed"],
            after - self.first)

    def test_a_copy(self):
        self.begin()
        self.write()
        copy = self.folder / "copy"
        subprocess.run([COMMAND, "snapshot", self.path, copy], check=True,
                       capture_output=True)
        self.assertEqual(self.verify_seals(path=copy), self.verify_seals())
        self.assertEqual(self.verify_seals(path=copy)[1], 0)

    def test_a_seal_that_is_there_is_left(self):
        self.begin()
        before = self.seal_path.read_bytes()
        result = subprocess.run([COMMAND, "seal", self.path],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("history.seal exists and was left as it is",
                      result.stderr)
        self.assertEqual(self.seal_path.read_bytes(), before)
        self.seal_path.unlink()
        self.seal_path.symlink_to(self.folder / "elsewhere")
        self.assertEqual(subprocess.run(
            [COMMAND, "seal", self.path], capture_output=True).returncode, 3)
        self.assertFalse((self.folder / "elsewhere").exists())

    @unittest.skipIf(os.geteuid() != 0, "only root gives files away")
    def test_belongs_to_whom_the_history_does(self):
        self.write()
        os.chown(self.path, 65534, 65534)
        self.seal()
        found = self.seal_path.stat()
        self.assertEqual((found.st_uid, found.st_gid), (65534, 65534))

    def test_a_history_without_a_number_of_blocks(self):
        self.write()
        for change in ("DELETE FROM meta WHERE name = 'blocks'",
                       "INSERT INTO meta VALUES ('blocks', (1 << 63) - 1)",
                       "UPDATE meta SET value = ~(1 << 63) "
                       "WHERE name = 'blocks'"):
            self.change(change)
            result = subprocess.run([COMMAND, "seal", self.path],
                                    capture_output=True, text=True)
            self.assertEqual(
                (result.returncode, result.stderr),
                (3, f"cbr: history {self.path}: it has no number of blocks\n"))
        self.assertFalse(self.seal_path.exists())

    def test_what_is_asked_for_wrongly(self):
        self.begin()
        for key in "1", self.key + "0", self.key[:-1] + "g", f"-{self.key}", \
                "0:" + "0" * 64:
            result = subprocess.run(
                [COMMAND, "verify", "--seal", key, self.path],
                capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            self.assertIn("no key of a seal", result.stderr)
        for words, status in (["seal"], 2), (["seal", "nowhere"], 3), (
                ["seal", __file__], 3):
            self.assertEqual(subprocess.run(
                [COMMAND, *words], capture_output=True).returncode, status)

    def test_as_json(self):
        self.write()
        told = json.loads(subprocess.run(
            [COMMAND, "seal", "--json", self.path], check=True,
            capture_output=True).stdout)
        self.key, self.first = told["key"], told["block"]
        self.assertTrue(self.key.startswith(f"{self.first}:"))
        self.write()
        self.expect_sealed()

    def test_without_libcrypto(self):
        self.write()
        result = subprocess.run(
            [COMMAND, "seal", self.path], capture_output=True, text=True,
            env=false_library(self.folder / "none"))
        self.assertEqual(
            (result.returncode, result.stderr),
            (3, "cbr: libcrypto is needed, and cannot be loaded\n"))
        self.assertFalse(self.seal_path.exists())

    def test_while_a_program_runs(self):
        with self.stepping(6) as process:
            for _ in range(3):
                self.step(process)
            self.key = self.seal()
            self.first = int(self.key.split(":")[0])
            self.assertGreater(self.first, 3)
            for _ in range(3):
                self.step(process)
            # The program may write another block between two looks.
            lines, status = self.verify_seals()
            self.assertEqual((len(lines), status), (2, 0), lines)
            self.assertTrue(lines[0].startswith("intact: "))
            self.assertRegex(
                lines[1],
                rf"^sealed: \d+ blocks, from block {self.first} on$")
        self.expect_sealed()

    def test_two_processes_in_turns(self):
        self.begin()
        with self.stepping(5) as one, self.stepping(5) as other:
            for _ in range(5):
                self.step(one)
                self.step(other)
        self.assertGreaterEqual(
            self.ask("SELECT count(*) FROM block b JOIN block n "
                     "ON n.block = b.block + 1 WHERE n.run <> b.run "
                     f"AND b.block >= {self.first}"), 9)
        self.expect_sealed()

    def test_two_processes_at_once(self):
        self.begin()
        both = [subprocess.Popen(
            [test_verify.writer, self.path, "close", "200"])
            for _ in range(2)]
        for each in both:
            self.assertEqual(each.wait(), 0)
        self.expect_sealed()
        self.assertEqual(self.faults(), [])

    def test_killed_and_begun_again(self):
        """J59, fifty times."""
        self.begin()
        chance = random.Random(59)
        for _ in range(50):
            with subprocess.Popen(
                    [test_verify.writer, self.path, "busy"],
                    stdin=subprocess.PIPE) as process:
                before = self.last()
                while self.last() <= before + 1:
                    self.assertIsNone(process.poll())
                time.sleep(chance.random() / 50)
                process.kill()
            self.assertEqual(process.returncode, -signal.SIGKILL)
            lines, status = self.verify_seals()
            self.assertEqual(status, 0, lines)
        subprocess.run([COMMAND, "recover", self.path], check=True,
                       capture_output=True)
        self.expect_sealed()
        self.assertEqual(self.ask(
            "SELECT count(*) FROM run WHERE ended = 'crash'"), 50)
        self.assertEqual(self.faults(), [])

    def test_what_a_recovery_adds(self):
        self.begin()
        self.write("kill", status=-signal.SIGKILL)
        before = self.last()
        subprocess.run([COMMAND, "recover", self.path], check=True,
                       capture_output=True)
        self.assertGreater(self.last(), before)
        self.assertEqual(self.file()[0], self.last() + 1)
        self.expect_sealed()

    def test_the_last_block_of_a_recovery(self):
        self.begin()
        with subprocess.Popen(
                [test_verify.writer, self.path, "flood"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            database = sqlite3.connect(self.path, isolation_level=None)
            database.execute("BEGIN IMMEDIATE")
            process.stdin.write(b"\n")
            process.stdin.close()
            self.assertEqual(process.wait(), -signal.SIGKILL)
            database.close()
        subprocess.run([COMMAND, "recover", self.path], check=True,
                       capture_output=True)
        self.assertEqual(self.ask(
            "SELECT block FROM block_content WHERE table_name = 'loss'"),
            self.last())
        self.assertEqual(self.file()[0], self.last() + 1)
        self.expect_sealed()

    def test_a_block_without_a_batch(self):
        self.begin()
        self.write("kill", status=-signal.SIGKILL)
        rings, = (self.folder / "history.rings").iterdir()
        rings.write_bytes(b"no rings at all")
        before = self.last()
        self.write("idle", "0")
        self.assertEqual(self.last(), before + 1)
        self.assertEqual(self.file()[0], self.last() + 1)
        self.expect_sealed()

    def test_blocks_that_a_rule_has_deleted(self):
        self.begin()
        self.write("crowded", "5000")
        self.assertGreaterEqual(self.ask(
            "SELECT sum(rows) FROM purge WHERE table_name = 'block'"), 900)
        self.expect_intact()
        blocks = self.ask("SELECT count(*) FROM block "
                          f"WHERE block >= {self.first}")
        lines, status = self.verify_seals()
        self.assertEqual(status, 0, lines)
        self.assertEqual(
            lines[1], f"sealed: {blocks} blocks, from block {self.first} on")


class TheFile(Case):
    """Nothing that is wrong with it stops the program."""

    def write_wrongly(self, cause):
        """Runs a program, whose blocks are not sealed; `fault` says so."""
        before = self.last()
        calls = self.ask("SELECT count(*) FROM call")
        self.write()
        self.assertEqual(self.ask("SELECT count(*) FROM call"), calls + 30)
        self.assertEqual(len(self.faults()), 1, self.faults())
        self.assertIn(cause, self.faults()[0])
        blocks = self.last() - before
        self.expect_faults(
            f"block {before + 1} is not sealed (the first of {blocks})")

    def test_lags_behind(self):
        """As after a kill between the commit and the overwriting."""
        self.begin()
        before = self.seal_path.read_bytes()
        self.write()
        self.seal_path.write_bytes(before)
        self.write()
        self.expect_sealed()
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.file()[0], self.last() + 1)

    def overwriting(self, **settings):
        """An environment in which a key is not overwritten."""
        library = self.folder / "overwriting.so"
        compile_c(OVERWRITING, "-shared", "-fPIC", "-o", library)
        return {**os.environ, "LD_PRELOAD": str(library), **settings}

    def test_killed_before_the_key_is_overwritten(self):
        self.begin()
        for time_ in range(1, 9):
            before = self.last()
            self.write(
                "close", "9", status=-signal.SIGKILL,
                environment=self.overwriting(DIES_AT=str(time_)))
            self.assertEqual(self.file()[0], self.last())
            self.assertGreaterEqual(self.last(), before + time_)
            lines, status = self.verify_seals()
            self.assertEqual(status, 0, lines)
        self.write()
        self.expect_sealed()
        self.assertEqual(self.faults(), [])

    def test_cannot_be_overwritten(self):
        """Blocks are sealed, and it is told that old keys are there."""
        self.begin()
        self.write(environment=self.overwriting())
        self.assertEqual(self.file()[0], self.first)
        self.expect_sealed()
        self.assertEqual(
            self.faults(), ["a key of the seal could not be overwritten"])
        self.write()
        self.assertEqual(self.file()[0], self.last() + 1)
        self.expect_sealed()
        self.assertEqual(len(self.faults()), 1)

    def test_damaged(self):
        self.begin()
        self.write()
        shutil.copy(self.path, self.folder / "before")
        whole = self.seal_path.read_bytes()
        damages = [whole[:place] + bytes([whole[place] ^ 16])
                   + whole[place + 1:] for place in range(0, 60, 5)]
        for damaged in *damages, b"", whole[:-1], whole + b"\0":
            with self.subTest(damaged):
                shutil.copy(self.folder / "before", self.path)
                self.seal_path.write_bytes(damaged)
                self.write_wrongly("cannot be read")
                self.assertEqual(self.seal_path.read_bytes(), damaged)

    def test_mended(self):
        self.begin()
        self.write()
        whole = self.seal_path.read_bytes()
        self.seal_path.write_bytes(whole[1:])
        with self.stepping(4) as process:
            self.step(process)
            self.step(process)
            between = self.last()
            self.seal_path.write_bytes(whole)
            self.step(process)
            self.step(process)
        self.assertEqual(len(self.faults()), 1)
        first, = self.rows("SELECT min(block), count(*) FROM block WHERE seal "
                           f"IS NULL AND block >= {self.first}")
        self.assertEqual(first[0] + first[1] - 1, between)
        self.expect_faults(
            f"block {first[0]} is not sealed (the first of {first[1]})")

    def test_far_behind(self):
        """No program computes for ever what is not worth it."""
        self.begin()
        self.change("UPDATE meta SET value = value + 1000000 "
                    "WHERE name = 'blocks'")
        began = time.monotonic()
        self.write()
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(len(self.faults()), 1)
        self.assertIn("far behind", self.faults()[0])

    def test_removed(self):
        self.begin()
        self.write()
        self.seal_path.unlink()
        self.write_wrongly("is gone")
        self.write()
        self.assertEqual(len(self.faults()), 1)
        self.assertFalse(self.seal_path.exists())

    def test_read_only(self):
        self.begin()
        self.write()
        self.seal_path.chmod(0o400)
        library = ctypes.CDLL(None)
        before = self.last()
        # Root without the right to write what it may not: PR_CAPBSET_DROP,
        # CAP_DAC_OVERRIDE.
        subprocess.run(
            [test_verify.writer, self.path], check=True,
            preexec_fn=lambda: library.prctl(24, 1, 0, 0, 0))
        self.assertEqual(len(self.faults()), 1)
        self.assertIn("cannot be read and written", self.faults()[0])
        self.expect_faults(f"block {before + 1} is not sealed "
                           f"(the first of {self.last() - before})")

    def test_no_file_at_all(self):
        self.begin()
        self.write()
        shutil.copy(self.path, self.folder / "before")
        self.seal_path.rename(self.folder / "elsewhere")
        for make in (self.seal_path.mkdir,
                     lambda: os.mkfifo(self.seal_path),
                     lambda: self.seal_path.symlink_to("elsewhere")):
            shutil.copy(self.folder / "before", self.path)
            make()
            self.write_wrongly("cannot be read")
            if self.seal_path.is_symlink() or self.seal_path.is_fifo():
                self.seal_path.unlink()
            else:
                self.seal_path.rmdir()

    def test_ahead(self):
        """As where power was lost: blocks are gone, and their keys too."""
        self.begin()
        self.write()
        shutil.copy(self.path, self.folder / "before")
        self.write()
        self.write()
        ahead = self.file()[0]
        shutil.copy(self.folder / "before", self.path)
        first = self.last() + 1
        self.write()
        self.assertEqual(len(self.faults()), 1)
        self.assertIn("ahead", self.faults()[0])
        self.assertLess(self.last(), ahead)
        while self.last() <= ahead:
            self.write()
        self.assertEqual(len(self.faults()), 1)
        self.assertEqual(self.file()[0], self.last() + 1)
        self.expect_faults(
            f"block {first} is not sealed (the first of {ahead - first})")
        self.assertEqual(
            self.ask("SELECT min(block) FROM block "
                     f"WHERE block > {first} AND seal IS NOT NULL"), ahead)

    def test_of_another_database(self):
        """The seal belongs to the name; the numbers do not fit."""
        self.begin()
        with self.stepping(6) as process:
            for _ in range(3):
                self.step(process)
            self.path.rename(self.folder / "former")
            for _ in range(3):
                self.step(process)
        self.assertEqual(
            self.ask("SELECT count(*) FROM block WHERE seal IS NOT NULL "
                     f"AND block < {self.first}"), 0)
        causes = self.faults()
        self.assertEqual(len(causes), 2, causes)
        self.assertIn("removed while it was open", "".join(causes))
        self.assertIn("the seal is ahead", "".join(causes))
        self.path.unlink()
        self.write("close", "1")
        lines, status = self.verify_seals()
        self.assertEqual(status, 1)
        self.assertIn(f"blocks before block {self.first} are missing", lines)


class Forged(Case):
    """By somebody who has the machine now, and the key that is there."""

    def setUp(self):
        super().setUp()
        self.begin()
        self.write()
        self.write()
        self.block, self.row, = self.rows(
            "SELECT block, first_row FROM block_content "
            f"WHERE table_name = 'note' AND block > {self.first} LIMIT 1")[0]

    def forge(self, key):
        """Changes a note, and makes the chain anew from there on, with seals
        by the key that is that of a block."""
        self.change(f"UPDATE note SET text = 'forged' "
                    f"WHERE sequence = {self.row}")
        database = sqlite3.connect(self.path)
        first, last = database.execute(
            "SELECT first_row, last_row FROM block_content WHERE block = ? "
            "AND table_name = 'note'", (self.block,)).fetchone()
        query = NOTES.format(first, last)
        database.execute(
            "UPDATE block_content SET content = ? WHERE block = ? "
            "AND table_name = 'note'",
            (content(query, database.execute(query)), self.block))
        before, = database.execute("SELECT root FROM block WHERE block = ?",
                                   (self.block - 1,)).fetchone()
        for block, *numbers in database.execute(
                "SELECT block, run, first_sequence, last_sequence FROM block "
                "WHERE block >= ? ORDER BY block", (self.block,)).fetchall():
            text = ":".join([before.hex(), str(block), *map(str, numbers)])
            for part in database.execute(
                    "SELECT table_name, first_row, last_row, rows, "
                    "lower(hex(content)) FROM block_content WHERE block = ? "
                    "ORDER BY table_name", (block,)):
                text += ":" + ":".join(map(str, part))
            before = sha3(text.encode())
            database.execute(
                "UPDATE block SET previous_root = (SELECT root FROM block b "
                "WHERE b.block = block.block - 1), root = ?, seal = ? "
                "WHERE block = ?",
                (before, key and sha3(b"seal", key(block), before), block))
        database.commit()
        database.close()

    def count(self):
        return self.last() - self.block + 1

    def test_with_the_present_key(self):
        present = self.file()[1]
        self.forge(lambda block: present)
        self.expect_faults(f"seal of block {self.block} differs "
                           f"(the first of {self.count()})")

    def test_with_the_present_key_ratcheted(self):
        present = self.file()[1]
        self.forge(lambda block: ratchet(present, block - self.block))
        self.expect_faults(f"seal of block {self.block} differs "
                           f"(the first of {self.count()})")

    def test_without_seals(self):
        self.forge(None)
        self.expect_faults(f"block {self.block} is not sealed "
                           f"(the first of {self.count()})")

    def test_with_the_key_of_that_block(self):
        """What a seal does not prove: he had the machine by then."""
        self.forge(self.key_of)
        self.assertEqual(self.ask(
            "SELECT count(*) FROM note WHERE text = 'forged'"), 1)
        self.expect_sealed()

    def test_a_seal_less(self):
        self.change(f"UPDATE block SET seal = NULL WHERE block = {self.block}")
        self.expect_faults(f"block {self.block} is not sealed")

    def test_a_short_seal(self):
        self.change(f"UPDATE block SET seal = x'00' "
                    f"WHERE block = {self.block}")
        self.expect_faults(f"block {self.block} is not sealed")

    def test_another_blocks_seal(self):
        self.change("UPDATE block SET seal = (SELECT seal FROM block b WHERE "
                    "b.block = block.block + 1) "
                    f"WHERE block = {self.block}")
        self.expect_faults(f"seal of block {self.block} differs")

    def test_another_key(self):
        self.assertEqual(
            self.verify_seals(f"{self.first}:{'0' * 64}")[1], 1)
        # A later one tells of what is later.
        later = f"{self.block}:{self.key_of(self.block).hex()}"
        self.change(f"UPDATE block SET seal = NULL "
                    f"WHERE block = {self.block - 1}")
        self.assertEqual(self.verify_seals(later)[1], 0)
        self.assertEqual(self.verify_seals()[1], 1)

    def test_the_tail_cut_and_written_anew(self):
        """The present key is too late for the blocks in between."""
        self.change(CUT_TAIL.format(
            block=self.block, calls="call_000001") + f"""
            UPDATE meta SET value = {self.block} WHERE name = 'blocks'""")
        self.write()
        lines, status = self.verify_seals()
        self.assertEqual(status, 1)
        self.assertIn(f"block {self.block + 1} is not sealed "
                      f"(the first of {self.last() - self.block})", lines)

    def test_the_file_made_anew(self):
        self.seal_path.unlink()
        other = self.seal()
        block = self.last() + 1
        self.write()
        lines, status = self.verify_seals()
        self.assertEqual((lines[0], status), (
            f"seal of block {block} differs "
            f"(the first of {self.last() - block + 1})", 1))
        self.assertEqual(self.verify_seals(other)[1], 0)

    def test_only_an_anchor_shows_that_the_tail_is_gone(self):
        """What a seal does not prove either."""
        shutil.copy(self.path, self.folder / "before")
        shutil.copy(self.seal_path, self.folder / "before.seal")
        self.write()
        head = self.expect_intact()
        shutil.copy(self.folder / "before", self.path)
        shutil.copy(self.folder / "before.seal", self.seal_path)
        self.write()
        self.expect_sealed()
        self.assertEqual(self.verify("--anchor", head)[1], 1)

    def test_a_number_that_is_too_far(self):
        self.change("UPDATE block SET block = 1 << 60 "
                    f"WHERE block = {self.last()}")
        began = time.monotonic()
        lines, status = self.verify_seals()
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(status, 1)
        self.assertIn(f"block {1 << 60} is too far from that of the key",
                      lines)


if __name__ == "__main__":
    counting.run()

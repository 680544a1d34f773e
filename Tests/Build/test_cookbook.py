#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes every statement and command of Documentation/AuditCookbook.md and
Documentation/AuditSchema.md on a history that Tests/Build/incident.c has just
recorded, and compares what they say with what the documents show; compares the
tables and columns of AuditSchema.md with those of the history. Among them are
what leaks, with its origin, what lives, who was refused, and the life of a token
(I7).

    test_cookbook.py --record

writes what they say into the documents instead.

A block of SQL or of shell commands is followed by a block of text with its
output; by none where it has none. Before that, a comment says what may be
another value in another recording:

    <!-- varies: rows, large numbers -->

names of columns; numbers from 1000 on; or all numbers."""

import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
COOKBOOK = ROOT / "Documentation/AuditCookbook.md"
SCHEMA = ROOT / "Documentation/AuditSchema.md"
BLOCK = re.compile(
    r"```(?P<language>sql|sh)\n(?P<code>.*?)```\n"
    r"(?:\n(?P<comment><!-- varies: (?P<varies>[^>]*) -->\n)?"
    r"```text\n(?P<output>.*?)```\n)?", re.DOTALL)
TOKEN = re.compile(r"0x[0-9a-f]{16}\b")
HISTORY = "app.history"
TOO_SLOW = 75  # what the program says when it is to be tried again


def record(folder):
    """Makes the history that the documents ask."""
    environment = {
        **os.environ, "PKG_CONFIG_PATH": str(ROOT / "build/lib/pkgconfig")}
    subprocess.run(
        ["bash", "-euc", "cc -Wall -Wextra -Werror incident.c -pthread "
         "$(pkg-config --cflags --libs callbackregistry) "
         f"-o {folder}/incident"],
        check=True, cwd=ROOT / "Tests/Build", env=environment)
    for _ in range(100):
        status = subprocess.run(["./incident", HISTORY], cwd=folder).returncode
        if status != TOO_SLOW:
            break
        subprocess.run(f"rm -rf {HISTORY}*", shell=True, cwd=folder)
    assert status == 0, status


def query(sql, *values):
    return history.execute(sql, values).fetchall()


def setUpModule():
    """Records the history and opens it."""
    global folder, history, token
    directory = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(directory.cleanup)
    folder = directory.name
    record(folder)
    history = sqlite3.connect(f"{folder}/{HISTORY}")
    unittest.addModuleCleanup(history.close)
    # The one that the documents ask about.
    (token,), = query("SELECT token FROM token_life "
                      "WHERE label = 'frame' AND ended_reason = 'cancelled'")


def execute(language, code):
    """Returns what a block of code says."""
    code = TOKEN.sub(token, code)
    if language == "sql":
        command = ["sqlite3", "-readonly", "-bail", "-box", HISTORY]
    else:
        code = code.replace("/usr/local/share/callbackregistry",
                            str(ROOT / "packaging"))
        command = ["bash", "-eu"]
    path = f"{ROOT}/build/bin:{os.environ['PATH']}"
    return subprocess.run(
        command, input=code, text=True, cwd=folder, check=True, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": path}).stdout


REPLACED = [
    (re.compile(pattern), text) for pattern, text in (
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"(?<![\w.])/[^\s│|,\"]*", "PATH"),
        (r"\b([a-z]+)#\d+", r"\1#"),
        (r"\d+(?:\.\d+)? [mun]?s\b", "DURATION"),
        (r"\(process \d+\)", "(process N)"))]
OF_THE_MACHINE = {"pid", "host", "boot", "library_version", "sqlite_version",
                  "clock"}


class Normal:
    """Replaces what differs between two recordings, in one output."""

    def __init__(self, varies):
        self.varies = {word.strip() for word in (varies or "").split(",")}
        self.tokens = {}

    def text(self, text):
        text = TOKEN.sub(lambda match: "TOKEN%d" % self.tokens.setdefault(
            match[0], len(self.tokens) + 1), text)
        for pattern, replacement in REPLACED:
            text = pattern.sub(replacement, text)
        least = (1 if "numbers" in self.varies
                 else 4 if "large numbers" in self.varies else 99)
        return re.sub(rf"(?<![\w.]){{1}}\d{{{least},}}\b", "N", text)

    def cell(self, column, text):
        if column in self.varies | OF_THE_MACHINE:
            return "*" if text else ""
        if column.endswith("_ns"):
            return re.sub(r"^-?\d+$", "N", text)
        return self.text(text)

    def output(self, text):
        """Returns the rows of boxes, and the lines of what is none."""
        rows, columns = [], None
        for line in text.splitlines():
            if line.startswith("│"):
                row = [cell.strip() for cell in line.strip("│").split("│")]
                if columns:
                    row = [self.cell(*pair)
                           for pair in zip(columns, row, strict=True)]
                columns = columns or row
                rows.append(row)
            elif line.startswith("┌"):
                columns = None
                rows.append("box")
            elif not line.startswith(("├", "└")):
                rows.append(self.text(line))
        return rows


def sections(path):
    return re.split(r"^## ", path.read_text(), flags=re.M)[1:]


def tables_of(section):
    """Returns the columns that a section documents, table by table."""
    found, name = {}, None
    for line in section.splitlines():
        if match := re.fullmatch(r"### `(\w+)`", line):
            name = match[1]
            found[name] = []
        elif line.startswith("### "):
            name = None
        elif name and (match := re.match(r"\| `(\w+)` \|", line)):
            found[name].append(match[1])
    return found


class Cookbook(unittest.TestCase):
    maxDiff = None

    def compare(self, path):
        """Returns how many blocks it has; each says what is shown."""
        blocks = list(BLOCK.finditer(path.read_text()))
        for block in blocks:
            with self.subTest(code=block["code"]):
                said = execute(block["language"], block["code"])
                self.assertEqual(
                    Normal(block["varies"]).output(said),
                    Normal(block["varies"]).output(block["output"] or ""))
        return len(blocks)

    def test_shows_what_the_cookbook_says(self):
        self.assertGreater(self.compare(COOKBOOK), 20)

    def test_shows_what_the_schema_says(self):
        self.compare(SCHEMA)

    def test_no_block_is_left_out(self):
        for path in COOKBOOK, SCHEMA:
            text = path.read_text()
            fences = len(re.findall(r"^```", text, re.M))
            found = sum(4 if block["output"] else 2
                        for block in BLOCK.finditer(text))
            self.assertEqual(found, fences, path)

    def test_asks_about_one_token(self):
        # Only this one is replaced by that of another recording.
        asked = {literal for block in BLOCK.finditer(COOKBOOK.read_text())
                 for literal in TOKEN.findall(block["code"])}
        self.assertEqual(len(asked), 1)

    def test_each_question_has_an_answer(self):
        for section in sections(COOKBOOK):
            title, text = section.split("\n", 1)
            with self.subTest(title):
                self.assertRegex(text, BLOCK)
                # How to read it.
                self.assertRegex(BLOCK.sub("", text), r"\w")


class Tables(unittest.TestCase):
    maxDiff = None

    def test_explains_each_column_of_each_table(self):
        present = {}
        for name, in query("SELECT name FROM pragma_table_list WHERE "
                           "schema = 'main' AND type = 'table' "
                           "AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"):
            shown = re.sub(r"^call_\d{6}$", "call_NNNNNN", name)
            present[shown] = [column for column, in query(
                "SELECT name FROM pragma_table_xinfo(?) ORDER BY cid", name)]
        self.assertEqual(tables_of(SCHEMA.read_text()), present)

    def test_explains_each_name_of_meta(self):
        text = SCHEMA.read_text().split("### `meta`\n")[1].split("\n### ")[0]
        self.assertCountEqual(
            re.findall(r"^\| ([a-z_]+) \| ", text, re.M),
            ["column", "name"]
            + [name for name, in query("SELECT name FROM meta")])

    def test_explains_each_number(self):
        """The values of the tables of names."""
        for table, section in (
                ("event_kind", "event_kind"), ("handle_kind", "handle_kind"),
                ("session_event", "session_event"), ("level", "level"),
                ("reason", "reason"),
                ("loss_cause", "loss_cause"),
                ("aggregate_cause", "aggregate_cause")):
            with self.subTest(table):
                text = SCHEMA.read_text().split(f"### `{section}`\n")[1]
                text = text.split("\n### ")[0].split("\n## ")[0]
                shown = re.findall(r"^\| (\d+) \| ([^|]*) \|", text, re.M)
                self.assertEqual(
                    [(int(number), name) for number, name in shown],
                    query(f"SELECT * FROM {table} ORDER BY 1"))

    def test_explains_each_rule(self):
        rules = {re.sub(r"\d+", "N", rule)
                 for rule, in query("SELECT rule FROM purge")}
        self.assertGreater(len(rules), 1)
        for rule in rules:
            self.assertIn(f"\n| {rule} | `max_", SCHEMA.read_text())

    def test_says_what_events_of_each_kind_have(self):
        """A column that a kind has is not NULL there, another one is."""
        text = SCHEMA.read_text().split("### `control_event`, by kind\n")[1]
        text = text.split("\n### ")[0]
        kinds = {}
        for line in text.splitlines():
            if match := re.match(r"\| (\d+) [a-z ]+ \|", line):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                kinds[int(match[1])] = [cell != "–" for cell in cells[2:]]
        seen = query("SELECT DISTINCT kind, related IS NOT NULL, "
                     "value IS NOT NULL, second_value IS NOT NULL, "
                     "argument <> 0 FROM control_event")
        self.assertEqual({row[0] for row in seen}, set(kinds))
        for kind, *there, argument in seen:
            with self.subTest(kind):
                shown = kinds[kind]
                self.assertEqual(shown[1:], [bool(each) for each in there])
                self.assertGreaterEqual(shown[0], bool(argument))


def rewrite(path):
    """Writes what the blocks say into a document."""
    def replaced(block):
        code = TOKEN.sub(token, block["code"])
        output = execute(block["language"], code)
        text = f"```{block['language']}\n{code}```\n"
        if output:
            text += f"\n{block['comment'] or ''}```text\n{output}```\n"
        return text
    path.write_text(BLOCK.sub(replaced, path.read_text()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        setUpModule()
        for document in COOKBOOK, SCHEMA:
            rewrite(document)
        unittest.doModuleCleanups()
    else:
        counting.run()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Documentation/History.md with the history that the quickstart
writes: each view, its columns in their order, and nothing else."""

import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = re.split(
    r"^## ", (ROOT / "Documentation/History.md").read_text(), flags=re.M)[1:]
COLUMN = re.compile(r"^\| `(\w+)` \|", re.M)


def documented():
    """Returns the documented columns of each view."""
    return {match[1]: COLUMN.findall(section)
            for section in SECTIONS
            if (match := re.match(r"`(\w+)`\n", section))}


def section(title):
    found, = (text for text in SECTIONS if text.startswith(f"{title}\n"))
    return found


def setUpModule():
    """Opens the history of a run of the quickstart."""
    global history
    directory = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(directory.cleanup)
    folder = directory.name
    environment = {
        **os.environ, "PKG_CONFIG_PATH": str(ROOT / "build/lib/pkgconfig")}
    subprocess.run(
        ["bash", "-euc", "cc Examples/quickstart.c $(pkg-config --cflags "
         f"--libs callbackregistry) -o {folder}/quickstart; "
         f"cd {folder}; ./quickstart"],
        check=True, capture_output=True, cwd=ROOT, env=environment)
    history = sqlite3.connect(f"{folder}/quickstart.history")
    unittest.addModuleCleanup(history.close)


def columns(table):
    return [row[0] for row in history.execute(
        "SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))]


class History(unittest.TestCase):
    def test_explains_each_column_of_each_view(self):
        views = {name: columns(name) for name, in history.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'view'")}
        self.assertGreater(len(views), 10)
        self.assertEqual(documented(), views)

    def test_explains_each_line_of_health(self):
        explained = re.findall(r"^\| ([a-z ]+) \|", section("`health`"), re.M)
        present = [name for name, in history.execute("SELECT name FROM health")]
        titles = ["column", "line"]
        self.assertCountEqual(
            [name for name in explained if name not in titles
             and (name != "crashes" or name in present)], present)

    def test_explains_each_kind_of_event(self):
        # Those two change other rows and have none of their own.
        kinds = {name for name, in history.execute(
            "SELECT name FROM event_kind")} - {"counted", "aggregated"}
        row, = re.findall(r"^\| `event` .*", section("`history`"), re.M)
        self.assertEqual(set(re.findall(r"`([a-z ]+)`", row)) - {"event"},
                         kinds)

    def test_states_and_levels_are_those_that_are_there(self):
        definitions = "".join(sql for sql, in history.execute(
            "SELECT sql FROM sqlite_schema WHERE name IN "
            "('token_life', 'conservation')"))
        for word in ("live", "ended", "settled", "mixed", "unknown", "final",
                     "so far"):
            self.assertIn(f"'{word}'", definitions)
            self.assertIn(f"`{word}`", "".join(SECTIONS))


if __name__ == "__main__":
    counting.run()

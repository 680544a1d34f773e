#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes what the README shows: its programs are the examples to the letter,
its commands build them, and its questions are answered by a history."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()


def blocks(language):
    """Returns the code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def run(command, **options):
    return subprocess.run(
        command, check=True, capture_output=True, text=True, **options).stdout


class Readme(unittest.TestCase):
    def test_shows_the_examples(self):
        for language, name in (("c", "quickstart.c"),
                               ("swift", "Quickstart/Quickstart.swift")):
            with self.subTest(name):
                example = (ROOT / "Examples" / name).read_text()
                self.assertEqual(blocks(language), [example])

    def test_old_code_shows_the_examples(self):
        text = (ROOT / "Documentation/OldCode.md").read_text()
        shown = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
        for name in ("cookie.c", "thunk.c"):
            with self.subTest(name):
                self.assertIn((ROOT / "Examples" / name).read_text(), shown)

    def linked(self, options):
        """Returns whether a program that is linked with these options, and
        works, needs the shared library."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PKG_CONFIG_PATH": str(
                ROOT / "build/lib/pkgconfig")}
            run(["bash", "-euc", f"cc Examples/quickstart.c {options} "
                 f"-o {folder}/quickstart"], cwd=ROOT, env=environment)
            run([f"{folder}/quickstart"], cwd=folder)
            needed = run(["readelf", "-d", f"{folder}/quickstart"])
            return "libcallbackregistry.so.0]" in needed

    def test_links_the_archive(self):
        line, = (block for block in blocks("sh") if "--static" in block)
        options, = re.findall(
            r"^cc Examples/quickstart.c (.*) -o quickstart\n$", line, re.DOTALL)
        self.assertFalse(self.linked(options))
        # Also where the linker drops nothing unless it is told to.
        self.assertFalse(self.linked(f"-Wl,--no-as-needed {options}"))
        # What the README warns of.
        words = re.search(r"\$\(pkg-config .*\)", options)[0]
        self.assertTrue(self.linked(f"{words} -l:libcallbackregistry.a"))

    def test_examples_are_short(self):
        for name in "quickstart.c", "quickstart.cpp", "Quickstart/Quickstart.swift":
            with self.subTest(name):
                lines = (ROOT / "Examples" / name).read_text().splitlines()
                self.assertLessEqual(len(lines), 40)

    def test_answers_the_questions(self):
        build, = (block for block in blocks("sh") if "./quickstart" in block)
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ)
            script = build.replace("-o quickstart", f"-o {folder}/quickstart")
            script = script.replace(
                "./quickstart", f"cd {folder} && ./quickstart")
            run(["bash", "-euc", script], cwd=ROOT, env=environment)
            answers = [
                run(["sqlite3", f"{folder}/quickstart.history", question])
                for question in blocks("sql")]
        life, late, leaks, slowest, in_flight, conservation = answers
        self.assertEqual(len(answers), 6)
        self.assertEqual(in_flight, "")
        self.assertIn("greeter|settled|", life)
        self.assertRegex(late, r"greeter\|quickstart#1\|1\|\d+\|CBR_E_STALE\|")
        self.assertEqual(leaks, "")
        self.assertIn("|greeter", slowest)
        self.assertRegex(
            conservation, r"^0x[0-9a-f]{16}\|greeter\|2\|1\|0\|1\|0\|\|0\n")
        self.assertEqual(conservation.count("\n"), 2, conservation)


if __name__ == "__main__":
    counting.run()

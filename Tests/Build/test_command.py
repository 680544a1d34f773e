#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command cbr, on a history that a killed process has left."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/bin/cbr"

# Registers a callback, says its token, and is killed inside of it, or stays.
VICTIM = r"""
#include <callback_registry.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void die(void *context) {
  if (context) pause();
  kill(getpid(), SIGKILL);
}

int main(int count, char **arguments) {
  cbr_registry registry;
  cbr_token token;
  cbr_call call;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = arguments[1];
  if (cbr_registry_open(&options, &registry) != CBR_OK) return 1;
  if (CBR_REGISTER(registry, "the victim", die, count > 2 ? "stay" : NULL,
                   NULL, CBR_NONE, &token) != CBR_OK)
    return 1;
  printf("0x%016llx", (unsigned long long)token);
  fflush(stdout);
  if (cbr_enter(token, &call) != CBR_OK) return 1;
  ((void (*)(void *))call.function)(call.context);
  return 1;
}
"""


def cbr(*words):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True)


def answer(*words):
    return json.loads(cbr(*words, "--json").stdout)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = tempfile.TemporaryDirectory()
        cls.victim = f"{cls.build.name}/victim"
        subprocess.run(
            ["cc", "-x", "c", "-", f"-I{ROOT}/include", f"-L{ROOT}/build/lib",
             "-lcallbackregistry", f"-Wl,-rpath,{ROOT}/build/lib",
             "-o", cls.victim], input=VICTIM, text=True, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.build.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = str(self.folder / "history")
        self.rings = pathlib.Path(self.path + ".rings")

    def kill_one(self):
        """Returns the token of a process that was killed in its callback."""
        result = subprocess.run(
            [self.victim, self.path], capture_output=True, text=True)
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
        return result.stdout

    def expect(self, result, status, *, out="", err=""):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(out, result.stdout)
        self.assertIn(err, result.stderr)
        self.assertEqual(result.stderr == "", err == "", result.stderr)

    def query(self, sql):
        return subprocess.run(
            ["sqlite3", self.path, sql], capture_output=True, text=True,
            check=True).stdout

    def test_recover(self):
        self.kill_one()
        self.expect(cbr("recover", self.path), 0,
                    out="dead processes recovered: 1\n")
        self.assertEqual(self.query("SELECT ended FROM run"), "crash\n")
        self.assertEqual(
            self.query("SELECT label FROM in_flight_at_crash"),
            "the victim\n")
        self.assertFalse(self.rings.exists())
        self.assertEqual(
            answer("recover", self.path),
            {"recovered": 0, "in_use": 0, "set_aside": 0, "failed": 0})

    def test_recover_sets_aside_what_it_cannot_read(self):
        self.kill_one()
        file, = self.rings.iterdir()
        file.write_bytes(b"no rings at all")
        self.assertEqual(answer("recover", self.path)["set_aside"], 1)
        self.assertEqual([each.name for each in self.rings.iterdir()],
                         [file.name + ".set-aside"])
        self.assertIn("unreadable", self.query("SELECT cause FROM fault"))

    def test_recover_leaves_a_living_process_alone(self):
        with subprocess.Popen([self.victim, self.path, "stay"],
                              stdout=subprocess.PIPE) as process:
            try:
                process.stdout.read(18)
                found = answer("recover", self.path)
                self.assertEqual((found["in_use"], found["recovered"]), (1, 0))
            finally:
                process.kill()
        self.assertEqual(answer("recover", self.path)["recovered"], 1)

    def test_explain(self):
        token = self.kill_one()
        cbr("recover", self.path)
        first = (f'token {token} "the victim": not ended before its run did: '
                 "crash")
        self.expect(cbr("explain", token, self.path), 0, out=first + "\n")
        told = answer("explain", token, self.path)
        self.assertTrue(told["known"])
        self.assertEqual(told["lines"][0], first)
        self.expect(cbr("explain", "0x48", self.path), 1,
                    err="nothing is known of 0x48")
        self.expect(cbr("explain", "token", self.path), 2,
                    err='"token" is no token')

    def test_stat(self):
        self.kill_one()
        cbr("recover", self.path)
        health = answer("stat", self.path)
        self.assertEqual(health["crashes"], 1)
        self.assertEqual(health["violations"], 0)
        self.assertRegex(cbr("stat", self.path).stdout, r"(?m)^crashes +1$")

    def test_snapshot(self):
        self.kill_one()
        cbr("recover", self.path)
        copy = str(self.folder / "copy")
        self.expect(cbr("snapshot", self.path, copy), 0, out=copy)
        count = subprocess.run(
            ["sqlite3", f"file:{copy}?mode=ro&immutable=1",
             "SELECT count(*) FROM in_flight_at_crash"],
            capture_output=True, text=True, check=True).stdout
        self.assertEqual(count, "1\n")
        self.expect(cbr("snapshot", self.path, copy), 3, err="exists")

    def test_what_is_no_history_is_left_as_it_is(self):
        text = self.folder / "text"
        text.write_text("no database")
        other = self.folder / "other"
        subprocess.run(["sqlite3", other, "CREATE TABLE t (x)"], check=True)
        for path in text, other:
            before = path.read_bytes()
            for words in (["recover", path], ["stat", path],
                          ["explain", "0x48", path],
                          ["snapshot", path, self.path]):
                self.expect(cbr(*words), 3, err=str(path))
            self.assertEqual(path.read_bytes(), before)
        self.expect(cbr("recover", self.path), 3, err="No such file")
        self.assertFalse(os.path.exists(self.path))

    def test_usage(self):
        self.expect(cbr(), 2, err="usage: cbr COMMAND")
        self.expect(cbr("recover"), 2, err="usage: cbr recover PATH")
        self.expect(cbr("undo", self.path), 2, err="usage")
        self.expect(cbr("help"), 0, out="usage")
        self.expect(cbr("version"), 0, out="cbr 0.1.0, SQLite 3.")

    def test_each_command_is_in_the_manual(self):
        page = (ROOT / "packaging/cbr.1").read_text()
        for line in cbr("help").stdout.splitlines()[1:]:
            self.assertIn(f".B cbr {line.split()[0]}", page)


if __name__ == "__main__":
    counting.run()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command cbr, on a history that a killed process has left."""

import contextlib
import json
import os
import pathlib
import pty
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/bin/cbr"

# Registers a callback, says its token, and is killed inside of it, or stays
# there, or comes back and closes.
VICTIM = r"""
#include <callback_registry.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void die(void *context) {
  const char *deed = context;
  if (deed && *deed == 'c') return;
  if (deed) pause();
  kill(getpid(), SIGKILL);
}

int main(int count, char **arguments) {
  cbr_registry registry;
  cbr_token token;
  cbr_call call;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = arguments[1];
  options.ring_directory = getenv("RINGS");
  if (cbr_registry_open(&options, &registry) != CBR_OK) return 1;
  if (CBR_REGISTER(registry, "the victim", die,
                   count > 2 ? arguments[2] : NULL, NULL, CBR_NONE, &token) != CBR_OK)
    return 1;
  printf("0x%016llx", (unsigned long long)token);
  fflush(stdout);
  if (cbr_enter(token, &call) != CBR_OK) return 1;
  ((void (*)(void *))call.function)(call.context);
  if (cbr_leave(&call) != CBR_OK) return 1;
  return cbr_registry_close(registry, CBR_FOREVER) != CBR_OK;
}
"""

# Writes, and deletes what is beyond a limit, until somebody closes its input;
# or opens and closes the history all the time.
BUSY = r"""
#include <callback_registry.h>
#include <poll.h>
#include <string.h>

static void nothing(void *context) { (void)context; }

int main(int count, char **arguments) {
  int reopens = count > 2 && strcmp(arguments[2], "reopen") == 0;
  struct pollfd input = {0, POLLIN, 0};
  cbr_registry registry = CBR_NONE;
  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;
  options.history_path = arguments[1];
  options.calls_per_second = UINT64_MAX;
  options.max_calls = 10000;
  options.ring_bytes = 1 << 16;
  while (!poll(&input, 1, 0)) {
    cbr_token token;
    cbr_call call;
    if (!registry && cbr_registry_open(&options, &registry)) return 1;
    if (CBR_REGISTER(registry, "busy", nothing, NULL, NULL, CBR_NONE, &token))
      return 2;
    for (int each = 0; each < 1000; each++)
      if (cbr_enter(token, &call) || cbr_leave(&call)) return 3;
    if (cbr_invalidate(token, CBR_REASON_ENDED) < 0) return 4;
    if (cbr_audit_flush(registry, CBR_FLUSH_DATABASE, CBR_FOREVER, 0)) return 5;
    if (!reopens) continue;
    if (cbr_registry_close(registry, CBR_FOREVER) < 0) return 6;
    registry = CBR_NONE;
  }
  if (!registry) return 0;
  return cbr_registry_close(registry, CBR_FOREVER) ? 7 : 0;
}
"""

# Says other things of the machine than are so.
MACHINE = r"""
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

static long long setting(const char *name, long long otherwise) {
  return getenv(name) ? atoll(getenv(name)) : otherwise;
}

int sqlite3_libversion_number(void) { return setting("VERSION", 3053000); }

int statfs(const char *path, struct statfs *found) {
  *found = (struct statfs){.f_type = setting("TYPE", 0xef53)};
  return 0;
}

int statvfs(const char *path, struct statvfs *found) {
  *found = (struct statvfs){.f_frsize = 1 << 20,
                            .f_bavail = setting("FREE", 5000)};
  return 0;
}
"""


def cbr(*words, **options):
    return subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, **options)


def answer(*words):
    return json.loads(cbr(*words, "--json").stdout)


def read_all(terminal):
    """What was written to a terminal that nobody has open any more."""
    told = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            told += part
    os.close(terminal)
    return told


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = tempfile.TemporaryDirectory()
        cls.victim = f"{cls.build.name}/victim"
        subprocess.run(
            ["cc", "-x", "c", "-", f"-I{ROOT}/include", f"-L{ROOT}/build/lib",
             "-lcallbackregistry", f"-Wl,-rpath,{ROOT}/build/lib",
             "-o", cls.victim], input=VICTIM, text=True, check=True)
        cls.machine = f"{cls.build.name}/machine.so"
        subprocess.run(
            ["cc", "-x", "c", "-", "-shared", "-fPIC", "-o", cls.machine],
            input=MACHINE, text=True, check=True)

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

    def close_one(self, path=None):
        """Lets a process use the history and close it; returns the token."""
        return subprocess.run(
            [self.victim, path or self.path, "close"], text=True, check=True,
            stdout=subprocess.PIPE).stdout

    @contextlib.contextmanager
    def living_one(self):
        with subprocess.Popen([self.victim, self.path, "stay"],
                              stdout=subprocess.PIPE) as process:
            try:
                process.stdout.read(18)
                yield process
            finally:
                process.kill()

    def files(self):
        """All that is beside the history, byte for byte."""
        return {path: path.is_file() and path.read_bytes()
                for path in sorted(self.folder.rglob("*"))}

    def findings(self, status=0, is_written=False, **options):
        """What the doctor finds, by name; nothing is changed by it."""
        before = self.files()
        result = cbr("doctor", self.path, "--json", **options)
        if is_written:
            self.assertEqual(list(self.files()), list(before))
        else:
            self.assertTrue(self.files() == before)
        self.expect(result, status)
        told = json.loads(result.stdout)
        self.assertEqual(told["sound"], status == 0)
        return {each["name"]: each for each in told["findings"]}

    def verdicts(self, *names, status=0, **options):
        found = self.findings(status, **options)
        for each in found.values():
            self.assertEqual(each["remedy"] is None, each["verdict"] == "ok")
        return [found[name]["verdict"] for name in names]

    def machine_with(self, **settings):
        return {"env": {**os.environ, "LD_PRELOAD": self.machine, **settings}}

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

    def kill_one_elsewhere(self):
        """Its rings are in a directory that other histories use, too."""
        self.rings = self.folder / "rings"
        self.rings.mkdir()
        os.environ["RINGS"] = str(self.rings)
        self.addCleanup(os.environ.pop, "RINGS")
        subprocess.run([self.victim, self.path + "-of-another"],
                       stdout=subprocess.DEVNULL)
        other, = self.rings.iterdir()
        return self.kill_one(), other

    def test_recover_finds_rings_elsewhere(self):
        _, other = self.kill_one_elsewhere()
        before = other.read_bytes()
        found = self.findings()
        self.assertIn("1 of dead processes, to be recovered",
                      found["ring files"]["finding"])
        self.expect(cbr("recover", self.path), 0,
                    out="dead processes recovered: 1\n")
        self.assertEqual(
            self.query("SELECT label FROM in_flight_at_crash"),
            "the victim\n")
        self.assertEqual(
            answer("recover", self.path),
            {"recovered": 0, "in_use": 0, "set_aside": 0, "failed": 0})
        self.assertEqual(list(self.rings.iterdir()), [other])
        self.assertEqual(other.read_bytes(), before)
        self.assertEqual(self.verdicts("ring files", "runs", "lag"),
                         ["ok", "ok", "ok"])
        self.assertEqual(
            answer("recover", self.path + "-of-another")["recovered"], 1)
        self.assertEqual(list(self.rings.iterdir()), [])

    def test_copies_leave_rings_elsewhere_alone(self):
        self.kill_one_elsewhere()
        for command in "snapshot", "salvage":
            copy = str(self.folder / command)
            self.expect(cbr(command, self.path, copy), 0, out="copied")
            self.assertEqual(answer("recover", copy)["recovered"], 0)
            self.assertEqual(answer("recover", copy)["set_aside"], 0)
            told = json.loads(cbr("doctor", copy, "--json").stdout)
            finding, = (each for each in told["findings"]
                        if each["name"] == "ring files")
            self.assertEqual(finding["finding"], "none")
        self.assertEqual(len(list(self.rings.iterdir())), 2)
        # Another history in its place knows nothing of them.
        for file in self.path, self.path + "-wal", self.path + "-shm":
            pathlib.Path(file).unlink(missing_ok=True)
        self.close_one()
        self.assertEqual(answer("recover", self.path)["recovered"], 0)
        self.assertEqual(len(list(self.rings.iterdir())), 2)
        # What was saved of the former one does.
        (self.folder / "salvage").replace(self.path)
        self.assertEqual(answer("recover", self.path)["recovered"], 1)
        self.assertEqual(len(list(self.rings.iterdir())), 1)
        self.assertEqual(
            self.query("SELECT label FROM in_flight_at_crash"),
            "the victim\n")

    def test_rings_elsewhere_that_are_gone(self):
        """A5: a restart of the machine empties what is in memory."""
        token, _ = self.kill_one_elsewhere()
        shutil.rmtree(self.rings)
        for _ in range(2):
            self.assertEqual(
                answer("recover", self.path),
                {"recovered": 0, "in_use": 0, "set_aside": 0, "failed": 0})
            self.assertRegex(
                self.query("SELECT cause FROM fault"),
                r"\Athe rings of run 1 are not where they were: [^\n]*\n\Z")
        found = self.findings()["ring files"]
        self.assertEqual(found["finding"], "1 not where they were")
        self.assertIn("see the table fault", found["remedy"])
        self.expect(cbr("stat", self.path), 0, out="faults")

    def test_recover_leaves_a_living_process_alone(self):
        with self.living_one():
            found = answer("recover", self.path)
            self.assertEqual((found["in_use"], found["recovered"]), (1, 0))
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

    def test_a_snapshot_is_whole_or_is_not(self):
        self.kill_one()
        before = self.files()
        self.expect(cbr("snapshot", self.path, f"{self.folder}/no/copy"), 3,
                    err="No such file")
        small = (4096, resource.RLIM_INFINITY)
        self.expect(
            cbr("snapshot", self.path, f"{self.folder}/copy",
                preexec_fn=lambda: (
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                    resource.setrlimit(resource.RLIMIT_FSIZE, small))),
            3, err="history")
        self.assertTrue(self.files() == before)
        (self.folder / "link").symlink_to("nowhere")
        self.expect(cbr("snapshot", self.path, f"{self.folder}/link"), 3,
                    err="exists")
        odd = self.folder / "file:odd ?#%41"
        self.expect(cbr("snapshot", "history", odd.name, cwd=self.folder), 0,
                    out=odd.name)
        self.expect(cbr("stat", odd.name, cwd=self.folder), 0, out="calls")
        self.assertEqual(odd.read_bytes()[18:20], b"\1\1", "a log is needed")

    def busy_one(self, *words):
        source = self.folder / "busy.c"
        source.write_text(BUSY)
        program = self.folder / "busy"
        subprocess.run(
            ["cc", f"-I{ROOT}/include", "-o", program, source,
             f"{ROOT}/build/lib/libcallbackregistry.a", "-pthread",
             "-lsqlite3", "-lffi", "-lm"], check=True)
        return subprocess.Popen([program, self.path, *words],
                                stdin=subprocess.PIPE)

    def test_snapshots_while_it_is_written(self):
        """J16: each is of one moment, and nothing is missing in it."""
        with self.busy_one() as process:
            purged = taken = 0
            while not purged or taken < 5:
                copy = self.folder / f"copy{taken}"
                if cbr("snapshot", self.path, copy).returncode:
                    continue
                taken += 1
                found = subprocess.run(
                    ["sqlite3", copy, "SELECT count(*) FROM violations; "
                     "SELECT count(*) FROM conservation WHERE difference; "
                     "PRAGMA integrity_check; SELECT count(*) FROM purge"],
                    capture_output=True, text=True, check=True).stdout.split()
                self.assertEqual(found[:3], ["0", "0", "ok"])
                purged = int(found[3])
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    def rows_of(self, path):
        with sqlite3.connect(path) as database:
            names = [name for name, in database.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' "
                "AND name NOT LIKE 'sqlite_%'")]
            rows = {name: set(database.execute(f'SELECT * FROM "{name}"'))
                    for name in names}
        database.close()
        return rows

    def test_salvage(self):
        """J45: all rows that are on pages without damage are in the copy."""
        with self.busy_one() as process:
            found = ""
            while '"control events": ' not in found or json.loads(
                    found)["control events"] < 900:
                found = cbr("stat", self.path, "--json").stdout
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)
        before = self.rows_of(self.path)
        copy = str(self.folder / "whole")
        self.expect(cbr("salvage", self.path, copy), 0, out="stretches: 0")
        self.assertEqual(self.rows_of(copy), before)
        self.assertEqual(answer("stat", copy)["violations"], 0)

        content = bytearray(pathlib.Path(self.path).read_bytes())
        size = int.from_bytes(content[16:18], "big")
        leaves = [start for start in range(size, len(content), size)
                  if content[start] == 13 and b"CREATE " not in
                  content[start:start + size]]
        damaged = random.Random(1).sample(leaves, 5) + leaves[-1:]
        most = 0
        for start in set(damaged):
            most += int.from_bytes(content[start + 3:start + 5], "big")
            content[start:start + size] = b"\xa5" * size
        pathlib.Path(self.path).write_bytes(content)
        copy = str(self.folder / "part")
        self.expect(cbr("salvage", self.path, copy), 1, out="stretches: ")
        after = self.rows_of(copy)
        self.assertEqual(set(after), set(before))
        lost = sum(len(before[name] - after[name]) for name in before)
        self.assertGreater(lost, 0)
        self.assertLessEqual(lost, most)
        for name in before:
            self.assertLessEqual(after[name], before[name])
        self.assertEqual(pathlib.Path(self.path).read_bytes(), content)
        self.expect(cbr("salvage", self.path, copy), 3, err="exists")

    def test_rings_that_come_and_go(self):
        """J21: no file that is removed or shortened is a signal."""
        with self.busy_one("reopen") as process:
            for _ in range(15):
                for command in ["doctor"], ["stat"], ["tail", "-n", "3"]:
                    self.assertIn(cbr(*command, self.path).returncode,
                                  (0, 1, 3))
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    def test_progress_is_told_to_a_terminal(self):
        self.kill_one()
        for words, sentence in (
                (["snapshot", self.path, f"{self.folder}/copy"],
                 b"copying: 0 bytes of "),
                (["recover", self.path], b"recovering: 0 of 1 files done")):
            ours, theirs = pty.openpty()
            now = {**os.environ, "CBR_PROGRESS_MILLISECONDS": "0"}
            process = subprocess.Popen(
                [COMMAND, *words], stdout=subprocess.PIPE, stderr=theirs,
                env=now)
            process.communicate()
            os.close(theirs)
            self.assertEqual(process.returncode, 0)
            told = read_all(ours)
            self.assertIn(sentence, told)
            self.assertTrue(told.endswith(b"\r\x1b[K"), told)

    def test_doctor_finds_a_history_sound(self):
        self.close_one()
        found = self.findings(**self.machine_with())
        self.assertEqual(
            {each["verdict"] for each in found.values()}, {"ok"}, found)
        self.expect(cbr("doctor", self.path, **self.machine_with()), 0,
                    out="ok       violations        none\n")

    def test_doctor_beside_processes(self):
        self.kill_one()
        with self.living_one():
            # This one has recovered what the other has left.
            found = self.findings(is_written=True)
            self.assertEqual(found["ring files"]["finding"],
                             "1 of live processes")
            self.assertEqual(found["runs"]["finding"], "1 that go on")
            self.assertRegex(found["lag"]["finding"], "^[0-9]+ records of live")
        found = self.findings()
        self.assertIn("1 of dead", found["ring files"]["finding"])
        self.assertIn("not ended, and gone: run 2", found["runs"]["finding"])
        cbr("recover", self.path)
        self.assertEqual(self.verdicts("ring files", "runs", "lag"),
                         ["ok", "ok", "ok"])

    def test_doctor_tells_what_is_yet_to_be_written(self):
        self.kill_one()
        # Whether the writer came to it or not.
        self.query("UPDATE ring SET consumed_position = 0")
        lag = self.findings()["lag"]
        self.assertRegex(lag["finding"], ", [1-9][0-9]* of dead ones$")
        self.assertIn("cbr recover", lag["remedy"])

    def test_doctor_knows_the_dead_by_their_rings(self):
        self.kill_one()
        # Its number is another process's by now.
        self.query(f"UPDATE run SET pid = {os.getpid()}")
        self.assertEqual(self.verdicts("runs"), ["notice"])
        # One that has no rings may be alive.
        shutil.rmtree(self.rings)
        self.assertEqual(self.verdicts("runs"), ["ok"])
        self.query("UPDATE run SET boot = 'before'")
        self.assertEqual(self.verdicts("runs"), ["notice"])
        self.query("UPDATE run SET host = 'elsewhere'")
        self.assertEqual(self.verdicts("runs"), ["ok"])

    def test_doctor_of_junk_among_the_rings(self):
        self.kill_one()
        file, = self.rings.iterdir()
        whole = file.read_bytes()
        for size in 0, 100, 70000, 327680, len(whole) - 1:
            file.write_bytes(whole[:size])
            self.findings()
        file.write_bytes(b"CBRRINGS" + b"\xff" * 500000)
        (self.rings / "note").write_text("no rings")
        (self.rings / "half.ring.new").write_text("no rings")
        (self.rings / "folder.ring").mkdir()
        (self.rings / "link.ring").symlink_to(file.name)
        (self.rings / "other.ring.set-aside").write_text("no rings")
        os.mkfifo(self.rings / "pipe.ring")
        self.assertEqual(
            self.findings()["ring files"]["finding"],
            "1 of dead processes, not to be read, 1 set aside, 5 of nobody")

    def test_doctor_without_the_right_to_read(self):
        self.kill_one()
        command = self.folder / "cbr"
        shutil.copy(COMMAND, command)
        self.folder.chmod(0o755)
        user = {} if os.getuid() else {"user": 65534, "group": 65534}
        self.rings.chmod(0)
        result = subprocess.run([command, "doctor", self.path], text=True,
                                capture_output=True, **user)
        self.expect(result, 1, out=".rings cannot be read: Permission denied")
        (self.folder / "closed").mkdir()
        shutil.copy(self.path, self.folder / "closed")
        (self.folder / "closed").chmod(0)
        for words in ["doctor"], ["tail"], ["stat"]:
            result = subprocess.run(
                [command, *words, self.folder / "closed/history"], text=True,
                capture_output=True, **user)
            self.expect(result, 3, err="Permission denied")
        self.rings.chmod(0o700)
        (self.folder / "closed").chmod(0o700)
        shutil.rmtree(self.rings)
        self.rings.write_text("no directory")
        self.assertIn("Not a directory",
                      self.findings(1)["ring files"]["finding"])

    def test_doctor_of_the_machine(self):
        self.close_one()
        for version, verdict in (
                ("3007000", "notice"), ("3044005", "notice"),
                ("3044006", "ok"), ("3045000", "notice"),
                ("3050006", "notice"), ("3050007", "ok"),
                ("3051002", "notice"), ("3051003", "ok")):
            self.assertEqual(self.verdicts(
                "SQLite", **self.machine_with(VERSION=version)), [verdict])
        for name, verdict in ((0x6969, "problem"), (0xff534d42, "problem"),
                              (0x65735546, "notice"), (0x01021994, "notice"),
                              (0x58465342, "ok"), (1, "ok")):
            self.assertEqual(self.verdicts(
                "file system", status=int(verdict == "problem"),
                **self.machine_with(TYPE=str(name))), [verdict])
        for room, verdict in ("63", "problem"), ("64", "notice"), ("1024", "ok"):
            self.assertEqual(self.verdicts(
                "free space", status=int(verdict == "problem"),
                **self.machine_with(FREE=room)), [verdict])

    def test_doctor_of_the_record(self):
        self.close_one()
        self.query("INSERT INTO fault VALUES (1, 1, 'a test', 0, 0, 0, 0, 0)")
        self.query("UPDATE run SET crash_protection = 'in part'")
        self.assertEqual(
            self.verdicts("faults", "crash protection"), ["notice", "notice"])
        self.query("UPDATE ring SET lost = lost + 1")
        self.assertEqual(self.verdicts("violations", status=1), ["problem"])
        self.query("UPDATE token SET attempts = attempts + 1")
        self.assertEqual(self.verdicts("conservation", status=1), ["problem"])
        self.query("INSERT INTO loss VALUES (1, 1, 1, 1, 1, 1, 1, 1, 1)")
        self.assertEqual(self.verdicts("losses", "conservation", status=1),
                         ["notice", "notice"])
        with open(self.path + "-wal", "wb") as log:
            os.truncate(log.fileno(), 33 << 20)
        pathlib.Path(self.path + "-shm").write_bytes(b"")
        self.assertEqual(self.verdicts("log", status=1), ["notice"])
        os.remove(self.path + "-wal")
        os.remove(self.path + "-shm")
        self.query("UPDATE run SET ended = NULL, pid = 999999999")
        self.assertEqual(self.verdicts("runs", status=1), ["notice"])

    def test_a_log_without_its_index(self):
        self.kill_one()
        os.remove(self.path + "-shm")
        before = self.files()
        for words in ["doctor"], ["tail"], ["stat"]:
            self.expect(cbr(*words, self.path), 3, err="without its index")
        self.assertTrue(self.files() == before)
        self.expect(cbr("recover", self.path), 0, out="recovered: 1")
        self.expect(cbr("stat", self.path), 0, out="calls")

    def test_tail(self):
        token = self.close_one()
        lines = cbr("tail", self.path).stdout.splitlines()
        self.assertEqual(
            [line.split("  ")[2] for line in lines],
            ["thread began", "registry opened", "registered", "call",
             "ended", "settled", "registry closed"])
        self.assertRegex(
            lines[3], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z  victim#1  "
            rf'call  {token}  "the victim"  \d+ ns$')
        self.expect(cbr("tail", "-n", "2", self.path), 0,
                    out="\n".join(lines[-2:]) + "\n")
        self.assertEqual(cbr("tail", "-n", "0", self.path).stdout, "")
        told = [json.loads(line) for line in cbr(
            "tail", self.path, "--json", "-n", "4").stdout.splitlines()]
        self.assertEqual([each["sequence"] for each in told], [4, 5, 6, 7])
        self.assertEqual(
            (told[0]["event"], told[0]["token"], told[0]["detail"]),
            ("call", token, None))
        self.assertIsInstance(told[0]["duration_ns"], int)
        self.assertEqual(told[1]["detail"], "registry closed")

    def test_tail_shows_what_a_terminal_would_obey(self):
        self.close_one()
        self.query("UPDATE callback SET label = 'a' || char(27, 10) || 'b' "
                   "WHERE label = 'registry'")
        line, = cbr("tail", "-n", "1", self.path).stdout.splitlines()
        self.assertIn(r'"a\u{1B}\nb"', line)

    def test_tail_of_what_was_removed_by_rule(self):
        self.close_one()
        self.close_one()
        self.query("DROP TRIGGER control_event_is_kept; "
                   "DELETE FROM control_event WHERE sequence BETWEEN 3 AND 12")
        told = cbr("tail", "-n", "5", "--json", self.path).stdout
        self.assertEqual(
            [json.loads(line)["sequence"] for line in told.splitlines()],
            [2, 4, 11, 13, 14])

    @contextlib.contextmanager
    def following(self, *words):
        with subprocess.Popen([COMMAND, "tail", "-f", *words, self.path],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    def sequences(self, process, count):
        return [json.loads(process.stdout.readline())["sequence"]
                for _ in range(count)]

    def test_tail_goes_on(self):
        self.close_one()
        with self.following("-n", "2", "--json") as process:
            self.assertEqual(self.sequences(process, 2), [6, 7])
            for first in 8, 15:
                self.close_one()
                self.assertEqual(self.sequences(process, 7),
                                 list(range(first, first + 7)))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(), 0)
            self.assertEqual(process.stderr.read(), "")

    def test_tail_ends_when_nobody_reads(self):
        self.close_one()
        with self.following("-n", "0") as process:
            process.stdout.close()
            while process.poll() is None:
                self.close_one()
            self.assertEqual(process.returncode, 0)
            self.assertEqual(process.stderr.read(), "")

    def test_tail_holds_nothing_between_looks(self):
        self.close_one()
        with self.living_one(), self.following(
                "-n", "1", "--json") as process:
            self.sequences(process, 1)
            # A log that anybody reads cannot be cut.
            while not self.query("PRAGMA wal_checkpoint(TRUNCATE)").startswith(
                    "0|0|0"):
                self.assertIsNone(process.poll())

    def test_tail_notices_another_file(self):
        self.close_one()
        with self.following("-n", "1", "--json") as process:
            self.sequences(process, 1)
            os.rename(self.path, self.path + ".old")
            self.assertIn("is gone; waiting", process.stderr.readline())
            self.close_one()
            self.assertIn("was replaced", process.stderr.readline())
            self.assertEqual(self.sequences(process, 7), [1, 2, 3, 4, 5, 6, 7])
            # The same history in another file is not told again.
            shutil.copy(self.path, self.path + ".copy")
            os.replace(self.path + ".copy", self.path)
            self.assertIn("was replaced", process.stderr.readline())
            self.close_one()
            self.assertEqual(self.sequences(process, 2), [8, 9])
            pathlib.Path(self.path).write_text("no database")
            self.assertIn("not a database", process.stderr.readline())

    def test_what_is_no_history_is_left_as_it_is(self):
        text = self.folder / "text"
        text.write_text("no database")
        other = self.folder / "other"
        subprocess.run(["sqlite3", other, "CREATE TABLE t (x)"], check=True)
        newer = self.folder / "newer"
        self.close_one(newer)
        subprocess.run(["sqlite3", newer, "PRAGMA user_version = 2"],
                       check=True)
        empty = self.folder / "empty"
        empty.write_bytes(b"")
        before = self.files()
        for path in text, other, newer, self.folder, "/dev/null":
            for words in (["recover", path], ["stat", path],
                          ["explain", "0x48", path], ["doctor", path],
                          ["tail", path], ["snapshot", path, self.path]):
                self.expect(cbr(*words), 3, err=str(path))
        for words in ["stat"], ["doctor"], ["tail"]:
            self.expect(cbr(*words, newer), 3, err="its format is 2")
            self.expect(cbr(*words, empty), 3, err="no history")
            self.expect(cbr(*words, self.path), 3, err="No such file")
        self.expect(cbr("recover", self.path), 3, err="No such file")
        self.assertTrue(self.files() == before)

    def test_usage(self):
        self.expect(cbr(), 2, err="usage: cbr COMMAND")
        self.expect(cbr("recover"), 2, err="usage: cbr recover PATH")
        self.expect(cbr("undo", self.path), 2, err="usage")
        self.expect(cbr("doctor"), 2, err="usage: cbr doctor PATH")
        for words in ([], ["-n"], ["-n", "x", "p"], ["-n", "-1", "p"],
                      ["-n", "99999999999999999999", "p"], ["p", "q"]):
            self.expect(cbr("tail", *words), 2, err="usage: cbr tail [-f]")
        self.expect(cbr("help"), 0, out="usage")
        self.expect(cbr("version"), 0, out="cbr 0.1.0, SQLite 3.")

    def test_each_command_is_in_the_manual(self):
        page = (ROOT / "packaging/cbr.1").read_text()
        for line in cbr("help").stdout.splitlines()[1:]:
            self.assertIn(f".B cbr {line.split()[0]}", page)


if __name__ == "__main__":
    counting.run()

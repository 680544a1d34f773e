#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody here wrote, under the guards of Guards (G30): what they
print is what they print without, and their callbacks are in the history."""

import contextlib
import functools
import http.server
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import threading
import unittest
import zlib

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/bin/cbr"
PACKAGES = {
    "libcurl": "libcurl", "libuv": "libuv", "glib": "gobject-2.0",
    "libexpat": "expat", "sqlite3": "sqlite3", "libpng": "libpng"}

DOCUMENT = """<?xml version="1.0"?>
<!-- of everything -->
<a x="1"><?pi d?><b>text</b><![CDATA[<c>]]><d/></a>
"""

PROTOCOL = """<?xml version="1.0"?>
<protocol name="p"><interface name="i" version="1"><description summary="s">
d</description><request name="r"><arg name="a" type="int" summary="t"/>
</request></interface></protocol>
"""

COUNT = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
         "WHERE x < 100000) SELECT count(*) FROM c")

# Parses, and runs a query with a progress handler, in Debian's own Python.
PYTHON = """
import xml.etree.ElementTree as trees
print(trees.tostring(trees.parse("document.xml").getroot()))
"""
PYTHON_SQLITE = f"""
import sqlite3
base, calls = sqlite3.connect(":memory:"), []
base.set_progress_handler(lambda: calls.append(0), 1000)
print(base.execute("{COUNT}").fetchall(), len(calls))
base.close()
"""


def png():
    """An image of 64 by 64 points."""
    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", check)
    rows = b"".join(
        b"\0" + bytes(x * y % 256 for x in range(64) for _ in range(3))
        for y in range(64))
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(timestamp or 0)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client that gives up is what is tested."""


@contextlib.contextmanager
def served(folder):
    """Serves a folder on this machine only, and gives its address."""
    server = Server(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guards = pathlib.Path(tempfile.mkdtemp(prefix="cbr-guards-"))
        cls.addClassCleanup(shutil.rmtree, cls.guards)

    @classmethod
    def guard(cls, name):
        """Builds the guard of a library, once."""
        library = cls.guards / f"{name}.so"
        if library.exists():
            return library
        source = cls.guards / f"{name}.c"
        subprocess.run([COMMAND, "guard", ROOT / f"Guards/{name}.guard", "-o",
                        source], check=True)
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", PACKAGES[name],
             "callbackregistry"], check=True, capture_output=True, text=True)
        subprocess.run(
            ["cc", "-std=gnu11", "-shared", "-fPIC", "-fexceptions", "-O2",
             "-Wall", "-Wextra", "-Werror", "-o", library, source,
             *flags.stdout.split()], check=True)
        return library

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cbr-guarded-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.history = self.folder / "guard.history"
        (self.folder / "document.xml").write_text(DOCUMENT)
        (self.folder / "protocol.xml").write_text(PROTOCOL)
        (self.folder / "good.png").write_bytes(png())
        bad = bytearray(png())
        bad[-30] ^= 1
        (self.folder / "bad.png").write_bytes(bad)
        (self.folder / "served").mkdir()
        (self.folder / "served/big").write_bytes(bytes(3000000))

    def need(self, *programs):
        for program in programs:
            if not shutil.which(program):
                print(f"{program} skipped: it is not installed")
                self.skipTest(program)

    def run_program(self, command, **more):
        return subprocess.run(
            [str(word) for word in command], capture_output=True, timeout=100,
            cwd=self.folder, env={**os.environ, **more})

    def guarded(self, name, command, **more):
        return self.run_program(
            command, LD_PRELOAD=str(self.guard(name)),
            CBR_GUARD_HISTORY=str(self.history), **more)

    def ask(self, question):
        with sqlite3.connect(f"file:{self.history}?mode=ro", uri=True) as base:
            return base.execute(question).fetchall()

    def calls(self):
        """How often each callback was called."""
        return dict(self.ask(
            "SELECT label, sum(calls) FROM token_life WHERE kind = 'token' "
            "GROUP BY label"))

    def expect_same(self, name, *command, called, shown=lambda text: text):
        """Runs a command without and with a guard."""
        plain = self.run_program(command)
        guarded = self.guarded(name, command)
        self.assertEqual(plain.returncode, guarded.returncode)
        self.assertEqual(shown(plain.stdout), shown(guarded.stdout))
        self.assertEqual(shown(plain.stderr), shown(guarded.stderr))
        calls = self.calls()
        for label in called:
            self.assertGreater(calls.get(label, 0), 0, f"{label}: {calls}")
        for sound in ("violations", "differences in conservation",
                      "events lost", "faults", "crashes"):
            self.assertEqual([(0,)], self.ask(
                f"SELECT value + 0 FROM health WHERE name = '{sound}'"), sound)
        return guarded

    def test_G30_curl(self):
        self.need("curl")
        with served(self.folder / "served") as address:
            self.expect_same(
                "libcurl", "curl", "-sS", "-i", f"{address}/big", called=[
                    "curl_easy_setopt write", "curl_easy_setopt header"])
            self.expect_same(
                "libcurl", "curl", "-sSv", f"{address}/none", called=[
                    "curl_easy_setopt write", "curl_easy_setopt debug"],
                shown=lambda text: re.sub(rb"port \d+|\d+ bytes data", b"", text))

    def test_G30_curl_after_its_object_has_died(self):
        self.need("curl")
        with served(self.folder / "served") as address:
            command = ["curl", "-sS", "-o", "got", f"{address}/big"]
            late = self.guarded("libcurl", command, CBR_GUARD_END_AT="9")
            self.assertEqual(23, late.returncode, late.stderr)
            self.assertIn(b"(23) ", late.stderr)
            self.assertEqual(
                [("curl_easy_setopt write",)],
                self.ask("SELECT DISTINCT label FROM late_callers"))
            self.assertLess((self.folder / "got").stat().st_size, 3000000)

    def test_G30_cmake_downloads(self):
        self.need("cmake")
        with served(self.folder / "served") as address:
            (self.folder / "get.cmake").write_text(
                f'file(DOWNLOAD {address}/big got STATUS how)\n'
                'message("${how}")\nfile(SIZE got size)\nmessage("${size}")\n')
            self.expect_same(
                "libcurl", "cmake", "-P", "get.cmake",
                called=["curl_easy_setopt write"])

    def test_G30_git_clones(self):
        self.need("git")
        source = self.folder / "source"
        git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", source]
        for command in (
                ["git", "init", "-q", source],
                [*git, "commit", "-q", "--allow-empty", "-m", "one"],
                [*git, "commit", "-q", "--allow-empty", "-m", "two"],
                ["git", "clone", "-q", "--bare", source, "served/it.git"],
                ["git", "-C", "served/it.git", "update-server-info"]):
            self.assertEqual(0, self.run_program(command).returncode, command)
        with served(self.folder / "served") as address:
            self.expect_same(
                "libcurl", "sh", "-c",
                f"rm -rf it && git clone -q {address}/it.git it && "
                "git -C it log --format=%H", called=["curl_easy_setopt write"])

    def test_G30_xmlwf(self):
        self.need("xmlwf")
        (self.folder / "out").mkdir()
        self.expect_same(
            "libexpat", "sh", "-c", "xmlwf -d out document.xml; cat out/*",
            called=["XML_SetElementHandler start_element",
                    "XML_SetCharacterDataHandler text"])

    def test_G30_wayland_scanner(self):
        self.need("wayland-scanner")
        self.expect_same(
            "libexpat", "wayland-scanner", "client-header", "protocol.xml",
            "/dev/stdout", called=["XML_SetElementHandler start_element"])

    def test_G30_python_parses(self):
        self.need("/usr/bin/python3")
        self.expect_same(
            "libexpat", "/usr/bin/python3", "-c", PYTHON,
            called=["XML_SetDefaultHandlerExpand other"])

    def test_G30_python_asks(self):
        self.need("/usr/bin/python3")
        self.expect_same(
            "sqlite3", "/usr/bin/python3", "-c", PYTHON_SQLITE,
            called=["sqlite3_progress_handler progress"])

    def test_G30_sqlite3_shell(self):
        self.need("sqlite3")
        self.expect_same(
            "sqlite3", "sqlite3", ":memory:", ".progress 1000 --limit 3",
            COUNT, called=["sqlite3_progress_handler progress"])

    def test_G30_sqlite3_shell_after_its_object_has_died(self):
        self.need("sqlite3")
        command = ["sqlite3", ":memory:", ".progress 1000 --limit 3", COUNT]
        late = self.guarded("sqlite3", command, CBR_GUARD_END_AT="2")
        self.assertEqual((0, b"Progress 1\n100000\n"), (late.returncode, late.stdout))
        self.assertEqual(
            [("sqlite3_progress_handler progress",)],
            self.ask("SELECT DISTINCT label FROM late_callers"))

    def test_G30_optipng(self):
        self.need("optipng")
        self.expect_same(
            "libpng", "optipng", "-o3", "-out", "small.png", "-clobber",
            "good.png", called=["png_set_read_fn read", "png_set_write_fn write"])
        shutil.copy(self.folder / "small.png", self.folder / "guarded.png")
        self.run_program(["optipng", "-o3", "-out", "small.png", "-clobber",
                          "good.png"])
        self.assertEqual((self.folder / "small.png").read_bytes(),
                         (self.folder / "guarded.png").read_bytes())

    def test_G30_pngfix(self):
        self.need("pngfix")
        self.expect_same(
            "libpng", "pngfix", "good.png", "bad.png",
            called=["png_set_read_fn read"])

    def test_G30_ctest(self):
        self.need("ctest")
        (self.folder / "CTestTestfile.cmake").write_text(
            "add_test(slow sleep 100)\n"
            "set_tests_properties(slow PROPERTIES TIMEOUT 1)\n"
            "add_test(quick true)\n")
        self.expect_same(
            "libuv", "ctest", called=["uv_timer_start timer"],
            shown=lambda text: re.sub(rb"[\d.]+ sec", b"", text))

    def is_watching(self, process):
        """Whether a process has a file watched by inotify."""
        for number in pathlib.Path(f"/proc/{process}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                if "inotify wd" in number.read_text():
                    return True
        return False

    def test_G30_gio_monitors(self):
        self.need("gio")
        watched = self.folder / "watched"

        def monitor(**more):
            watched.write_text("")
            with subprocess.Popen(
                    ["gio", "monitor", "-f", str(watched)],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env={**os.environ, **more}) as process:
                while not self.is_watching(process.pid):
                    self.assertIsNone(process.poll())
                watched.unlink()
                lines = process.stdout.readline()
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)
            return lines

        plain = monitor()
        self.assertEqual(plain, monitor(
            LD_PRELOAD=str(self.guard("glib")),
            CBR_GUARD_HISTORY=str(self.history)))
        subprocess.run([COMMAND, "recover", self.history], check=True,
                       capture_output=True)
        # It is killed inside of the callback, or after it.
        inside = self.ask("SELECT count(*) FROM in_flight")[0][0]
        self.assertGreater(
            self.calls()["g_signal_connect_data changed"] + inside, 0)


if __name__ == "__main__":
    os.environ["PKG_CONFIG_PATH"] = str(ROOT / "build/lib/pkgconfig")
    counting.run()

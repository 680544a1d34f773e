#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guards of libraries that cannot be changed (G30), under --wrap and LD_PRELOAD,
and what is said of a description with a mistake."""

import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/bin/cbr"
PROGRAMS = ROOT / "Tests/Guard"

# The library, its package for pkg-config, what dies in the test program, what
# that prints when nothing is guarded, and when it is.
LIBRARIES = {
    "libcurl": (
        "libcurl", "data", ["calls 2, late 1"],
        ["fetched 0", "reset 0", "progress 0: 1"], ["fetched 23", "calls 1, late 0"]),
    "libuv": (
        "libuv", "object", [], ["refused 1", "closed 0"],
        ["calls 2, late 0"]),
    "glib": (
        "gobject-2.0", "data", ["calls 3, late 2", "child 1"],
        ["answered 42, swapped 3", "found 1", "blocked 1, unblocked 1",
         "disconnected 1, then 0", "destroyed 1"],
        ["calls 1, late 0", "child 0"]),
    "libexpat": (
        "expat", "object", ["calls 4, late 1"],
        ["first 1", "second 1 1", "parsed 1", "reset 1", "before 1",
         "inner 1", "after 1", "outside 1", "itself 1", "texts 1"], ["calls 3, late 0"]),
    "sqlite3": (
        "sqlite3", "data", ["calls 3, late 2"],
        ["none 1", "former 1", "last 1", "committed 0", "refused 19",
         "interrupted 9", "closed 0"], ["calls 1, late 0"]),
    "libpng": (
        "libpng", "object", [], ["made 0, warned 1", "wrong 3", "written 1"],
        ["calls 1, late 0"]),
}

HEAD = "library libc.so.6\ninclude <stdlib.h>\n"
SETTER = "setter void on_exit(int object, @f, void *data)\n"

# A description, and what is said of it.
MISTAKES = [
    ("libary libx.so\n", ":1: unknown word \"libary\"; did you mean \"library\"?"),
    ("library curl\n", ":1: \"curl\" is no name of a shared library"),
    ("include curl.h\n", ":1: \"curl.h\" must be <header.h> or"),
    ("", "d.guard: there is no library; add"),
    (HEAD, "d.guard: nothing sets a callback"),
    (HEAD + "callback int f(void *data, ...)\n  default 0\n" + SETTER,
     ":3: callback f takes any number of arguments"),
    (HEAD + "callback int f(int a)\n  default 0\n" + SETTER,
     ":3: callback f has no parameter called data or object"),
    (HEAD + "callback int f(void *data)\n" + SETTER,
     ":3: what a late call of f answers is missing"),
    (HEAD + "callback int f(void *data)\n  defualt 0\n" + SETTER,
     ":4: unknown word \"defualt\"; did you mean \"default\"?"),
    (HEAD + "callback int f(void *data)\n  default\n" + SETTER,
     ":4: the line says nothing"),
    (HEAD + "callback void f(void (*data)(void))\n",
     ":3: the parameter \"void (*data)(void)\" has an unsupported type"),
    (HEAD + "callback void f(void *data)\nsetter int atexit(@g)\n",
     ":4: no callback is called g; did you mean f?"),
    (HEAD + "callback void f(void *data)\nsetter void atexit(@f)\n",
     ":4: whose callback atexit sets is missing"),
    (HEAD + "callback void f(void *data)\nsetter void atexit(int object, @f)\n",
     ":4: callback f is given data, and atexit takes none"),
    (HEAD + "callback void f(void *data)\ncallback void g(void *data)\n"
     "setter void on_exit(int object, @f, @g, void *data)\n",
     ":5: f and g would share one data parameter"),
    (HEAD + "callback void f(void *data)\n"
     "setter void on_exit(int object, @f, void *data, ...)\n",
     ":4: on_exit takes any number of arguments"),
    (HEAD + "callback void f(void *data)\n"
     "setter void on_exti(int object, @f, void *data)\n",
     ":4: libc.so.6 has no function on_exti; correct the name"),
    (HEAD + "callback void f(void *data)\n" + SETTER + SETTER,
     ":5: on_exit was described in line 4; remove one"),
    (HEAD + "callback void f(void *data)\n" + SETTER + "  succes result\n",
     ":5: unknown word \"succes\"; did you mean \"success\"?"),
    (HEAD + "callback void f(void *data)\n" + SETTER + "  success result\n",
     ":4: on_exit has no result; remove its line \"success\""),
    (HEAD + "callback void f(void *data)\n" + SETTER + "ends void free(int a)\n",
     ":5: what dies is missing"),
    (HEAD + "callback void f(void *data)\nsetter void on_exit(int, @f)\n",
     ":4: the parameter \"int\" must have a type and a name"),
    (HEAD + "callback int int(void *data)\n  default 0\n" + SETTER,
     ":3: int is a word of C"),
    (HEAD + "callback void f(unsigned long)\n" + SETTER,
     ":3: long is a word of C"),
    (HEAD + "  default 0\n", ":3: an indented line must follow"),
    (HEAD + "code\nint a;\n", ":3: the C code has no end"),
    (HEAD + "callback void f(void *data)\n  otherwise g\n" + SETTER,
     ":4: no callback is called g"),
    (HEAD + "callback void f(void *data)\noptions int clone(int object, int "
     "option, ...)\n  pair f ONE\n", ":5: a pair needs"),
    (HEAD + "callback void f(void *data)\n" + SETTER
     + "callback void g(void *data)\n", ":5: no setter sets g"),
]


def run(*command, **options):
    """Runs a command and returns how it ended and what it printed."""
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True,
        timeout=120, **options)


def flags(*packages):
    """What the compiler needs for packages of pkg-config."""
    return run("pkg-config", "--cflags", "--libs", *packages).stdout.split()


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cbr-guard-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.history = self.folder / "guard.history"

    def describe(self, text, name="d.guard"):
        path = self.folder / name
        path.write_text(text)
        return path

    def compile(self, *arguments):
        built = run(
            "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fexceptions",
            "-O1", "-g", f"-I{PROGRAMS}", *arguments)
        self.assertEqual("", built.stderr)

    def ask(self, question):
        with sqlite3.connect(f"file:{self.history}?mode=ro", uri=True) as base:
            return base.execute(question).fetchall()

    def environment(self, **more):
        return {**os.environ, "CBR_GUARD_HISTORY": str(self.history), **more}

    def expect_sound(self):
        # Nothing is in flight any more: nobody has jumped out of a call.
        self.assertEqual([], self.ask(
            "SELECT label FROM token_life "
            "WHERE kind = 'token' AND state = 'ended'"))
        for name in ("violations", "differences in conservation", "events lost"):
            self.assertEqual([("0",)], [
                (str(row[0]),) for row in self.ask(
                    f"SELECT value FROM health WHERE name = '{name}'")])


class Descriptions(Sandbox):
    def test_G30_each_mistake_has_a_sentence(self):
        for text, expected in MISTAKES:
            with self.subTest(expected):
                made = run(COMMAND, "guard", self.describe(text))
                self.assertEqual(1, made.returncode, made.stderr)
                self.assertIn(expected, made.stderr)
                self.assertEqual("", made.stdout)

    def test_G30_all_mistakes_are_said_at_once(self):
        made = run(COMMAND, "guard", self.describe(
            "libary a\ncalback b\ninclude <x.h>\n"))
        self.assertEqual(["d.guard:1", "d.guard:2"], [
            line[line.index("d.guard"):][:9]
            for line in made.stderr.splitlines() if "unknown" in line])

    def test_G30_any_bytes_are_answered(self):
        chance = random.Random(30)
        whole = [each.read_bytes() for each in (ROOT / "Guards").iterdir()]
        path = self.folder / "d.guard"
        for _ in range(300):
            text = bytearray(chance.choice(whole))
            for _ in range(chance.randrange(1, 9)):
                begin = chance.randrange(len(text))
                end = min(len(text), begin + chance.choice((1, 1, 9, 99)))
                text[begin:end] = chance.choice((
                    b"", b"(", b")", b",", b"@", b"\n", b" ", b"...", b"*",
                    bytes([chance.randrange(256)]), bytes(text[begin:end]) * 2))
            path.write_bytes(text)
            made = run(COMMAND, "guard", path, errors="replace")
            self.assertIn(made.returncode, (0, 1, 3), bytes(text))
            self.assertEqual(made.returncode == 0, made.stderr == "")

    def test_G30_one_mistake_has_one_sentence(self):
        """What follows from a line that cannot be read is not said, too."""
        made = run(COMMAND, "guard", self.describe(
            HEAD + "callback void f(void *data)\nsetter on_exit[]\n"))
        self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
        made = run(COMMAND, "guard", self.describe(
            HEAD + "callback void f(" + "x(" * 50_000 + ")\n" + SETTER))
        self.assertLess(len(made.stderr), 1_500)
        made = run(COMMAND, "guard", self.folder)
        self.assertIn("Is a directory", made.stderr)

    def test_G30_line_ends_and_marks_of_other_systems(self):
        text = ("library libc.so.6\ninclude <stdlib.h>\n"
                "callback void f(void *data)\n"
                "setter void on_exit(int object, @f, void *data)\n\n"
                "code\nint a;\nend\n")
        expected = run(COMMAND, "guard", self.describe(text)).stdout
        self.assertIn("int a;", expected)
        for mark, end in (("", "\r\n"), ("\ufeff", "\n"), ("\ufeff", "\r\n")):
            path = self.folder / "d.guard"
            path.write_bytes((mark + text.replace("\n", end)).encode())
            made = run(COMMAND, "guard", path)
            self.assertEqual((0, "", expected), (
                made.returncode, made.stderr, made.stdout))

    def test_G30_what_cannot_be_written_is_said(self):
        good = self.describe((ROOT / "Guards/libuv.guard").read_text())
        for words in ((), ("--wrap",)):
            with open("/dev/full", "w") as full:
                made = subprocess.run(
                    [COMMAND, "guard", good, *words], stdout=full,
                    stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(3, made.returncode)
            self.assertIn("standard output: ", made.stderr)
        link = self.folder / "link"
        link.symlink_to(good)
        for output in (good, link):
            text = good.read_text()
            made = run(COMMAND, "guard", good, "-o", output)
            self.assertEqual(3, made.returncode)
            self.assertIn("this is the description; name another file",
                          made.stderr)
            self.assertEqual(text, good.read_text())

    def test_G30_command_line(self):
        good = ROOT / "Guards/libuv.guard"
        for words, status in (
                ((), 2), ((good, good), 2), ((good, "-o"), 2),
                ((good, "--wrap", "-o", self.folder / "x"), 2),
                ((self.folder / "none",), 3),
                ((good, "-o", self.folder / "no/such"), 3),
                (("/bin/true",), 3), ((good,), 0), ((good, "--wrap"), 0)):
            with self.subTest(words):
                self.assertEqual(
                    status, run(COMMAND, "guard", *words).returncode)

    def test_G30_compiler_finds_the_line_of_the_description(self):
        path = self.describe(
            "library libuv.so.1\ninclude <uv.h>\n"
            "callback void timer(uv_timer_t *object)\n\n"
            "setter int uv_timer_start(uv_timer_t *object, @timer, int a)\n")
        made = self.folder / "guard.c"
        self.assertEqual(
            0, run(COMMAND, "guard", path, "-o", made).returncode)
        built = run("cc", "-c", "-o", "/dev/null", made,
                    *flags("libuv", "callbackregistry"))
        self.assertIn("d.guard:5", built.stderr)
        self.assertIn("conflicting types", built.stderr)


class Guarding(Sandbox):
    """The programs of Tests/Guard, whose subject dies too early."""

    def prepare(self, name):
        package, dies, *_ = LIBRARIES[name]
        if run("pkg-config", "--exists", package).returncode:
            print(f"{name} skipped: no {package}")
            self.skipTest(package)
        text = (ROOT / f"Guards/{name}.guard").read_text()
        path = self.describe(
            text + f'include "subject.h"\nends void subject_died(void *{dies})\n'
            "  program\n", f"{name}.guard")
        self.source = self.folder / "guard.c"
        made = run(COMMAND, "guard", path, "-o", self.source)
        self.assertEqual((0, ""), (made.returncode, made.stderr))
        self.wrap = run(COMMAND, "guard", "--wrap", path).stdout.split()
        self.flags = flags(package, "callbackregistry")
        self.program = PROGRAMS / f"{name}.c"
        self.subject = PROGRAMS / "subject.c"
        data = self.folder / "data"
        data.write_bytes(b"x" * 30000)
        self.words = [f"file://{data}"] if name == "libcurl" else []

    def build_preloaded(self):
        library = self.folder / "libsubject.so"
        self.compile("-shared", "-fPIC", "-o", library, self.subject)
        self.compile("-shared", "-fPIC", "-o", self.folder / "guard.so",
                     self.source, *self.flags)
        self.compile("-o", self.folder / "plain", self.program, library,
                     f"-Wl,-rpath,{self.folder}", *self.flags)
        return self.folder / "plain"

    def build_wrapped(self):
        for name, source in (("program", self.program),
                             ("subject", self.subject)):
            self.compile("-c", "-o", self.folder / f"{name}.o", source,
                         *self.flags)
        self.compile("-c", "-DCBR_GUARD_WRAP", "-o", self.folder / "guard.o",
                     self.source, *self.flags)
        self.compile("-o", self.folder / "wrapped", *(
            self.folder / f"{each}.o" for each in (
                "program", "subject", "guard")), *self.wrap, *self.flags)
        return self.folder / "wrapped"

    def expect_guarded(self, name, ended):
        always, guarded = LIBRARIES[name][3:]
        self.assertEqual((0, ""), (ended.returncode, ended.stderr))
        for line in always + guarded:
            if line != "fetched 0":
                self.assertIn(line, ended.stdout.splitlines())
        self.assertNotIn(": 0", ended.stdout)
        if name == "libcurl":
            self.assertIn(
                "first: 30000 bytes, headers 1, other 0", ended.stdout)
            self.assertIn(
                "copy 0: 1, 30000 bytes, headers 1, other 0", ended.stdout)
        self.expect_sound()
        refused = self.ask(
            "SELECT count(*) FROM late_callers")[0][0]
        self.assertGreater(refused, 0)

    def guard(self, name):
        self.prepare(name)
        plain = self.build_preloaded()
        ended = run(plain, *self.words)
        before, always = LIBRARIES[name][2:4]
        self.assertEqual((0, ""), (ended.returncode, ended.stderr))
        for line in before + always:
            self.assertIn(line, ended.stdout.splitlines())
        self.assertNotIn("late 0", ended.stdout)
        preload = str(self.folder / "guard.so")
        self.expect_guarded(name, run(
            plain, *self.words, env=self.environment(LD_PRELOAD=preload)))
        counted = run(plain, *self.words, env=self.environment(
            LD_PRELOAD=preload, CBR_GUARD_LEVEL="some"))
        self.assertIn("late 0", counted.stdout)
        self.assertIn("CBR_GUARD_LEVEL is none of", counted.stderr)
        off = run(plain, *self.words, env=self.environment(
            LD_PRELOAD=preload, CBR_GUARD="off"))
        self.assertNotIn("late 0", off.stdout)
        self.assertIn("the environment has CBR_GUARD=off", off.stderr)
        unopened = run(plain, *self.words, env={
            **os.environ, "LD_PRELOAD": preload,
            "CBR_GUARD_HISTORY": "/nowhere/at/all"})
        self.assertNotIn("late 0", unopened.stdout)
        self.assertIn(": nothing is guarded: ", unopened.stderr)
        self.history = self.folder / "wrapped.history"
        self.expect_guarded(name, run(
            self.build_wrapped(), *self.words, env=self.environment()))

    def test_G30_libcurl(self):
        self.guard("libcurl")

    def test_G30_libuv(self):
        self.guard("libuv")

    def test_G30_glib(self):
        self.guard("glib")

    def test_G30_libexpat(self):
        self.guard("libexpat")

    def test_G30_sqlite3(self):
        self.guard("sqlite3")

    def test_G30_hooks_of_the_registry_are_its_own(self):
        self.prepare("sqlite3")
        self.build_preloaded()
        self.describe(
            "#include <callback_registry.h>\n#include <sqlite3.h>\n"
            "static int f(void *data) { (void)data; return 0; }\n"
            "int main(void) {\n"
            "  cbr_registry registry; sqlite3 *base;\n"
            "  sqlite3_open(\":memory:\", &base);\n"
            "  sqlite3_commit_hook(base, f, 0);\n"
            "  cbr_registry_options options = CBR_REGISTRY_OPTIONS_INIT;\n"
            "  options.history_path = \"its.history\";\n"
            "  if (cbr_registry_open(&options, &registry)) return 1;\n"
            "  if (cbr_registry_close(registry, CBR_FOREVER)) return 2;\n"
            "  return sqlite3_close(base);\n}\n", "its.c")
        self.compile("-o", self.folder / "its", self.folder / "its.c",
                     *self.flags)
        ended = run(self.folder / "its", cwd=self.folder, env=self.environment(
            LD_PRELOAD=f"{self.folder}/libsubject.so {self.folder}/guard.so"))
        self.assertEqual((0, ""), (ended.returncode, ended.stderr))
        self.assertEqual([("sqlite3_commit_hook commit",)], self.ask(
            "SELECT label FROM token_life WHERE kind = 'token'"))

    def test_G30_libpng(self):
        self.guard("libpng")

    def test_G30_forked_child_goes_on(self):
        self.prepare("sqlite3")
        self.program = PROGRAMS / "forked.c"
        plain = self.build_preloaded()
        ended = run(plain, env=self.environment(
            LD_PRELOAD=str(self.folder / "guard.so")))
        self.assertEqual(
            (0, "", "inherited 1, more 1\nparent 3\n"),
            (ended.returncode, ended.stderr, ended.stdout))
        self.assertEqual(2, self.ask("SELECT count(*) FROM run")[0][0])

    def test_G30_dead_data_stays_dead(self):
        self.prepare("libcurl")
        self.program = PROGRAMS / "reborn.c"
        plain = self.build_preloaded()
        for program, more in (
                (plain, {"LD_PRELOAD": str(self.folder / "guard.so")}),
                (self.build_wrapped(), {})):
            ended = run(program, *self.words, env=self.environment(**more))
            self.assertEqual((0, ""), (ended.returncode, ended.stderr))
            self.assertEqual(
                ["fetched 23 23 23 23 0 0", "others 1, data 1, child 0",
                 "calls 0, late 0"], ended.stdout.splitlines())
        self.assertEqual([("object died", 6)], self.ask(
            "SELECT ended_reason, count(*) FROM late_callers GROUP BY 1"))
        self.expect_sound()

    def test_G30_archive_with_the_registry_inside(self):
        self.prepare("sqlite3")
        self.flags = [
            f"-I{ROOT}/include", f"-L{ROOT}/build/lib", "-l:libcallbackregistry.a",
            "-lsqlite3", "-lffi", "-lm", "-ldl"]
        ended = run(self.build_wrapped(), env=self.environment())
        self.assertIn("link libcallbackregistry.so instead", ended.stderr)
        self.assertIn("calls 3, late 2", ended.stdout)

    def test_G30_missing_function(self):
        self.describe("", "x.c").write_text(
            "void on(int *object, void (*f)(void *), void *data);\n"
            "void free_nothing(int *object) { (void)object; }\n"
            "int main(void) { int a = 0; on(&a, 0, 0); return 0; }\n")
        self.describe(
            "#ifndef X\n#define X\n"
            "void on(int *object, void (*f)(void *), void *data);\n#endif\n",
            "x.h")
        path = self.describe(
            "library libnowhere.so.1\ninclude \"x.h\"\n"
            "callback void f(void *data)\n"
            "setter void on(int *object, @f, void *data)\n")
        made = self.folder / "guard.c"
        self.assertEqual(
            0, run(COMMAND, "guard", path, "-o", made).returncode)
        self.compile("-shared", "-fPIC", "-o", self.folder / "guard.so", made,
                     f"-I{self.folder}", *flags("callbackregistry"))
        self.compile("-o", self.folder / "x", self.folder / "x.c",
                     self.folder / "guard.so", f"-Wl,-rpath,{self.folder}")
        ended = run(self.folder / "x")
        self.assertEqual(-6, ended.returncode)
        self.assertIn("libnowhere.so.1 has the function on", ended.stderr)


class LivingObjects(Sandbox):
    def test_G18_owners_of_gobjects(self):
        if run("pkg-config", "--exists", "gobject-2.0").returncode:
            print("owners of GObjects skipped: no gobject-2.0")
            self.skipTest("gobject-2.0")
        needed = flags("gobject-2.0", "callbackregistry")
        source = PROGRAMS / "gobject.c"
        self.compile("-o", self.folder / "gobject", source, "-pthread", *needed)
        ended = run(self.folder / "gobject")
        self.assertEqual((0, ""), (ended.returncode, ended.stderr))
        built = run("c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra",
                    "-Werror", "-x", "c++", "-include",
                    "callback_registry_glib.h", "/dev/null", *needed)
        self.assertEqual("", built.stderr)


if __name__ == "__main__":
    os.environ["PKG_CONFIG_PATH"] = str(ROOT / "build/lib/pkgconfig")
    counting.run()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `make` built: symbols, needs, header, packaging, rebuilding.

Run by `make test-build`, from the root of the repository.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import counting

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "Tests/Build"
INCLUDE = ROOT / "include"
HEADER = INCLUDE / "callback_registry.h"
LIB = ROOT / "build/lib"
SHARED = LIB / "libcallbackregistry.so"
ARCHIVE = LIB / "libcallbackregistry.a"
SMOKE = HERE / "smoke.c"

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
SWIFT = pathlib.Path(shutil.which("swiftc")).resolve().parent
CLANG = SWIFT / "clang"


def run(*command, **options):
    """Returns what the command prints; its failure is the test's."""
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True,
        cwd=options.pop("cwd", ROOT), **options)
    if result.returncode != 0:
        raise AssertionError(
            f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def pkg_config(*options, path=LIB / "pkgconfig"):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(path)}
    return run(
        "pkg-config", *options, "callbackregistry", env=environment).split()


def declarations():
    """Returns what the header declares and does not define: each function with
    the types of its parameters."""
    tree = json.loads(run(
        CLANG, "-fsyntax-only", "-Xclang", "-ast-dump=json", "-x", "c",
        HEADER))
    return {
        node["name"]: [
            part["type"]["qualType"] for part in node.get("inner", [])
            if part["kind"] == "ParmVarDecl"]
        for node in tree["inner"]
        if node["kind"] == "FunctionDecl"
        and node["name"].startswith("cbr_")
        and node.get("storageClass") != "static"}


def declared_functions():
    return set(declarations())


def symbols(*options):
    """Returns the lines of nm as (name, kind)."""
    lines = [line.split() for line in run("nm", *options).splitlines()]
    return [(line[-1], line[-2]) for line in lines if len(line) >= 2]


def dynamic():
    """Returns the shared library's dynamic section as (tag, value)."""
    return re.findall(r"\((\w+)\)\s+(.*)", run("readelf", "-dW", SHARED))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "program"


class SharedLibrary(Case):
    def test_needs_libc_libm_sqlite_and_libffi_alone(self):
        needed = {value for tag, value in dynamic() if tag == "NEEDED"}
        # libm is linked where the compiler has not done without.
        needed -= {f"Shared library: [{name}]" for name in (
            "libm.so.6", "ld-linux-x86-64.so.2")}
        self.assertEqual(needed, {
            f"Shared library: [{name}]" for name in (
                "libc.so.6", "libsqlite3.so.0", "libffi.so.8")})

    def test_name_and_links(self):
        self.assertIn(
            ("SONAME", "Library soname: [libcallbackregistry.so.0]"),
            dynamic())
        for link in (SHARED, LIB / "libcallbackregistry.so.0"):
            self.assertEqual(
                os.readlink(link), "libcallbackregistry.so.0.1.0")

    def test_has_no_search_path_and_cannot_be_unloaded(self):
        tags = dict(dynamic())
        self.assertNotIn("RUNPATH", tags)
        self.assertNotIn("RPATH", tags)
        self.assertNotIn("TEXTREL", tags)
        self.assertIn("NOW", tags["FLAGS_1"])
        self.assertIn("NODELETE", tags["FLAGS_1"])

    def test_memory_is_never_writable_and_executable(self):
        segments = run("readelf", "-lW", SHARED)
        self.assertIn("GNU_RELRO", segments)
        self.assertNotIn("RWE", segments)

    def test_static_tls_is_small_enough_for_dlopen(self):
        size = re.search(
            r"^\s+TLS(?:\s+0x\w+){4}\s+(0x\w+)",
            run("readelf", "-lW", SHARED), re.M)
        self.assertLessEqual(int(size[1], 16) if size else 0, 16)

    def test_exports_the_header_and_nothing_else(self):
        exported = dict(symbols("-D", "--defined-only", SHARED))
        self.assertEqual(exported.pop("CBR_0"), "A")
        self.assertEqual(set(exported.values()), {"T"})
        self.assertEqual(
            set(exported),
            {f"{name}@@CBR_0" for name in declared_functions()})


class Archive(Case):
    def test_defines_the_header_and_nothing_else(self):
        self.assertEqual(
            dict(symbols("--extern-only", "--defined-only", ARCHIVE)),
            {name: "T" for name in declared_functions()})

    def test_test_variants_define_the_header_too(self):
        for variant in ("hooks", "tsan", "asan"):
            with self.subTest(variant):
                names = {name for name, _ in symbols(
                    "--extern-only", "--defined-only",
                    ROOT / "build" / variant / ARCHIVE.name)}
                self.assertLessEqual(declared_functions(), names)

    def test_sanitizers_see_into_swift_code(self):
        for variant, probe in (("tsan", "__tsan_"), ("asan", "__asan_")):
            with self.subTest(variant):
                code = run(
                    "objdump", "-dr", "--disassemble=cbr_enter",
                    ROOT / "build" / variant / "callbackregistry.o")
                self.assertIn(probe, code)


class EmbeddedCode(Case):
    """The engine leaves Swift's own run-time services alone."""

    def callers(self, pattern):
        """Returns the engine's functions that refer to such a symbol."""
        found, function = set(), ""
        for line in run("objdump", "-dr", LIB / "callbackregistry.o") \
                .splitlines():
            if match := re.match(r"[0-9a-f]+ <(.*)>:$", line):
                function = match[1]
            elif re.search(rf"R_X86_64_\w+\s+(?:{pattern})\b", line) \
                    and not function.startswith(("swift_", "_swift_", "$es")):
                found.add(function)
        return found

    def test_no_global_is_initialized_lazily(self):
        self.assertEqual(self.callers("swift_once"), set())

    def test_no_memory_comes_from_swift(self):
        # Swift's own allocations trap when memory runs out.
        self.assertEqual(
            self.callers("swift_allocObject|swift_slowAlloc|posix_memalign"),
            {"cbr_allocate"})


class Headers(Case):
    """Nothing in the headers is warned of, nor in what their macros become.

    The folder is given by -I, so that they count as the program's own."""

    WARNINGS = [*STRICT, "-Wpedantic", "-Wcast-function-type", "-Wconversion",
                "-Wshadow"]
    WARNINGS_CXX = [*WARNINGS, "-Wold-style-cast"]
    # gcc knows no -Wcast-function-type-strict.
    STRICT_CASTS = {CLANG: ["-Wcast-function-type-strict"],
                    SWIFT / "clang++": ["-Wcast-function-type-strict"]}

    def check(self, compiler, language, standard, warnings, text):
        with self.subTest(compiler=str(compiler), standard=standard):
            source = self.folder / f"include.{language}"
            source.write_text(text)
            run(compiler, f"-std={standard}", *warnings,
                *self.STRICT_CASTS.get(compiler, []), "-fsyntax-only",
                f"-I{INCLUDE}", source)

    def check_c(self, text):
        for compiler in ("gcc", CLANG):
            for standard in ("c99", "c11", "c17", "c2x"):
                self.check(compiler, "c", standard, self.WARNINGS, text)

    def check_cxx(self, text):
        for compiler in ("g++", SWIFT / "clang++"):
            for standard in ("c++17", "gnu++17", "c++20", "c++23"):
                self.check(compiler, "cc", standard, self.WARNINGS_CXX, text)

    def test_stand_alone(self):
        self.check_c(2 * "#include <callback_registry.h>\n")
        for name in "callback_registry.h", "callback_registry.hpp":
            self.check_cxx(2 * f"#include <{name}>\n")

    def test_a_result_that_matters_must_be_used(self):
        """D17: what cbr_invalidate says is running."""
        text = ("#include <callback_registry.h>\n"
                "void end(cbr_token it) { cbr_invalidate(it, 1); }\n")
        for compiler, language in (("gcc", "c"), (CLANG, "c"), ("g++", "cc"),
                                   (SWIFT / "clang++", "cc")):
            with self.subTest(compiler=str(compiler)):
                source = self.folder / f"unused.{language}"
                source.write_text(text)
                with self.assertRaisesRegex(AssertionError, "cbr_invalidate"):
                    run(compiler, "-Werror", "-c", f"-I{INCLUDE}", source,
                        "-o", self.program)

    def test_lines_are_short(self):
        for path in INCLUDE.glob("*.h*"):
            for line in path.read_text().splitlines():
                self.assertLess(len(line), 80, line)

    def test_macros(self):
        text = (HERE / "macros.c").read_text()
        for name in re.findall(r"#define (CBR_\w+)", HEADER.read_text()):
            if not re.match(r"CBR_(VERSION.*|WARN_UNUSED|FAST|HERE)$", name):
                self.assertIn(name, text)
        self.check_c(text)
        self.check_cxx(text)
        self.check_cxx(text.replace(".h>", ".hpp>"))

    def test_blocking_is_documented(self):
        """A20: who waits says so."""
        found = re.findall(
            r"/\*((?:(?!\*/).)*)\*/\s*(?:CBR_\w+\s+)*"
            r"cbr_\w+ (cbr_\w+)\(([^;{]*?)\);", HEADER.read_text(), re.S)
        waiting = {name: text for text, name, parameters in found
                   if "timeout_ns" in parameters}
        self.assertLessEqual(
            {"cbr_registry_close", "cbr_invalidate_wait", "cbr_audit_flush"},
            set(waiting))
        for name, text in waiting.items():
            self.assertIn("Blocking: ", text, name)

    def test_cxx_wrappers(self):
        # Checked as they are used: a template that is not says little.
        for name in ("Examples/quickstart.cpp", "Tests/C/header_guard.cpp",
                     "Tests/C/header_signals.cpp",
                     "Tests/C/header_queues.cpp",
                     "Tests/C/header_trampolines.cpp"):
            self.check_cxx((ROOT / name).read_text())


class TypeTags(Case):
    """A type of one source file is another type in every other one (G10)."""

    COMPILERS = ("g++", SWIFT / "clang++")
    OPTIONS = (["-O0"], ["-O2"], ["-O2", "-fno-rtti"],
               ["-O2", "-std=gnu++20", "-fvisibility=hidden"])

    def tags(self, compilers, options):
        """Returns what tags.cpp prints as {(unit, kind, signature): tag}."""
        parts = []
        for unit, compiler in enumerate(compilers, 1):
            parts.append(self.folder / f"tags{unit}.o")
            run(compiler, "-std=gnu++17", *STRICT, "-Wno-unused", *options,
                f"-DUNIT={unit}", f"-I{INCLUDE}", "-c", HERE / "tags.cpp",
                "-o", parts[-1])
        run("g++", *parts, *pkg_config("--libs"), "-o", self.program)
        return self.read_tags()

    def read_tags(self):
        lines = re.findall(
            r"(\d) (\w+) (.*): (\w+)\n", run(self.program))
        return {line[:3]: line[3] for line in lines}

    def test_own_types_match_nowhere_else(self):
        for first in self.COMPILERS:
            for second in self.COMPILERS:
                for options in self.OPTIONS if first == second else [["-O2"]]:
                    with self.subTest(f"{first} {second} {options}"):
                        tags = self.tags((first, second), options)
                        self.assertGreater(len(tags), 60)
                        own = [tag for (_, kind, _), tag in tags.items()
                               if kind == "own"]
                        self.assertEqual(len(set(own)), len(own))
                        if first != second:
                            continue
                        for (unit, kind, signature), tag in tags.items():
                            if kind == "shared":
                                self.assertEqual(
                                    tag, tags["1", kind, signature])

    def test_shared_types_match_across_objects_that_hide_their_symbols(self):
        for compiler in self.COMPILERS:
            with self.subTest(str(compiler)):
                library = self.folder / "libtags.so"
                options = ["-std=gnu++17", "-O2", "-fvisibility=hidden",
                           "-Wno-unused", f"-I{INCLUDE}", HERE / "tags.cpp"]
                run(compiler, *options, "-DUNIT=1", "-fPIC", "-shared", "-o",
                    library, *pkg_config("--libs"))
                run(compiler, *options, "-DUNIT=2", library,
                    f"-Wl,-rpath,{self.folder}", *pkg_config("--libs"), "-o",
                    self.program)
                tags = self.read_tags()
                for (unit, kind, signature), tag in tags.items():
                    # A template of a name with Z, and a member of such a class,
                    # may be local for all that its mangled name says.
                    if kind == "shared" and not re.search(
                            "<scope::Zone>|Zone::\\*", signature):
                        self.assertEqual(tag, tags["1", kind, signature])

    def test_common_names_match_across_compilers(self):
        tags = self.tags(self.COMPILERS, ["-O2"])
        for signature in (
                "void(global *)", "void(scope::Zone &, scope::Zone::inner)",
                "void(scope::choice, plain *)", "long(long)"):
            self.assertEqual(tags["1", "shared", signature],
                             tags["2", "shared", signature])


class Tables(unittest.TestCase):
    """No function is forgotten where each is to be tried."""

    def called_in(self, name):
        text = (ROOT / "Tests/C" / name).read_text()
        return set(re.findall(r"\b(cbr_\w+)\(", text))

    def test_each_function_is_tried_inside_everything(self):
        self.assertEqual(
            declared_functions() - self.called_in("reentrancy.c"), set())

    def test_each_function_with_a_handle_is_passed_wrong_ones(self):
        handles = {
            "cbr_handle", "cbr_registry", "cbr_token", "cbr_owner",
            "cbr_lease_handle", "cbr_slot", "cbr_signal", "cbr_session",
            "cbr_task", "cbr_reply", "cbr_thunk"}
        functions = {
            name for name, types in declarations().items()
            if handles & set(types)}
        self.assertGreater(len(functions), 40)
        self.assertEqual(functions - self.called_in("handles.c"), set())


class Linking(Case):
    def build(self, *words):
        run("cc", "-std=c99", *STRICT, SMOKE, *words, "-o", self.program)
        return run(self.program)

    def test_shared_library_by_pkg_config(self):
        self.build(*pkg_config("--cflags", "--libs"))
        self.assertIn(
            "libcallbackregistry.so.0", run("readelf", "-d", self.program))

    def test_archive_by_pkg_config(self):
        # SQLite's own static archive says that it uses dlopen.
        self.build(
            "-static", *pkg_config("--static", "--cflags", "--libs"))

    def test_archive_beside_shared_system_libraries(self):
        self.build(f"-I{INCLUDE}", ARCHIVE, "-lsqlite3", "-lffi", "-lm")

    def test_cxx_program(self):
        source = self.folder / "smoke.cc"
        shutil.copy(SMOKE, source)
        run("g++", "-std=c++17", *STRICT, source,
            *pkg_config("--cflags", "--libs"), "-o", self.program)
        run(self.program)

    def test_archive_beside_the_swift_runtime(self):
        run(SWIFT / "swiftc", HERE / "smoke.swift", f"-I{INCLUDE}", ARCHIVE,
            "-lsqlite3", "-lffi", "-module-cache-path", self.folder / "cache",
            "-o", self.program)
        self.assertEqual(run(self.program), "CBR_OK [1, 2, 3]\n")

    def test_dlopen_and_dlclose_a_hundred_times(self):
        run("cc", "-std=c99", *STRICT, HERE / "load.c", f"-I{INCLUDE}",
            "-ldl", "-pthread", "-o", self.program)
        run(self.program, SHARED)

    def test_plugin_is_unloaded_while_it_is_called(self):
        plugin = self.folder / "plugin.so"
        words = ["cc", "-std=c99", "-O1", *STRICT, f"-I{INCLUDE}"]
        run(*words, "-shared", "-fPIC", HERE / "plugin.c", "-o", plugin)
        run(*words, "-D_GNU_SOURCE", HERE / "unload.c", "-ldl", "-pthread",
            *pkg_config("--libs"), "-o", self.program)
        run(self.program, plugin)


class Checked(Case):
    def test_valgrind_finds_nothing(self):
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not installed")
        run("cc", "-std=gnu11", "-g", *STRICT, HERE / "checked.c",
            *pkg_config("--cflags", "--libs"), "-pthread", "-o", self.program)
        run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
            "--errors-for-leak-kinds=definite,indirect", self.program,
            self.folder / "history")


class Packaging(Case):
    def make(self, target, *variables):
        run("make", "--no-print-directory", target, f"DESTDIR={self.folder}",
            *variables)

    def files(self):
        return {
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*") if not path.is_dir()}

    def test_install_and_uninstall(self):
        self.make("install", "PREFIX=/usr")
        self.assertEqual({
            "usr/bin/cbr",
            "usr/include/callback_registry.h",
            "usr/include/callback_registry.hpp",
            "usr/include/callback_registry_glib.h",
            "usr/include/callback_registry_guard.h",
            *(f"usr/include/callback_registry_guard/{each}.h" for each in (
                "calls", "objects", "options", "real", "registry", "setting")),
            *(f"usr/share/callbackregistry/guards/{each}.guard" for each in (
                "glib", "libcurl", "libexpat", "libpng", "libuv", "sqlite3")),
            "usr/lib/libcallbackregistry.a",
            "usr/lib/libcallbackregistry.so",
            "usr/lib/libcallbackregistry.so.0",
            "usr/lib/libcallbackregistry.so.0.1.0",
            "usr/lib/pkgconfig/callbackregistry.pc",
            "usr/share/callbackregistry/verify.sql",
            "usr/share/man/man1/cbr.1"}, self.files())
        self.make("uninstall", "PREFIX=/usr")
        self.assertEqual(self.files(), set())

    def test_installed_library_is_found_by_pkg_config(self):
        prefix = self.folder / "opt"
        self.make("install", f"PREFIX={prefix}", "DESTDIR=")
        flags = pkg_config(
            "--cflags", "--libs", path=prefix / "lib/pkgconfig")
        self.assertEqual(flags, [
            f"-I{prefix}/include", f"-L{prefix}/lib", "-lcallbackregistry"])
        example = ROOT / "Examples/quickstart.cpp"
        for compiler, source in ("cc", SMOKE), ("c++", example):
            run(compiler, source, *flags, "-o", self.program)
            run(self.program, cwd=self.folder,
                env={"LD_LIBRARY_PATH": f"{prefix}/lib"})


class Building(Case):
    def test_nothing_is_made_twice(self):
        run("make", "--question", "lib")

    def test_same_sources_elsewhere_give_the_same_libraries(self):
        shutil.copytree(
            ROOT, self.folder, dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(".*", "build"))
        run("make", "lib", cwd=self.folder)
        for library in (SHARED, ARCHIVE):
            again = self.folder / library.relative_to(ROOT)
            self.assertEqual(
                library.read_bytes(), again.read_bytes(), library.name)


if __name__ == "__main__":
    counting.run_together()

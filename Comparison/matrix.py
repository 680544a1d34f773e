#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the rows of rows.cpp on this library and on its peers.

    matrix.py           prints the table, and writes it to
                        Documentation/EmissionMatrix.md
    matrix.py --check   compares it with what is published there

Fails when a cell of this library is no pass; what a peer does is only told. A
peer that is not installed is left out, with a message, and so is one of another
version when the table is compared.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = ROOT / "build" / "matrix"
PUBLISHED = ROOT / "Documentation" / "EmissionMatrix.md"
CXX = shlex.split(os.environ.get("CXX", "c++"))
OPTIONS = ["-std=gnu++17", "-O1", "-g", "-Wall", "-Wextra", "-fPIC",
           "-fsanitize=address", "-pthread", f"-I{OUT}"]
OURS = "ours"
# The source in Peers, and what it needs: a package of pkg-config, or a header.
PEERS = {
    "signals2": ("boost::signals2", "libboost-dev", None,
                 "boost/signals2.hpp"),
    "sigc": ("sigc++", "libsigc++-2.0-dev", "sigc++-2.0", None),
    "qt": ("Qt", "qtbase5-dev", "Qt5Core", None),
    "gobject": ("GLib", "libglib2.0-dev", "gobject-2.0", None),
}

HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# What may happen during an emission

Each row is one story, told to each library in the same words
(`Comparison/rows.cpp`), and each cell is what came of it when it was run.
`make matrix` runs them and writes this page; `make test` compares. What is
expected follows from the rules of `cbr_emit` (G20). A peer that does something
else need not be wrong by its own manual: that is for its readers to know before
they change from one to the other.

Every cell is a process of its own, with ten seconds to end and the address
sanitizer; what is freed is filled, so that code which is not checked trips over
it, too. Where letters stand for handlers, the first one connected is `a`.

"""

TAIL = """
"Between check and call" is tried without a look inside: the handler stops at its
first instruction, when its library has decided to call it and it has touched
nothing, until the other thread has returned from disconnecting and has freed
the memory. This library's own tests also stop it between its check and its call
(A18 in `Tests/C/emissions.c`). boost::signals2 has `track` for this, which keeps
the memory from being freed instead.
"""


def flags(*packages):
    return shlex.split(subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", *packages], text=True))


def compile_part(source, *options):
    target = OUT / (source.stem + ".o")
    subprocess.run([*CXX, *OPTIONS, "-c", source, "-o", target, *options],
                   check=True)
    return target


def missing(package, header):
    """Whether what a peer needs is not installed."""
    if package:
        return subprocess.run(["pkg-config", "--exists", package]).returncode
    probe = subprocess.run(
        [*CXX, "-fsyntax-only", "-x", "c++", "-"], text=True,
        input=f"#include <{header}>\n", stderr=subprocess.DEVNULL)
    return probe.returncode


def moc():
    """Qt's generator makes the code of the sender's signal."""
    folder = subprocess.check_output(
        ["pkg-config", "--variable=host_bins", "Qt5Core"], text=True).strip()
    subprocess.run([f"{folder}/moc", HERE / "Peers" / "qt.cpp", "-o",
                    OUT / "qt.moc"], check=True)


def run(name, common, options):
    """Returns a peer's name with its version, and its cells by row."""
    program = OUT / name
    subprocess.run([*CXX, *OPTIONS, HERE / "Peers" / f"{name}.cpp", *common,
                    "-o", program, *options], check=True)
    # GLib's own pools would keep what is freed from being filled.
    output = subprocess.check_output(
        [program], text=True, env={**os.environ, "G_SLICE": "always-malloc"})
    title, cells = None, {}
    for line in output.splitlines():
        kind, *fields = line.split("\t")
        if kind == "peer":
            title = fields[0]
        else:
            row, expected, verdict, word = fields
            cells[row, expected] = {
                "pass": "pass", "none": word, "fail": f"fail: {word}"}[verdict]
    return title, cells


def columns():
    """Runs everything there is; returns [(title, cells)], ours first."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    common = [compile_part(HERE / "rows.cpp"), compile_part(HERE / "main.cpp")]
    found = [run(OURS, common, flags("callbackregistry"))]
    for name, (title, debian, package, header) in PEERS.items():
        if missing(package, header):
            print(f"{title} skipped: {debian} is not installed")
            continue
        if name == "qt":
            moc()
        found.append(run(name, common, flags(package) if package else []))
    return found


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def table(found):
    titles = [title for title, _ in found]
    text = line(["a handler that is, or", "what has to happen, and why", *titles])
    text += line(["---"] * (2 + len(titles)))
    for row, expected in found[0][1]:
        text += line([row, expected,
                      *(cells[row, expected] for _, cells in found)])
    return text


def published():
    """Returns the published columns: {title: {row: cell}}."""
    rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")]
            for line in PUBLISHED.read_text().splitlines()
            if line.startswith("| ")]
    titles = rows[0][2:]
    return {title: {(row[0], row[1]): row[2 + at] for row in rows[2:]}
            for at, title in enumerate(titles)}


def compare(found):
    """Says how the table differs from what is published; counts columns."""
    known, passed, failed = published(), 0, 0
    for title, cells in found:
        if title not in known and title != found[0][0]:
            print(f"{title} skipped: another version is published")
        elif cells == known.get(title):
            passed += 1
        else:
            failed += 1
            print(f"{title} is not as published; run make matrix:")
            for key, cell in cells.items():
                former = known.get(title, {}).get(key)
                if cell != former:
                    print(f"  {key[0]}: {cell}, published: {former}")
    return passed, failed


def main():
    found = columns()
    text = table(found)
    print(text)
    wrong = [f"{row[0]}: {cell}" for row, cell in found[0][1].items()
             if cell != "pass"]
    for each in wrong:
        print(f"{found[0][0]}: {each}")
    passed, failed = len(found[0][1]) - len(wrong), len(wrong)
    if sys.argv[1:] == ["--check"]:
        as_published, changed = compare(found)
        passed, failed = passed + as_published, failed + changed
    elif not wrong:
        PUBLISHED.write_text(HEAD + text + TAIL)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())

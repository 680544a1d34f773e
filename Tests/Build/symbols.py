# SPDX-License-Identifier: Apache-2.0
"""The public symbols of the Swift module, read by the compiler from what
`swift build` has left. Members that are inherited are not among them."""

import json
import pathlib
import platform
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / ".build/debug"
TOOLCHAIN = pathlib.Path(shutil.which("swiftc")).resolve().parent
GRAPHS = ROOT / "build/symbols"
GRAPH = GRAPHS / "CallbackRegistry.symbols.json"

MODULE = ["-module-name", "CallbackRegistry", "-I", BUILT / "Modules",
          "-I", BUILT / "CPlatform.build", "-I", ROOT / "Sources/CSQLite",
          "-target", f"{platform.machine()}-unknown-linux-gnu"]


def run(*command, **options):
    """Returns what the command prints; stops the program if it fails."""
    result = subprocess.run(
        [str(word) for word in command], cwd=options.pop("cwd", ROOT),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def extract():
    """Builds the module, and returns its graph of symbols, which is left in
    GRAPHS."""
    run("swift", "build", "--target", "CallbackRegistry")
    GRAPHS.mkdir(parents=True, exist_ok=True)
    run("swift", "symbolgraph-extract", *MODULE,
        "-minimum-access-level", "public", "-skip-synthesized-members",
        "-output-dir", GRAPHS)
    return json.loads(GRAPH.read_text())


def noncopyable():
    """Returns the names of types that are not copyable, which the graph does
    not tell."""
    interface = run(TOOLCHAIN / "swift-synthesize-interface", *MODULE)
    return re.findall(
        r"\b(?:struct|enum) (\w+)(?:<[^<>{]*>)? : [^{]*~Copyable\b", interface)


def name(symbol):
    """Returns such as `Registry.Item.kind`."""
    return ".".join(symbol["pathComponents"])


def declaration(symbol):
    """Returns it as it is written, on one line."""
    text = "".join(
        part["spelling"] for part in symbol["declarationFragments"])
    return " ".join(text.split())

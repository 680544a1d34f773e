#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation of the Swift module, by `docc` of the toolchain,
into build/docs, as pages for any web server. Warnings are errors, and so is a
public symbol without documentation.
"""

import pathlib
import shutil

import symbols

CATALOGUE = symbols.ROOT / "Sources/CallbackRegistry/CallbackRegistry.docc"
OUT = symbols.ROOT / "build/docs"
START = "documentation/callbackregistry/"


def is_documented(symbol):
    lines = symbol.get("docComment", {}).get("lines", [])
    return any(line["text"].strip() for line in lines)


def coverage(graph):
    """Prints how many symbols are documented; returns whether all are."""
    missing = [symbol for symbol in graph["symbols"]
               if not is_documented(symbol)]
    for symbol in sorted(missing, key=symbols.name):
        uri = symbol.get("location", {}).get("uri", "")
        print(f"not documented: {symbols.name(symbol)} {pathlib.Path(uri).name}")
    count = len(graph["symbols"])
    documented = count - len(missing)
    print(f"{documented} of {count} public symbols are documented: "
          f"{100 * documented // count} %")
    return not missing


def build():
    shutil.rmtree(OUT, ignore_errors=True)
    symbols.run(
        symbols.TOOLCHAIN / "docc", "convert", CATALOGUE,
        "--additional-symbol-graph-dir", symbols.GRAPHS,
        "--output-path", OUT, "--warnings-as-errors",
        "--transform-for-static-hosting",
        "--fallback-display-name", "CallbackRegistry",
        "--fallback-bundle-identifier", "callbackregistry",
        "--fallback-default-module-kind", "Package")
    # Nothing is at the root otherwise.
    (OUT / "index.html").write_text(
        f'<meta http-equiv="refresh" content="0; url={START}">\n'
        f'<a href="{START}">CallbackRegistry</a>\n')


def main():
    is_complete = coverage(symbols.extract())
    build()
    pages = len(list((OUT / "documentation").rglob("index.html")))
    print(f"{pages} pages in {OUT.relative_to(symbols.ROOT)}; to read them: "
          f"python3 -m http.server --directory build/docs")
    print("2 passed, 0 failed" if is_complete else "1 passed, 1 failed")
    raise SystemExit(not is_complete)


main()

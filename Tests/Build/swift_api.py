#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the public API of the Swift module with Documentation/SwiftAPI.txt,
so that it changes on purpose only. With --write (`make api`) it notes the API as
it is now. Whatever is noted, the API shows no name of C and no pointer.
"""

import difflib
import re
import sys

import symbols

PAGE = symbols.ROOT / "Documentation/SwiftAPI.txt"

HEAD = """\
The public API of the Swift module, made from its symbols by `make api`.
"""

# What every type is, if it does not say otherwise.
SILENT = {"Swift.Copyable", "Swift.Escapable", "Swift.SendableMetatype",
          "Swift.BitwiseCopyable"}

# The purpose of a thunk is to be a function of C.
OF_C = re.compile(r"\bcbr_|Unsafe|OpaquePointer|@convention\(c\)")
MAY_BE_OF_C = re.compile(r"Thunk\b")


def api(graph):
    """Returns a line for each symbol and each conformance, sorted."""
    names = {symbol["identifier"]["precise"]: symbols.name(symbol)
             for symbol in graph["symbols"]}
    lines = {f"{symbols.name(symbol)}: {symbols.declaration(symbol)}"
             for symbol in graph["symbols"]}
    for each in graph["relationships"]:
        to = names.get(each["target"], each.get("targetFallback"))
        if each["kind"] == "conformsTo" and to not in SILENT:
            lines.add(f"{names[each['source']]} conforms to {to}")
    lines.update(f"{each} is not copyable" for each in symbols.noncopyable())
    return sorted(lines)


def of_c(lines):
    return [line for line in lines
            if OF_C.search(line) and not MAY_BE_OF_C.match(line)]


def main():
    lines = api(symbols.extract())
    text = HEAD + "".join(f"\n{line}" for line in lines) + "\n"
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text)
    noted = PAGE.read_text()
    changes = list(difflib.unified_diff(
        noted.splitlines(), text.splitlines(), "SwiftAPI.txt", "now", "", "",
        0, ""))
    if changes:
        print("\n".join(changes))
        print("The public API is another one than is noted. If that is meant, "
              "run `make api`.")
    pointers = of_c(lines)
    for line in pointers:
        print(f"not for users of Swift: {line}")
    failed = bool(changes) + bool(pointers)
    print(f"{2 - failed} passed, {failed} failed")
    raise SystemExit(failed > 0)


main()

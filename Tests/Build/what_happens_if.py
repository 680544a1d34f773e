#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Documentation/WhatHappensIf.md from the table that Tests/C/reentrancy.c
runs, so that each of its cells has a test. Without --write it only compares.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "Tests/C/reentrancy.c"
PAGE = ROOT / "Documentation/WhatHappensIf.md"

LETTERS = {
    "O": "ok", "A": "already", "D": "deferred", "S": "stale", "K": "kind",
    "E": "interface", "Y": "dying", "I": "invalid", "C": "closed",
    "P": "pending", "B": "already or deferred", "M": "empty", "-": "–"}

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# What happens if …

… a function of the library is called from inside one of your own. Nothing is
forbidden, no lock is held, and nothing hangs (G12, G13). This table is made
from `Tests/C/reentrancy.c`, which runs each of its cells.

The columns are the places: a **callback** of a token; its **destroy**, whether
run by the thread that ends it, leaves it last or drops its last lease; its
destroy because its **owner** died; its destroy because the registry is
**closed**; and a **visitor** that is shown the token. Each cell has three
answers: for the token itself, for another token of the registry, and for the
token's owner. For functions of a registry the subjects are its own and another
one, for leases the lease is on the token, and for `leave` the call is the
callback's own, or one of another registry. For functions of a slot it holds the
token; for those of a signal the token is its handler, and the callback is called by
an emission; for those of sessions and tasks the token is their delegate, and the
callback is `did_receive_response`. Signals and sessions belong to the registry, so
that a delegate or handler that dies leaves its signal, and ends its session. So do
queues and completions; `post` is to a queue of the registry. A thunk is of the
token, and belongs to its owner; the other one's belongs to the registry.

`ok` is `CBR_OK`, `already` `CBR_ALREADY`, `deferred` `CBR_DEFERRED`; the other
words are errors: `stale` is `CBR_E_STALE`, and so on. For `cbr_is_live`, `ok`
is true and `stale` is false, and so it is for what answers a token or a pointer,
where `stale` is none. `empty` is `CBR_EMPTY`. `–` is no case.

| function | callback | destroy | … owner died | … closed | visitor |
|---|---|---|---|---|---|
"""

ROW = re.compile(
    r'\{"([^"]+)", \w+,\s+\{"([^"]+)", "([^"]+)", "([^"]+)", "([^"]+)", '
    r'"([^"]+)"\}\}')


def page():
    lines = []
    for name, *cells in ROW.findall(SOURCE.read_text()):
        answers = (" · ".join(LETTERS[letter] for letter in cell)
                   for cell in cells)
        name = f"`{name}`" if name.startswith("CBR_") else name
        lines.append(f"| {name} | " + " | ".join(answers) + " |\n")
    if len(lines) < 70:
        raise SystemExit("the table of reentrancy.c cannot be read")
    return HEAD + "".join(lines)


def main():
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    elif not PAGE.exists() or PAGE.read_text() != page():
        print("Documentation/WhatHappensIf.md is not what reentrancy.c tests: "
              "run Tests/Build/what_happens_if.py --write")
        print("0 passed, 1 failed")
        raise SystemExit(1)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()

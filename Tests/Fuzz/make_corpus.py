#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the inputs in Tests/Fuzz/corpus that the fuzzers begin with.

What the bytes mean is said in RingTarget.swift and CommandTarget.swift.
"""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "corpus"
REPAIRED, FORGED, WHOLE, CUT, WRITTEN = 1, 2, 4, 8, 16
HEADER, SEGMENTS, NAMES, OTHER_NAMES, RING, IN_FLIGHT, RECORDS = range(7)
SECOND_RING, SECOND_IN_FLIGHT, SECOND_RECORDS = range(7, 10)


def words(*values):
    return struct.pack(f"<{len(values)}Q", *(each % 2**64 for each in values))


def change(part, offset, data):
    return struct.pack(">BHB", part, offset, len(data)) + data


def event(kind, flags=0, sequence=0, handle=72, argument=1):
    return words(sequence << 16 | kind << 8 | flags, 1 << 40, handle,
                 argument << 32)


def rings():
    """Files of rings, by name."""
    for mode in range(4):
        yield f"whole-{mode}", bytes([mode])
    yield "magic", bytes([0]) + change(HEADER, 0, words(1))
    yield "run", bytes([0]) + change(HEADER, 56, words(1))
    for name, offset, values in (
            ("records", 24, (1 << 24, 0, 3)), ("epoch", 32, (7,)),
            ("opened", 40, (-1, 0)), ("areas", 144, (-1, 1 << 16)),
            ("counted", 152, (-1, 5)), ("half", 160, (1,)),
            ("used", 168, (-1, 3)), ("segments", 184, (1, 2, 1024, -1)),
            ("ending", 192, (1, 2, 3))):
        for number, value in enumerate(values):
            yield (f"header-{name}-{number}",
                   bytes([REPAIRED]) + change(HEADER, offset, words(value)))
    yield "segments", (
        bytes([REPAIRED]) + change(HEADER, 184, words(3))
        + change(SEGMENTS, 0, words(-1, -1, -1, 0, 0, 0, 1, 1 << 63, 1)))
    yield "names", bytes([REPAIRED]) + change(NAMES, 0, words(-1, -1, 5))
    for name, offset, values in (
            ("head", 0, (-1, 3, 1 << 40)), ("emitted", 16, (-1, 900)),
            ("number", 48, (0, 2, 3, 60, 65535, 65536)),
            ("capacity", 64, (1, 512))):
        for number, value in enumerate(values):
            for ring in RING, SECOND_RING:
                yield (f"ring-{ring}-{name}-{number}",
                       bytes([REPAIRED]) + change(ring, offset, words(value)))
    yield "in-flight", (
        bytes([REPAIRED]) + change(IN_FLIGHT, 0, words(*[72, 1] * 8))
        + change(SECOND_IN_FLIGHT, 0, words(-1, -1)))
    for kind in range(1, 17):
        yield (f"forged-{kind}",
               bytes([FORGED | REPAIRED]) + change(RECORDS, 0, event(kind)))
    yield "forged-longest", (
        bytes([FORGED | REPAIRED]) + change(RECORDS, 0, event(15, 255)))
    yield "forged-again", (
        bytes([FORGED | REPAIRED])
        + change(RECORDS, 0, b"".join(event(5, 4, 9) for _ in range(7)))
        + change(SECOND_RECORDS, 0, event(6, 0, 2**47)))
    for length in 0, 100, 327679, 327680, 330000, 393216, 400000:
        yield (f"cut-{length}",
               struct.pack(">BH", REPAIRED | CUT, length // 8))
    for position, events in (3, 2), (9, 0), (12, 6), (1023, 0), (1024, 1):
        yield (f"written-{position}",
               struct.pack(">BHH", REPAIRED | WRITTEN, position, events))
    # A ring of which something was written, and which is no more to be found.
    yield "written-lost", (
        struct.pack(">BHH", REPAIRED | WRITTEN, 3, 2)
        + change(RING, 48, b"\xff" * 4))
    yield "bytes", bytes([WHOLE]) + b"CBRRINGS" + words(1, 65536, 1024)
    yield "bytes-repaired", bytes([WHOLE | REPAIRED]) + words(0, 0, 0, 64)


def commands():
    """What the command is given, by name."""
    lines = (
        "help", "version", "stat\nH", "doctor\nH", "tail\nH",
        "tail\n-n\n3\nH", "tail\n-n\n-1\nH", "recover\nH", "explain\n72\nH",
        "snapshot\nH\ncopy", "snapshot\nH\nH", "snapshot\nH\nfile:a?b#c%41",
        "explain\n0x\nH", "stat\n", "doctor\n.", "tail\n-n\nH", "undo\nH")
    for number, line in enumerate(lines):
        for mode in 0, 128:
            yield f"words-{number}-{mode}", bytes([mode]) + line.encode()
    tokens = ("0", "-1", "0x48", "0xFFFFFFFFFFFFFFFF", "0X1", "72 ", "",
              "18446744073709551616", "0x-1", "+5", "\u0660", "0x\ud55c")
    for number, token in enumerate(tokens):
        yield f"token-{number}", bytes([1]) + token.encode()
    yield "history", bytes([2])
    for name, offset, data in (
            ("magic", 0, b"no"), ("log", 18, b"\1\1"), ("page", 16, b"\2"),
            ("pages", 28, b"\xff\xff\xff\xff"), ("free", 32, b"\0\0\0\2"),
            ("all-free", 33, b"\0\0\2\x25"),
            ("format", 60, b"\0\0\0\2"), ("application", 68, b"\0\0\0\0"),
            ("schema", 100, b"\x0d"), ("cells", 103, b"\xff\xff"),
            ("second", 8192, b"\x05"), ("third", 16384, b"\xff" * 16)):
        yield (f"history-{name}",
               bytes([2]) + struct.pack(">IB", offset, len(data))[1:] + data)
    yield "bytes-none", bytes([3])
    yield "bytes-one", bytes([3, 0])
    yield "bytes-magic", bytes([3]) + b"SQLite format 3\0"


def main():
    for name, inputs in ("rings", rings()), ("command", commands()):
        folder = FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        for each, data in inputs:
            (folder / each).write_bytes(data)


main()

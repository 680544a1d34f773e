#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C library from Python, by ctypes: a callback that C code can call until it
is ended, and not a moment longer.

    callbacks.py libcallbackregistry.so.0
"""

import ctypes as c
import sys

OK, STALE, ENDED, FOREVER = 0, -2, 1, 2**64 - 1
GREETING = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)


class Registration(c.Structure):
    """cbr_registration, field by field."""
    _fields_ = [
        ("size", c.c_size_t), ("label", c.c_char_p), ("function", c.c_void_p),
        ("interface", c.c_void_p), ("methods", c.c_void_p),
        ("context", c.c_void_p), ("destroy", c.c_void_p),
        ("owner", c.c_uint64), ("type_tag", c.c_uint64), ("flags", c.c_uint32),
        ("line", c.c_uint32), ("file", c.c_char_p), ("level", c.c_uint32),
        ("reserved", c.c_uint32), ("queue", c.c_uint64)]


class Call(c.Structure):
    """cbr_call, field by field."""
    _fields_ = [
        ("function", c.c_void_p), ("context", c.c_void_p),
        ("token", c.c_uint64), ("disposition", c.c_int64),
        ("reserved", c.c_uint64 * 3)]


def load(path):
    """Loads the library, with the types of what is used here."""
    library = c.CDLL(path)
    library.cbr_last_error.restype = c.c_char_p
    library.cbr_registry_open.argtypes = [c.c_void_p, c.POINTER(c.c_uint64)]
    library.cbr_registry_close.argtypes = [c.c_uint64, c.c_uint64]
    library.cbr_register.argtypes = [
        c.c_uint64, c.POINTER(Registration), c.POINTER(c.c_uint64)]
    library.cbr_enter.argtypes = [c.c_uint64, c.POINTER(Call)]
    library.cbr_leave.argtypes = [c.POINTER(Call)]
    library.cbr_invalidate_wait.argtypes = [
        c.c_uint64, c.c_uint32, c.c_uint64]
    library.cbr_explain.argtypes = [
        c.c_uint64, c.c_char_p, c.c_size_t, c.c_void_p]
    return library


class Callback:
    """A Python function as a token. Whoever keeps the number keeps nothing
    alive; this object does, until it has ended the token."""

    def __init__(self, library, registry, label, function):
        self.library = library
        self.function = GREETING(function)  # C code has its address
        what = Registration(
            size=c.sizeof(Registration), label=label.encode(),
            function=c.cast(self.function, c.c_void_p).value,
            file=__file__.encode(), line=sys._getframe(1).f_lineno)
        token = c.c_uint64()
        status = library.cbr_register(registry, what, token)
        if status != OK:
            raise RuntimeError(library.cbr_last_error().decode())
        self.token = token.value

    def end(self):
        """Ends the token; nothing is running when this returns."""
        return self.library.cbr_invalidate_wait(self.token, ENDED, FOREVER)


def call(library, token, name):
    """Calls a token as C code does: the answer, or why there is none."""
    it = Call()
    status = library.cbr_enter(token, it)
    if status != OK:
        return status, None
    try:
        return OK, GREETING(it.function)(it.context, name.encode())
    finally:
        library.cbr_leave(it)


def main():
    library = load(sys.argv[1])
    registry = c.c_uint64()
    if library.cbr_registry_open(None, registry) != OK:
        raise SystemExit(library.cbr_last_error().decode())

    def greet(_, name):
        print("Good morning,", name.decode())
        return len(name)

    greeter = Callback(library, registry, "greeter", greet)
    assert call(library, greeter.token, "world") == (OK, 5)
    assert greeter.end() == OK
    assert call(library, greeter.token, "world") == (STALE, None)

    life = c.create_string_buffer(4096)
    assert library.cbr_explain(greeter.token, life, len(life), None) == OK
    print(life.value.decode(), end="")
    assert "greeter" in life.value.decode()
    assert library.cbr_registry_close(registry, FOREVER) == OK


main()

"""A call into native code that keeps the interpreter's lock: no signal's handler runs, and no other thread."""

import ctypes


def test_hangs_in_native_code() -> None:
    ctypes.PyDLL(None).sleep(100_000)

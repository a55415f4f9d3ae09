"""Hidden end: a program of Spark says how it has ended, because what has started it may hide its exit code.

``spark-submit orders.py | tee log`` ends with 0 whatever the program does.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from . import end_note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

AT_WORK = "its program has not come to its end."
LONGEST = 300  # letters of an error


def changes(file: str) -> Mapping[str, Callable[[Any], None]]:
    """Return what is changed in PySpark, to know which process is the program; ``file`` is its end file."""
    ending = _Ending(file)
    atexit.register(ending.ended)  # the first that is registered is the last that is called
    sys.exit = ending.noting(sys.exit)

    def joins_a_jvm(module: Any) -> None:
        module.launch_gateway = ending.beginning(module.launch_gateway)

    def connects(module: Any) -> None:
        module.SparkSession.__init__ = ending.beginning(module.SparkSession.__init__)

    return {"pyspark.java_gateway": joins_a_jvm, "pyspark.sql.connect.session": connects}


class _Ending:
    """The end of one process, if it becomes the program; its children and workers say nothing."""

    def __init__(self, file: str) -> None:
        self._file, self._program = file, 0
        self._code: Any = None

    def beginning(self, method: Any) -> Any:
        """Return a method whose first call makes this process the program."""

        @functools.wraps(method)
        def begun(*given: Any, **named: Any) -> Any:
            if self._program != os.getpid():
                self._program = os.getpid()
                end_note.write(self._file, AT_WORK, inside=True)
            return method(*given, **named)

        return begun

    def noting(self, leave: Any) -> Any:
        """Return ``sys.exit``, which notes its last code."""

        @functools.wraps(leave)
        def noted(status: Any = None, /) -> Any:
            if threading.current_thread() is threading.main_thread():
                self._code = status
            leave(status)

        return noted

    def ended(self) -> None:
        """Say how it has ended, unless more is known: of a query, or of a block of ``ha.lead``."""
        if self._program != os.getpid():
            return
        said, inside = end_note.read(self._file)
        if said and not inside:
            return
        if (error := getattr(sys, "last_value", None)) is not None:  # that of an exception that nobody has caught
            end_note.write(self._file, f"its program has failed: {_line_of(error)}", inside=True)
        elif self._code not in (None, 0):
            code = self._code if isinstance(self._code, int) else 1
            end_note.write(self._file, f"its program has ended with {code}.", inside=True)
        elif said == AT_WORK:
            end_note.write(self._file, "")


def _line_of(error: BaseException) -> str:
    name = type(error).__name__
    with suppress(Exception):  # the text of some of py4j's comes from the JVM
        return f"{name}: {error}".rstrip(": ").splitlines()[0][:LONGEST]
    return name

"""Hidden end: a program of Spark says how it has ended, because what has started it may hide its exit code.

``spark-submit orders.py | tee log`` ends with 0 whatever the program does. So a note says why an end of the program now
would be a failure. The sidecar reads it: ``ha/program/end_file.py``.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

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
                note_end(self._file, AT_WORK, inside=True)
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
        said, inside = _noted(self._file)
        if said and not inside:
            return
        if (error := getattr(sys, "last_value", None)) is not None:  # that of an exception that nobody has caught
            note_end(self._file, f"its program has failed: {_line_of(error)}", inside=True)
        elif self._code not in (None, 0):
            code = self._code if isinstance(self._code, int) else 1
            note_end(self._file, f"its program has ended with {code}.", inside=True)
        elif said == AT_WORK:
            note_end(self._file, "")


def _line_of(error: BaseException) -> str:
    name = type(error).__name__
    with suppress(Exception):  # the text of some of py4j's comes from the JVM
        return f"{name}: {error}".rstrip(": ").splitlines()[0][:LONGEST]
    return name


def note_end(file: str, said: str, remedy: str = "", *, inside: bool = False) -> None:
    """Replace the note; an empty one says that an end is as it was meant. Skip it if it cannot be written."""
    # inside: nothing is wrong but that the program was at work.
    told = {"said": said, "remedy": remedy, "inside": inside} if said else {}
    with suppress(OSError):
        with open(f"{file}.staged", "w", encoding="utf-8") as new:  # noqa: PTH123  # shorter than the import
            json.dump(told, new)
        os.replace(f"{file}.staged", file)  # noqa: PTH105


def _noted(file: str) -> tuple[str, bool]:
    """Return what is said, and whether nothing is wrong but that the program was at work."""
    try:
        with open(file, encoding="utf-8") as noted:  # noqa: PTH123
            told = json.load(noted)
    except (OSError, ValueError):
        return "", False
    return str(told.get("said", "")), bool(told.get("inside"))

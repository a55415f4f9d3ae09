"""Driver note: a Python driver says who it is before it starts its JVM, or joins the one that has started it.

The guard kills a driver whose JVM has ended. A command may be more than its driver: a pipe, a script that goes on, one
program after another.
"""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MODULE = "pyspark.java_gateway"


def changes(file: str) -> Mapping[str, Callable[[Any], None]]:
    """Return what is changed in PySpark: whoever asks for a JVM is noted in the file."""

    def changed(module: Any) -> None:
        launch = module.launch_gateway

        @functools.wraps(launch)
        def noted(*given: Any, **named: Any) -> Any:
            with suppress(OSError):
                _note(file)
            return launch(*given, **named)

        module.launch_gateway = noted

    return {MODULE: changed}


def _note(file: str) -> None:
    """Write this process down, unless one that lives is noted: a driver may start others, and the first one counts."""
    with suppress(OSError, ValueError):
        with open(file, encoding="ascii") as there:  # noqa: PTH123  # shorter than the import
            first = int(there.read())
        os.kill(first, 0)
        return
    room = os.open(f"{file}.staged", os.O_WRONLY | os.O_CREAT, 0o600)  # it is there, for a disk that is full by now
    try:
        os.write(room, f"{os.getpid()}\n".encode())
    finally:
        os.close(room)
    os.replace(f"{file}.staged", file)  # noqa: PTH105

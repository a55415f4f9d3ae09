"""JvmWatch: whether the JVM of a command's driver has ended, while its Python process works on as if it had not.

``spark-env.sh`` notes the JVM in the file that HA_SPARK_JVM names (:mod:`ha.sidecar.command.spark_overlay`), and the
driver notes itself beside it (:mod:`ha.hook.driver_note`). A JVM that ends with its driver is no failure: the rest of
the command goes on, a pipe or a script, and may start another one. And a JVM of Spark that is not noted has not read
the settings of ``--spark``: a script, ``sudo`` or ``env -i`` has replaced what was to lead there. Nor has a driver that
joins the JVM and is not noted read the hook.
"""

import os
import select
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ha.hosts.held_process import ending_of
from ha.sidecar.command.memory import PROC, descendants, environment_of
from store.clock import now

DRIVER = ".driver"
"""Ends the name of the file beside the JVM's in which the driver is noted."""

SPARK = b"org.apache.spark.deploy.SparkSubmit"
"""Word of the command of each JVM that a driver runs in."""

GATEWAY = b"PYSPARK_GATEWAY_PORT="  # in the environment of the process that Spark's PythonRunner starts
ESTABLISHED = "01"  # state of a connection, as Linux's tcp_states.h counts

LOOK_S = 1.0  # between two looks for a JVM, or a driver, as long as none is noted

Why = tuple[str, str]
"""Why a command is not under the rules of ``--spark``, and what mends that, a sentence without its dot."""

ASTRAY: Why = (
    "it has started Spark without the settings of --spark, so nothing would fence its queries or go on with them.",
    "Keep the environment (no `env -i`; `sudo -E`), and set SPARK_CONF_DIR before `ha run`, not in the command",
)
UNHOOKED: Why = (
    "its driver's Python has not read the hook of --spark, so nobody would be told of a query that fails or is lost.",
    "Have it started by a Python that reads PYTHONPATH: not by -E or -I, nor a PEX file (PYSPARK_DRIVER_PYTHON=python)",
)


class JvmWatch:
    """Follows one JVM at a time, and the Python process that it works for."""

    def __init__(self, file: str) -> None:
        """Watch the JVM that is noted in this file."""
        self._jvm, self._driver = _Noted(Path(file)), _Noted(Path(f"{file}{DRIVER}"))
        self._look_at, self._again_at = now() + LOOK_S, now()

    def ending(self) -> list[int]:
        """Return a descriptor that becomes readable when the JVM has ended; nothing as long as none is noted."""
        with suppress(OSError):  # no descriptor is free: the next call looks again
            if self._jvm.look():
                self._driver.look()
        return [self._jvm.ending] if self._jvm.ending >= 0 and now() >= self._again_at else []

    def astray(self) -> Why | None:
        """Return why the command is not under the rules of ``--spark``; None if it is."""
        if self._driver.noted or now() < self._look_at:
            return None
        self._look_at = now() + LOOK_S
        with suppress(OSError):  # no descriptor is free: it is not known, and looked for again
            # What is noted is asked last: a process is noted before it is a JVM, and before it joins one.
            if self._jvm.noted:
                return UNHOOKED if has_joined() and not self._driver.look() else None
            found = any(map(_is_sparks, descendants(os.getpid())))
            return ASTRAY if found and not self._jvm.look() else None
        return None

    def orphaned(self) -> bool:
        """Whether the driver of the JVM, which has ended, lives; if not, both are forgotten."""
        try:
            if self._driver.look() and not select.select([self._driver.ending], [], [], 0)[0]:
                return True
        except OSError:  # no descriptor is free: the end is told once more, a moment later
            self._again_at = now() + LOOK_S
            return False
        self._jvm.forget()
        self._driver.forget()
        return False


def tell_astray(why: str, remedy: str) -> str:
    """Tell the sidecar why a command is not under the rules of ``--spark``; returns a line for people."""
    from ha.program import end_file  # noqa: PLC0415  # a guard is to stay small, and few come here

    end_file.tell(end_file.End(why, remedy))
    return f"ha: the command is killed: {why} {remedy}.\n"


class _Noted:
    """A process that is noted in a file; another may be noted there after its end."""

    def __init__(self, file: Path) -> None:
        self._file, self._text = file, ""
        self.ending = -1

    @property
    def noted(self) -> bool:
        """Whether one was there at any time."""
        return self._text != ""

    def look(self) -> bool:
        """Look for one that was not there before; return whether there is one, which may have ended. OSError."""
        if self.ending < 0:
            try:
                text = self._file.read_text()
            except FileNotFoundError:
                return False
            if text != self._text:
                self.ending = _ending_of(int(text))
                self._text = text
        return self.ending >= 0

    def forget(self) -> None:
        if self.ending >= 0:
            os.close(self.ending)
            self.ending = -1


def _ending_of(pid: int) -> int:
    try:
        return ending_of(pid)
    except ProcessLookupError:
        return os.open(os.devnull, os.O_RDONLY)  # readable at once, because the process has ended already


def _is_sparks(pid: int) -> bool:
    with suppress(OSError):  # it has ended
        program, *words = (PROC / f"{pid}" / "cmdline").read_bytes().split(b"\0")
        return program.rpartition(b"/")[2] == b"java" and SPARK in words
    return False


def has_joined() -> bool:
    """Whether a process below this one is connected to the gateway of its JVM. OSError: it cannot be known now."""
    ports = {port for pid in descendants(os.getpid()) if (port := _gateway_of(pid))}
    return bool(ports) and not ports.isdisjoint(_connected())


def _gateway_of(pid: int) -> int:
    with suppress(OSError, ValueError):  # it has ended, or is another's
        for each in environment_of(pid):
            if each.startswith(GATEWAY):
                return int(each.removeprefix(GATEWAY))
    return 0


def _connected() -> Iterator[int]:
    """Return the remote ports of the established connections of this host, or container."""
    for family in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a kernel without it
            for line in (PROC / "self" / "net" / family).read_text().splitlines()[1:]:
                _, _, remote, state, *_ = line.split()
                if state == ESTABLISHED:
                    yield int(remote.rpartition(":")[2], 16)

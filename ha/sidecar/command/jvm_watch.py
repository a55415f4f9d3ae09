"""JvmWatch: whether the JVM of a command's driver has ended, while its Python process works on as if it had not.

``spark-env.sh`` notes the JVM in the file that HA_SPARK_JVM names (:mod:`ha.sidecar.command.spark_overlay`), and the
driver notes itself beside it (:mod:`ha.hook.driver_note`). A JVM that ends with its driver is no failure: the rest of
the command goes on, a pipe or a script, and may start another one.
"""

import os
import select
from pathlib import Path

from ha.hosts.held_process import ending_of

DRIVER = ".driver"
"""Ends the name of the file beside the JVM's in which the driver is noted."""


class JvmWatch:
    """Follows one JVM at a time, and the Python process that it works for."""

    def __init__(self, file: str) -> None:
        """Watch the JVM that is noted in this file."""
        self._jvm, self._driver = _Noted(Path(file)), _Noted(Path(f"{file}{DRIVER}"))

    def ending(self) -> list[int]:
        """Return a descriptor that becomes readable when the JVM has ended; nothing as long as none is noted."""
        if self._jvm.look():
            self._driver.look()
        return [self._jvm.ending] if self._jvm.ending >= 0 else []

    def orphaned(self) -> bool:
        """Whether the driver of the JVM, which has ended, lives; if not, both are forgotten."""
        if self._driver.look() and not select.select([self._driver.ending], [], [], 0)[0]:
            return True
        self._jvm.forget()
        self._driver.forget()
        return False


class _Noted:
    """A process that is noted in a file; another may be noted there after its end."""

    def __init__(self, file: Path) -> None:
        self._file, self._text = file, ""
        self.ending = -1

    def look(self) -> bool:
        """Look for one that was not there before; return whether there is one, which may have ended."""
        if self.ending < 0:
            try:
                text = self._file.read_text()
            except FileNotFoundError:
                return False
            if text != self._text:
                self._text, self.ending = text, _ending_of(int(text))
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

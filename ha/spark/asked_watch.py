"""AskedWatch: a thread of the program looks for a file by which its sidecar asks for something."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from ha.leadership import program_file

LOOK_S = 0.25
"""Between two looks for the file; each is one call of the kernel."""


class AskedWatch:
    """Looks while its block lasts; so long the sidecar knows that the program understands."""

    def __init__(self, path: Path, look: Callable[[], bool], thread: str) -> None:
        """Look for nothing yet.

        Args:
            path: of the file.
            look: looks for it, does what is asked, and returns whether nothing else can be asked afterwards.
            thread: name of the thread.
        """
        self._path, self._look = path, look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=thread, daemon=True)

    def __enter__(self) -> Self:
        program_file.enable(self._path)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with suppress(OSError):  # the sidecar has gone, and its files with it
            program_file.disable(self._path)

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            if self._look():
                return

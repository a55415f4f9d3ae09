"""RestartWatch: looks for what operators ask of a program through its sidecar: to start a query again, in place."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from ha.leadership import restart_file
from ha.leadership.restart_file import Answer, Wanted
from leader.job.requests import State

LOOK_S = 0.25
"""Between two looks for the file; each is one call of the kernel."""

Tell = Callable[[State, str], object]
"""Called with how far a restart has come, in one sentence."""


class RestartWatch:
    """Has queries started again when the sidecar asks for it, while its block lasts."""

    def __init__(self, path: Path, restart: Callable[[str, Tell], object]) -> None:
        """Look for nothing yet; ``restart`` takes the name of a query."""
        self._path, self._restart = path, restart
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ha-restart", daemon=True)

    def __enter__(self) -> Self:
        restart_file.enable(self._path)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with suppress(OSError):  # the sidecar has gone, and its files with it
            restart_file.disable(self._path)

    def _run(self) -> None:
        last = ""
        while not self._over.wait(LOOK_S):
            wanted = restart_file.asked(self._path)
            if wanted is not None and wanted.id != last:
                last = wanted.id
                self._restart(wanted.query, self._answering(wanted))

    def _answering(self, wanted: Wanted) -> Tell:
        def tell(state: State, said: str) -> None:
            with suppress(OSError):
                restart_file.answer(self._path, Answer(wanted.id, state, said))

        return tell

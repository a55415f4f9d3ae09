"""ProgramWatch: looks for what operators ask of a program through its sidecar, as to start a query again in place."""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ha.leadership import program_file
from ha.leadership.program_file import Answer, Wanted
from ha.spark.asked_watch import AskedWatch
from leader.job.requests import State

Tell = Callable[[State, str], object]
"""Called with how far it has come, in one sentence."""

_log = logging.getLogger("ha")


class ProgramWatch(AskedWatch):
    """Has something done when the sidecar asks for it, while its block lasts."""

    def __init__(self, path: Path, do: Callable[[str, Tell], object]) -> None:
        """Look for nothing yet; ``do`` takes the name of a query, or what else is asked for."""
        super().__init__(path, self._look_for, "ha-asked")
        self._do, self._last = do, ""

    def _look_for(self) -> bool:
        wanted = program_file.asked(self._path)
        if wanted is not None and wanted.id != self._last:
            self._last = wanted.id
            before = program_file.answered(self._path, wanted.id)
            if before is None or not before.state.final:  # else an earlier program of the same engine has done it
                self._try(wanted)
        return False

    def _try(self, wanted: Wanted) -> None:
        tell = self._answering(wanted)
        try:
            self._do(wanted.what, tell)
        except Exception as error:  # noqa: BLE001  # of Spark or py4j; the next request is heeded all the same
            _log.exception("What an operator asks for has failed.")
            tell(State.FAILED, f"Its program has failed to do it, as its log says: {type(error).__name__}.")

    def _answering(self, wanted: Wanted) -> Tell:
        def tell(state: State, said: str) -> None:
            with suppress(OSError):
                program_file.answer(self._path, Answer(wanted.id, state, said))

        return tell

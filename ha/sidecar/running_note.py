"""RunningNote: a leader says what it runs, and a standby says so if it would run something else."""

import logging
from contextlib import suppress

import msgspec

from ha.sidecar.source_places import SourcePlaces
from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree
from leader.layout.names import RUNS, WOULD
from leader.layout.running import Running, contradiction, others, runs
from store.errors import NotFound, StoreError
from store.files import Files

_log = logging.getLogger("ha")


class RunningNote:
    """What one sidecar says of its command."""

    def __init__(self, job: str, contender: str, running: Running) -> None:
        self._job, self._contender, self.running = job, contender, running
        self._told: tuple[Running, Running] | None = None
        self._places = SourcePlaces(running.files)

    def lead(self, directory: FencedDirectory) -> None:
        """Say what runs from now on; what standbys would run is said by them again. One list while nothing changes."""
        names, mine = [each.name for each in directory.list()], self.running.entry()
        for each in names:
            if each.startswith((RUNS, WOULD)) and each != mine:
                directory.delete(each)
        if mine not in names:
            directory.make_folder(mine)

    def stand_by(self, files: Files) -> None:
        """Compare with what the leader runs, and with what the checkpoints say of their sources: a few lists."""
        # What the store does not answer is looked for the next time.
        with suppress(StoreError):
            self._compare(files)

    def _compare(self, files: Files) -> None:
        home = f"{self._job}/{tree.find(files, self._job).name}"
        names = [each.name for each in files.list(home)]
        running = msgspec.structs.replace(self.running, sources=self._places.other_name(files, home))
        present, mine = runs(names), running.entry(self._contender)
        differs = present is not None and present.differs(running)
        for each in names:
            if self._contender in others([each]) and not (differs and each == mine):
                with suppress(NotFound):
                    files.delete(f"{home}/{each}")
        if present is None or not differs:
            self._told = None
            return
        if mine not in names:
            files.make_directory(f"{home}/{mine}")
        if self._told != (present, running):
            self._told = present, running
            _log.warning("%s: %s.", self._job, contradiction(self._contender, running, present))

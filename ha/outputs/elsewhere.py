"""Elsewhere: an output that is no directory of files, such as a table or a topic; its kind publishes what is decided.

Sealing, deciding and completing are those of the journal. Instead of the renames of :mod:`ha.outputs.moving` it calls
:meth:`Elsewhere.give`, which any leader may call again. See decision 86.
"""

from typing import Protocol
from urllib.parse import urlsplit

from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.moving import MovedFiles, Moving
from ha.outputs.record import Record
from leader.errors import LeaderError, OutputLost
from leader.layout.names import escape
from store.traits import traits


class Undecided(LeaderError):
    """Nothing of a decided batch was published, and nothing will be: the query does it again."""


class Elsewhere(Protocol):
    """One table or topic."""

    kind: str  # `delta`, `iceberg` or `kafka`
    place: str  # its name

    def give(self, batch: int, record: Record, rows: str) -> bool:
        """Publish a decided batch; returns False if it was published before. It may be called any number of times.

        Args:
            batch: its id, which only grows.
            record: what was decided.
            rows: path of the rows that are staged, below the root of the journal's renames.

        Raises:
            OutputLost: it cannot be published any more.
            StoreError: it is not known whether it was published.
            Undecided: it was not, and never will be.
        """


def nowhere(directory: str, elsewhere: Elsewhere) -> str:
    """Return a URI that stands for it in the file system of a leader directory; nothing is ever there."""
    parts = urlsplit(directory)
    top = f"/{parts.path.split('/')[1]}" if traits(directory).local else ""
    return f"{parts.scheme}://{parts.netloc}{top}/{elsewhere.kind}={escape(elsewhere.place)}"


class Giving(Moving):
    """The last step of such an output. A batch counts as so many files as are staged, or as one."""

    def __init__(self, folder: OutputFolder, elsewhere: Elsewhere) -> None:
        super().__init__(folder)
        self._elsewhere = elsewhere

    def move(self, batch: int, record: Record) -> MovedFiles:
        """Publish a batch that was decided, and complete it."""
        try:
            given = self._elsewhere.give(batch, record, self._folder.at(layout.ready(batch), layout.ROWS))
        except Undecided:
            self.withdraw(batch)
            raise
        self._complete(batch, record)
        count = record.files or 1
        return MovedFiles(count, count if given else 0, 0 if given else count)

    def finish(self, batch: int, *, accept_loss: bool = False) -> MovedFiles:
        """Do the same with a batch of an earlier leader."""
        try:
            record = self.record(batch)
        except OutputLost:
            if (moved := self._finished(batch)) is None:
                raise
            return moved
        if record.files and (lost := record.without(self._here(batch, flat=False))).files and not accept_loss:
            raise self._gone(batch, record, lost)
        return self.move(batch, record)

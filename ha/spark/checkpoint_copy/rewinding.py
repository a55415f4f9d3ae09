"""Rewinding: puts a stopped query back to a retained batch, with its outputs, and undoes that.

The closure of the batch replaces the query's checkpoint: see :mod:`ha.spark.checkpoint_copy.replacing`.
"""

from collections.abc import Sequence

import msgspec

from ha.leadership.leadership import Leadership
from ha.rewind.plan import CHECKPOINT, Plan, RewoundOutput
from ha.rewind.published import Concerned, Published
from ha.spark.checkpoint_copy.copying import Staging, Told
from ha.spark.checkpoint_copy.exporting import fill
from ha.spark.checkpoint_copy.replacing import Replacing
from ha.spark.supervision.flow import readers
from ha.spark.supervision.states import read as read_graph
from leader.layout.names import REWOUND, SPARK, TRASH
from store.errors import NotFound


class Outlook(msgspec.Struct, frozen=True):
    """The plan of a rewind, or of the undo of one.

    Attributes:
        query: its name.
        batch: newest batch that it has committed afterwards; None if it had committed none.
        newest: newest batch that it has committed now; None if there is none.
        begun: whether it has begun a batch that is later than the first of these.
        files: of the checkpoint that is copied.
        bytes: of these.
        outputs: those that have published batches after it.
        unclear: whether it is not known which outputs are the query's, because the job has several queries.
        readers: declared queries that read what the query writes.
    """

    query: str
    batch: int | None
    newest: int | None
    begun: bool
    files: int
    bytes: int
    outputs: list[Concerned]
    unclear: bool
    readers: list[str]


class Rewinding(Replacing):
    """A query of a job; its methods also raise StoreError if a store fails."""

    def look(self, to: int, names: Sequence[str] | None = None) -> Outlook:
        """Return what a rewind to a batch would do. The job may run.

        Args:
            to: the batch.
            names: of the outputs that are the query's; None if the caller does not say.

        Raises:
            Invalid: the batch cannot be continued, or is not retained; or the job has no such output.
        """
        closure = self._closure(to)
        published = Published(self._find)
        found = published.after(to, names)
        log = self._log(f"{SPARK}/{self._query}")
        unclear = names is None and bool(found) and len(self._queries()) > 1
        files = len(closure.files) + len(closure.rebuilt)
        return Outlook(
            self._query, to, log.committed, log.begun is not None and log.begun > to, files, closure.bytes,
            published.concerned(found), unclear, self._readers(),
        )  # fmt: skip

    def look_back(self) -> Outlook:
        """Return what an undo of the last rewind would do. The job may run.

        Raises:
            Conflict: an output has been discarded since.
            NotFound: there is nothing to undo.
        """
        done = self._undone()
        published = Published(self._find)
        then = self._log(f"{TRASH}/{done.trash}/{REWOUND}{self._query}/{CHECKPOINT}")
        now = self._log(f"{SPARK}/{self._query}")
        concerned = published.concerned(published.since(done))
        return Outlook(self._query, then.committed, now.committed, True, 0, 0, concerned, False, self._readers())

    def rewind(
        self, leadership: Leadership, to: int, choice: str, names: Sequence[str] | None = None, told: Told | None = None
    ) -> Plan:
        """Put the query back. No query of the job may run.

        Args:
            leadership: of the job, which this was made for.
            to: the batch.
            choice: what becomes of the outputs' later batches: ``aside`` or ``keep``.
            names: of the outputs that are the query's; None for all.
            told: called with the progress of the copy at every step, from any thread.

        Raises:
            Conflict: the job's leavings are being cleaned up.
            Fenced: another leader has taken over.
            Invalid: the batch cannot be continued, or what was published after it cannot be moved away.
        """
        published = Published(self._find)
        known = names is not None or len(self._queries()) <= 1  # then an undo has to know those with nothing later, too
        outputs = [published.rewound(each, to, choice) for each in published.of_query(to, names) if known or each.ids]
        plan = self._plan(leadership, to, outputs)
        with self._prepared(leadership, f"to-{to}") as place:
            fill(Staging(self._files, self._directory.at(place), told), self._source(to))
            self._decide(leadership, place, plan)
        return plan

    def undo(self, leadership: Leadership) -> Plan:
        """Undo the last rewind: what the query has done since goes to the trash, and can be brought back likewise.

        Raises:
            Conflict: the job's leavings are being cleaned up, or an output has been discarded since.
            Fenced: another leader has taken over.
            NotFound: there is nothing to undo.
        """
        done = self._undone()
        outputs = [
            RewoundOutput(old.name, old.folder, old.target, old.stays, old.before, now.shifts)
            for old, now in zip(done.outputs, Published(self._find).since(done), strict=True)
        ]
        then = self._log(f"{TRASH}/{done.trash}/{REWOUND}{self._query}/{CHECKPOINT}").committed
        plan = self._plan(leadership, then, outputs, back=done.trash)
        with self._prepared(leadership, f"back-{done.trash}") as place:
            self._directory.make_folder(place)
            self._decide(leadership, place, plan)
        return plan

    def _undone(self) -> Plan:
        if (found := self._last()) is None:
            raise NotFound(
                f"Query {self._query!r} of job {self._job!r} was not put back by a rewind, or the trash was emptied "
                "since: there is nothing to undo."
            )
        return found

    def _readers(self) -> list[str]:
        graph, _ = read_graph(self._directory)
        return sorted(readers(graph.queries).get(self._query, ())) if graph is not None else []

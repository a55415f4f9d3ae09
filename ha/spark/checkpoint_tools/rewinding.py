"""Rewinding: puts a stopped query back to a retained batch, with its outputs, and undoes that.

What the query has read since may be gone by now: then nothing reads it again, and the plan says so.
The closure of the batch replaces the query's checkpoint: see :mod:`ha.spark.checkpoint_tools.replacing`.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from itertools import groupby
from urllib.parse import unquote, urlsplit

import msgspec

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inputs import files_since
from ha.checkpoints.trees import Tree
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.copying import Staging, Told
from ha.spark.checkpoint_tools.exporting import fill
from ha.spark.checkpoint_tools.replacing import Replacing, completed, replaced
from ha.spark.rewind.completing import CHECKPOINT, RewindPlan, RewoundOutput
from ha.spark.rewind.published import Concerned, PublishedBatches
from ha.spark.supervision.flow import readers
from ha.spark.supervision.states import read as read_graph
from leader.layout.names import REWOUND, SPARK, TRASH
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, StoreError
from store.traits import traits

MOST_FOLDERS = 200  # of inputs that are listed
LIST_S = 20.0


class GoneInputs(msgspec.Struct, frozen=True):
    """Of the files that a query has read after a batch."""

    read: int = 0  # how many they are
    gone: int = 0  # those that are not there
    first: str = ""  # the URI of one of these
    unknown: int = 0  # those that could not be looked for
    unread: str = ""  # what would name more of them and could not be read


class RewindOutlook(msgspec.Struct, frozen=True):
    """The plan of a rewind, or of the undo of one."""

    query: str  # its name
    batch: int | None  # newest batch that it has committed afterwards; None if it had committed none
    newest: int | None  # newest batch that it has committed now; None if there is none
    begun: bool  # whether it has begun a batch that is later than the first of these
    files: int  # of the checkpoint that is copied
    bytes: int  # of these
    outputs: list[Concerned]  # those that have published batches after it
    readers: list[str]  # declared queries that read what the query writes
    inputs: GoneInputs  # the files that it has read since, as far as they were looked for

    @property
    def is_there(self) -> bool:
        """Whether there is nothing to do."""
        return self.newest == self.batch and not self.begun and not self.outputs


def put_back(
    opened: Stores,
    job: str,
    query: str,
    to: int | None,
    *,
    choice: str,
    dry_run: bool,
    timeout: float,
    agree: Callable[..., bool],
    told: Told | None = None,
) -> tuple[RewindOutlook, str]:
    """Put a query back to a batch, or undo the last rewind (None): see :func:`replaced`."""
    # Returns the plan, and the name in the trash; empty if nothing was done.
    find = partial(Rewinding, opened.files, job, query)
    plan = completed(find(), opened, timeout, dry_run=dry_run)
    if plan is not None and (plan.batch if not plan.back else None) == to:  # it was this command, and was interrupted
        return RewindOutlook(query, plan.batch, plan.batch, False, 0, 0, [], [], GoneInputs()), plan.trash
    outlook, plan = replaced(
        find,
        opened,
        timeout,
        "rewound",
        agree=agree,
        look=lambda each: each.look_back() if to is None else each.look(to, opened.open_root),
        change=lambda each, leadership: (
            each.undo(leadership) if to is None else each.rewind(leadership, to, choice, told)
        ),
    )
    return outlook, plan.trash if plan is not None else ""


class Rewinding(Replacing):
    """A query of a job; its methods also raise StoreError if a store fails."""

    def look(self, to: int, open_root: Callable[[str], BoundedFiles] | None = None) -> RewindOutlook:
        """Return what a rewind to a batch would do; raises ``Invalid`` if it cannot be continued. The job may run."""
        # open_root: opens a directory of inputs; without it nobody looks whether these are still there.
        closure = self._closure(to)
        published = PublishedBatches(self._find, self._query)
        found = [each for each in published.after(to) if each.ids]
        log = self._log(f"{SPARK}/{self._query}")
        files = len(closure.files) + len(closure.rebuilt)
        return RewindOutlook(
            self._query, to, log.committed, log.begun is not None and log.begun > to, files, closure.bytes,
            published.concerned(found), self._readers(),
            self._inputs(to, open_root) if open_root is not None else GoneInputs(),
        )  # fmt: skip

    def look_back(self) -> RewindOutlook:
        """Return what an undo of the last rewind would do; the job may run. Raises ``NotFound`` if there is none."""
        done = self._undone()
        published = PublishedBatches(self._find, self._query)
        then = self._log(f"{TRASH}/{done.trash}/{REWOUND}{self._query}/{CHECKPOINT}")
        now = self._log(f"{SPARK}/{self._query}")
        concerned = published.concerned(published.since(done))
        return RewindOutlook(
            self._query, then.committed, now.committed, True, 0, 0, concerned, self._readers(), GoneInputs()
        )  # fmt: skip

    def rewind(
        self,
        leadership: Leadership,
        to: int,
        choice: str,
        told: Told | None = None,
        changes: Mapping[str, Callable[[bytes], bytes]] | None = None,
    ) -> RewindPlan:
        """Put the query back; its outputs' later batches go ``aside``, or it may ``keep`` them. No query may run."""
        # `changes` are made to small files of the copy, by their paths.
        published = PublishedBatches(self._find, self._query)
        outputs = [published.rewound(each, to, choice) for each in published.after(to)]
        plan = self._plan(leadership, to, outputs)
        with self._prepared(leadership, f"to-{to}") as place:
            staging = Staging(self._files, self._directory.at(place), told)
            fill(staging, self._source(to))
            for path, change in (changes or {}).items():
                staging.rewrite(path, change)
            self._decide(leadership, place, plan)
        return plan

    def undo(self, leadership: Leadership) -> RewindPlan:
        """Undo the last rewind: what the query has done since goes to the trash, and can also be brought back."""
        done = self._undone()
        outputs = [
            RewoundOutput(old.name, old.folder, old.target, old.stays, old.before, now.lines.names)
            for old, now in zip(done.outputs, PublishedBatches(self._find, self._query).since(done), strict=True)
        ]
        then = self._log(f"{TRASH}/{done.trash}/{REWOUND}{self._query}/{CHECKPOINT}").committed
        plan = self._plan(leadership, then, outputs, back=done.trash)
        with self._prepared(leadership, f"back-{done.trash}") as place:
            self._directory.make_folder(place)
            self._decide(leadership, place, plan)
        return plan

    def _undone(self) -> RewindPlan:
        if (found := self._last()) is None:
            raise NotFound(
                f"Query {self._query!r} of job {self.job!r} was not put back by a rewind, or the trash was emptied "
                "since: there is nothing to undo."
            )
        return found

    def _inputs(self, to: int, open_root: Callable[[str], BoundedFiles]) -> GoneInputs:
        reader = CheckpointReader(Tree(self._files, self._directory.at(f"{SPARK}/{self._query}")))
        try:
            files, unread = files_since(reader, reader.files(), to)
        except NotFound:  # a query that runs takes old files away
            files, unread = [], "its checkpoint, which changes as the query runs,"
        return msgspec.structs.replace(gone_inputs(open_root, self._files.uri, files), unread=unread)

    def _readers(self) -> list[str]:
        graph, _ = read_graph(self._directory)
        return sorted(readers(graph.queries).get(self._query, ())) if graph is not None else []


def gone_inputs(open_root: Callable[[str], BoundedFiles], here: str, files: Iterable[str]) -> GoneInputs:
    """Look for files, by their URIs as Spark notes them; one list for each of their folders."""
    # open_root: opens one directory; the caller closes it.
    # here: URI of the job's own store. Files of a host are looked for only if the job is one of this host.
    read = sorted(files)
    gone, first, unknown = 0, "", 0
    for number, (folder, group) in enumerate(groupby(read, lambda each: each.rpartition("/")[0])):
        names = [unquote(each.rpartition("/")[2]) for each in group]
        there = _names(open_root, _plain(folder)) if number < MOST_FOLDERS and _reached(folder, here) else None
        if there is None:
            unknown += len(names)
            continue
        lost = [each for each in names if each not in there]
        gone += len(lost)
        first = first or (f"{_plain(folder)}/{lost[0]}" if lost else "")
    return GoneInputs(len(read), gone, first, unknown)


def _reached(folder: str, here: str) -> bool:
    return not traits(folder).local or traits(here).local


def _plain(folder: str) -> str:
    """Return a folder's URI with its path as it is: Spark writes it percent-encoded."""
    parts = urlsplit(folder)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def _names(open_root: Callable[[str], BoundedFiles], folder: str) -> set[str] | None:
    """Return the names in a folder, none if there is no such folder; None if that cannot be known."""
    try:
        with closing(open_root(folder)) as files:
            return {each.name for each in files.call("list", lambda each: each.list(""), LIST_S)}
    except NotFound:
        return set()
    except (StoreError, Invalid):
        return None

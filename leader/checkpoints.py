"""Checkpoints: the id counter and the newest completed batch of each query, as names under the leader directory.

Every change is a rename from the name last seen, below a directory that a new leader renames away: so it is a
compare-and-swap, and fenced. One process writes, the leader; reads are one list. What is only seen counts for nothing:
a NameNode lists what its journal may never have. A batch that is there, and that this hand has no acknowledgement of,
is renamed once more, to a name that says the same.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import msgspec

from leader import names
from leader.errors import Fenced, InvalidName
from leader.information import FORMAT, MAX_RECORD_BYTES
from leader.names import CHECKPOINTS, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, NotFound
from store.files import Files
from store.outcome import Outcome
from store.paths import STAGING

ATTEMPTS = 4
"""Tries of one change whose outcome stays unknown, each within the call time-out."""

MAX_ID = 10**18 - 1
"""As many digits as names here may have; Spark's own ids are 64-bit integers from 0."""

_NEXT = re.compile(r"next=([1-9][0-9]{0,17})")
_QUERY = re.compile(rf"([A-Za-z0-9._-]+)=(0|[1-9][0-9]{{0,17}}){names.WRITING}")
_FIRST_LETTERS = {"_6e": "n", "_2e": "."}
"""Escaped only at the start of names that mean something else as they are; see :func:`_escape`."""


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """A job's checkpoints.

    Attributes:
        job: the job's name.
        epoch: of the leader that wrote them.
        session_id: likewise.
        next_id: the checkpoint id that will be handed out next.
        queries: newest completed batch id by query.
    """

    job: str
    epoch: int
    session_id: str
    next_id: int = 1
    queries: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class _Wire(msgspec.Struct, frozen=True):
    format: int
    job: str
    epoch: int
    session_id: str
    next_id: int
    queries: dict[str, int]


_decoder = msgspec.json.Decoder(_Wire)


def encode(state: CheckpointState) -> bytes:
    """Write the copy for ZooKeeper."""
    queries = dict(sorted(state.queries.items()))
    return msgspec.json.encode(_Wire(FORMAT, state.job, state.epoch, state.session_id, state.next_id, queries))


def decode(data: bytes, job: str) -> CheckpointState | None:
    """Read a copy from ZooKeeper; None if it is not a valid one of this job in a format we know."""
    if not data or len(data) > MAX_RECORD_BYTES:
        return None
    try:
        wire = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if wire.format != FORMAT or wire.job != job or not names.is_session_id(wire.session_id):
        return None
    if not 0 < wire.epoch <= names.MAX_EPOCH or not 0 < wire.next_id <= MAX_ID + 1:
        return None
    if not all(0 <= batch <= MAX_ID + 1 for batch in wire.queries.values()):  # JSON's integers have no end of their own
        return None
    return CheckpointState(job, wire.epoch, wire.session_id, wire.next_id, MappingProxyType(wire.queries))


def query_entry(query: str, batch: int, writing: int = 1) -> str:
    """The entry for a query's newest batch; :func:`parse_query` reads it back.

    Args:
        query: its name.
        batch: the id.
        writing: see :func:`leader.names.written`.

    Raises:
        InvalidName: the query's name is empty or too long, or the batch is no id of one.
    """
    if not query:
        raise InvalidName("A query needs a name to have its checkpoints published: set queryName.")
    if not 0 <= batch <= MAX_ID:
        raise InvalidName(f"{batch} is not the id of a batch: those are from 0 to {MAX_ID:,}.")
    entry = f"{_escape(query)}={batch}"
    names.check_component(names.written(entry, names.MAX_WRITING), f"The name of query {query!r}")
    return names.written(entry, writing)


@dataclass(frozen=True, slots=True, order=True)
class QueryEntry:
    """One entry of a query; of several, the greatest counts."""

    batch: int
    writing: int = 1


def parse_query(name: str) -> tuple[str, QueryEntry] | None:
    """Read the name of a query's entry; None if :func:`query_entry` does not write it just so."""
    match = _QUERY.fullmatch(name)
    if not match:
        return None
    first, entry = _FIRST_LETTERS.get(match[1][:3]), QueryEntry(int(match[2]), int(match[3] or 1))
    try:
        query = first + names.unescape(match[1][3:]) if first else names.unescape(match[1])
        return (query, entry) if query_entry(query, entry.batch, entry.writing) == name else None
    except InvalidName:
        return None


def _escape(query: str) -> str:
    """Escape a query's name; also one that is called like the counter, or like the drivers' own files."""
    if query == "next" or query.startswith(STAGING):
        return f"_{ord(query[0]):02x}{names.escape(query[1:])}"
    return names.escape(query)


def read(files: Files, job: str, directory: LeaderDirectory) -> CheckpointState:
    """Read a job's checkpoints: one list.

    Raises:
        NotFound: the directory is no longer the leader directory.
        StoreError: the store did not answer.
    """
    return _read(files, job, directory).state


@dataclass(frozen=True)
class _Listing:
    """The checkpoints, and the entries that say so."""

    state: CheckpointState
    entries: Mapping[str, QueryEntry]


def _read(files: Files, job: str, directory: LeaderDirectory) -> _Listing:
    next_id = 1
    entries: dict[str, QueryEntry] = {}
    for entry in files.list(f"{job}/{directory.name}/{CHECKPOINTS}"):
        if match := _NEXT.fullmatch(entry.name):
            next_id = max(next_id, int(match[1]))
        elif found := parse_query(entry.name):
            query, written = found
            entries[query] = max(written, entries.get(query, written))
    queries = MappingProxyType({query: entry.batch for query, entry in entries.items()})
    return _Listing(CheckpointState(job, directory.epoch, directory.session_id, next_id, queries), entries)


class Checkpoints:
    """The leader's hand on its job's checkpoints; safe to use from several threads."""

    def __init__(
        self,
        files: BoundedFiles,
        job: str,
        directory: LeaderDirectory,
        call_timeout: float,
        changed: Callable[[CheckpointState], None] = lambda _: None,
    ) -> None:
        """Touch nothing yet.

        Args:
            files: closed by whoever opened it.
            job: the job's name.
            directory: the leader directory; once it is another leader's, every change raises ``Fenced``.
            call_timeout: seconds for each store call.
            changed: called with the checkpoints after every publication, for the copy in ZooKeeper.
        """
        self._changed = changed
        self._files = files
        self._job = job
        self._directory = directory
        self._timeout = call_timeout
        self._lock = threading.Lock()
        self._known: _Listing | None = None
        self._acknowledged: dict[str, QueryEntry] = {}
        self._doubted: dict[str, QueryEntry] = {}
        """What was last written of a query without an acknowledgement, if anything was since the last of those."""

    def state(self) -> CheckpointState:
        """Read the checkpoints from the file system.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        with self._lock:
            self._known = self._read()
            return self._known.state

    def next(self) -> int:
        """Hand out the next checkpoint id: 1 at first, then one higher every time, never one twice.

        Only a rename that is known to have been ours hands out an id: where the answer is lost, the id is skipped.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: there is no name for a higher id; somebody has damaged the counter.
            StoreError: it stayed unknown whether the counter moved; no id was handed out.
        """
        with self._lock:
            for last in _attempts():
                found = self._fresh()
                number = found.state.next_id
                if number == MAX_ID:  # what comes after it could not be read back: the ids would begin anew
                    raise InvalidName(f"The checkpoint ids of job {self._job!r} end at {MAX_ID:,}: mend its counter.")
                moved = self._rename(f"next={number}", f"next={number + 1}")
                if moved.done:
                    self._keep(replace(found, state=replace(found.state, next_id=number + 1)))
                    return number
                self._judge(moved, last=last)
            raise AssertionError("the last attempt returns or raises")

    def completed(self, query: str, batch: int) -> CheckpointState:
        """Publish that a query's batch is complete; an older batch than the published one changes nothing.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the query's name or the batch cannot be stored.
            StoreError: it stayed unknown whether it was published.
        """
        query_entry(query, batch)  # refused before anything is read
        with self._lock:
            for last in _attempts():
                found = self._fresh()
                before = found.entries.get(query)
                if before is not None and before.batch >= batch and before == self._acknowledged.get(query):
                    return self._keep(found)  # a new leader's copy in ZooKeeper begins with what it found
                written = self._next_writing(query, batch, before)
                target = query_entry(query, written.batch, written.writing)
                changed = (
                    self._make(target)
                    if before is None
                    else self._rename(query_entry(query, before.batch, before.writing), target)
                )
                if changed.done:
                    self._doubted.pop(query, None)
                    self._acknowledged[query] = written
                    queries = MappingProxyType({**found.state.queries, query: written.batch})
                    entries = {**found.entries, query: written}
                    return self._keep(_Listing(replace(found.state, queries=queries), entries))
                self._doubted[query] = written
                self._judge(changed, last=last)
            raise AssertionError("the last attempt returns or raises")

    def _next_writing(self, query: str, batch: int, before: QueryEntry | None) -> QueryEntry:
        """An entry for that batch, or for the newer one that is there, that neither is there nor was tried before."""
        wanted = max(batch, before.batch) if before is not None else batch
        taken = [entry.writing for entry in (before, self._doubted.get(query)) if entry and entry.batch == wanted]
        return QueryEntry(wanted, max(taken, default=0) % names.MAX_WRITING + 1)

    def _fresh(self) -> _Listing:
        """What is known, or else read; it counts as unknown from now on until the change has succeeded."""
        found, self._known = self._known, None
        return found or self._read()

    def _keep(self, found: _Listing) -> CheckpointState:
        self._known = found
        self._changed(found.state)
        return found.state

    def _judge(self, outcome: Outcome[None], *, last: bool) -> None:
        """Raise unless another try makes sense: somebody else moved the name, or nobody knows what happened."""
        retry = outcome.unknown or isinstance(outcome.error, NotFound | AlreadyExists)
        if not retry or last:
            self._read()  # says so if we were fenced
            outcome.result()

    def _rename(self, source: str, target: str) -> Outcome[None]:
        old, new = f"{self._path}/{source}", f"{self._path}/{target}"
        return self._files.outcome("checkpoint", lambda files: files.rename(old, new), self._timeout)

    def _make(self, target: str) -> Outcome[None]:
        return self._files.outcome("checkpoint", lambda f: f.make_directory(f"{self._path}/{target}"), self._timeout)

    @property
    def _path(self) -> str:
        return f"{self._job}/{self._directory.name}/{CHECKPOINTS}"

    def _read(self) -> _Listing:
        try:
            return self._files.call("checkpoints", lambda f: _read(f, self._job, self._directory), self._timeout)
        except NotFound:
            raise Fenced(
                f"Epoch {self._directory.epoch} of job {self._job!r} is over: another leader has taken its place."
            ) from None


def _attempts() -> Iterator[bool]:
    """One item an attempt; whether it is the last."""
    return (number == ATTEMPTS for number in range(1, ATTEMPTS + 1))

"""Replacing: gives a stopped query another checkpoint and other numbers of its outputs, by one rename; undoes that.

The new checkpoint is made beside the query's, with a plan. One rename decides, and whoever leads the job then
completes it: :mod:`ha.rewind.completing`. What was there goes to the trash.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ha.checkpoints.closure import Closure
from ha.checkpoints.trees import check_bulk
from ha.leadership.leadership import Leadership
from ha.rewind.completing import complete
from ha.rewind.plan import DECIDED, PLAN, Plan, RewoundOutput, decoded, encoded
from ha.spark.checkpoint_copy.exporting import Source
from ha.spark.commit_log import is_query, newest_batch
from ha.spark.locations import check_query
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import JobStatus
from leader.layout.names import REWINDING, REWOUND, SPARK, TRASH, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound

CALL_TIMEOUT_S = 20.0


class Log(NamedTuple):
    """The newest batch that a checkpoint has committed, and the newest that it has begun; None if there is none."""

    committed: int | None
    begun: int | None


class Replacing:
    """A query of a job; its methods also raise StoreError if a store fails."""

    def __init__(self, files: BoundedFiles, job: str, query: str, known: LeaderDirectory | None = None) -> None:
        """Look for the job.

        Args:
            files: the store of the jobs.
            job: name of the job.
            query: name of the query.
            known: the leader directory, if the caller leads the job.

        Raises:
            InvalidName: the job or the query cannot have that name.
            NoLeader: there is no such job.
            StoreError: the store did not answer.
        """
        self._query = check_query(query)
        check_bulk(files.uri)
        self._files, self._job = files, job
        self._admin = JobAdmin(files, None, CALL_TIMEOUT_S)
        self._known = known
        self._directory = self._find()

    @contextmanager
    def _prepared(self, leadership: Leadership, name: str) -> Iterator[str]:
        """Make room for what is prepared, and yield its place; what an earlier try has left may be of other files."""
        directory, home = self._directory, f"{REWINDING}/{self._query}"
        if JobStatus(directory).entry().cleaning == "cleaning":
            raise Conflict(f"Job {leadership.job!r} is being cleaned up: complete that first, with `ha clean`.")
        directory.make_folder(REWINDING)
        directory.make_folder(home)
        for entry in directory.list(home):
            if entry.name != DECIDED:
                directory.delete(f"{home}/{entry.name}")
        try:
            yield f"{home}/{name}"
        except NotFound:
            directory.check()  # raises Fenced if another leader has taken over
            raise

    def _decide(self, leadership: Leadership, place: str, plan: Plan) -> None:
        self._directory.rename(self._directory.stage(encoded(plan)), f"{place}/{PLAN}")
        self._directory.rename(place, f"{REWINDING}/{self._query}/{DECIDED}")
        complete(leadership, self._directory)

    def _plan(self, leadership: Leadership, batch: int | None, outputs: list[RewoundOutput], back: str = "") -> Plan:
        last = self._last()
        number = last.number + 1 if last is not None else 1
        return Plan(self._query, batch, uuid.uuid4().hex[:8], leadership.epoch, number, outputs, back)

    def _last(self) -> Plan | None:
        """Return the newest plan of the query of those that lie in the trash; None if there is none."""
        plans = []
        for entry in self._directory.list(TRASH):
            place = f"{TRASH}/{entry.name}/{REWOUND}{self._query}"
            if any(each.name == PLAN for each in self._directory.list(place)):
                plans.append(decoded(self._directory.read(f"{place}/{PLAN}")))
        return max(plans, key=lambda each: each.number, default=None)

    def _closure(self, to: int, *, begun: bool = False) -> Closure:
        _, found = self._source(to, begun=begun).find()
        if found.missing:
            raise Invalid(
                f"Batch {to} of query {self._query!r} cannot be continued. {found.missing}: {found.reason} "
                f"`ha verify {self._job}` says which batches can."
            )
        return found

    def _source(self, to: int, *, begun: bool = False) -> Source:
        return Source(self._admin, self._files, self._job, self._query, to, begun=begun)

    def _log(self, checkpoint: str) -> Log:
        logs = (self._directory.list(f"{checkpoint}/{log}") for log in ("commits", "offsets"))
        return Log(*(newest_batch(each.name for each in entries) for entries in logs))

    def _queries(self) -> list[str]:
        return [each.name for each in self._directory.list(SPARK) if is_query(each.name)]

    def _find(self) -> FencedDirectory:
        return self._admin.directory(self._job, self._known)

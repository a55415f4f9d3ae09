"""Replacing: gives a stopped query another checkpoint and other numbers of its outputs, by one rename; undoes that.

The new checkpoint is made beside the query's, with a plan. One rename decides, and the job's leader at that time
completes it: :mod:`ha.spark.rewind.completing`. What was there goes to the trash.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from ha.checkpoints.closure import Closure
from ha.checkpoints.trees import check_bulk
from ha.checkpoints.verify import advice
from ha.config.stores import Stores
from ha.hook.query_rules import named
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.exporting import ExportSource
from ha.spark.rewind.completing import DECIDED, PLAN, RewindPlan, RewoundOutput, complete, decoded, encoded
from ha.spark.rewind.operated import led
from ha.spark.stored.commit_log import Logs, logs_of, no_checkpoint
from ha.spark.stored.locations import check_query
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import JobStatus
from leader.layout.names import REWINDING, REWOUND, SPARK, TRASH, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound

R = TypeVar("R", bound="Replacing")
L = TypeVar("L")
D = TypeVar("D")

CALL_TIMEOUT_S = 20.0


class Replacing:
    """A query of a job; its methods also raise StoreError if a store fails."""

    def __init__(self, files: BoundedFiles, job: str, query: str, known: LeaderDirectory | None = None) -> None:
        """Look for the job, below the leader directory that is known if the caller leads it."""
        self._query = check_query(query)
        check_bulk(files.uri)
        self._files, self.job = files, job
        self._admin = JobAdmin(files, None, CALL_TIMEOUT_S)
        self._known = known
        self._directory = self._find()

    @contextmanager
    def _prepared(self, leadership: Leadership, name: str) -> Iterator[str]:
        """Make room for what is prepared, and yield its place; what an earlier try has left may be of other files."""
        directory, home = self._directory, f"{REWINDING}/{self._query}"
        if JobStatus(directory).entry().cleaning == "cleaning":
            raise Conflict(f"It is being cleaned up: complete that first, with `ha job clean {leadership.job}`.")
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

    def decided(self) -> RewindPlan | None:
        """Return what was decided for the query and is not complete: the next leader completes it. Mostly None."""
        home = f"{REWINDING}/{self._query}"
        if not any(entry.name == DECIDED for entry in self._directory.list(home)):
            return None
        place = f"{home}/{DECIDED}/{PLAN}"
        with suppress(NotFound):  # the plan is the last to go into the trash
            return decoded(self._directory.read(place))
        return self._last()

    def _decide(self, leadership: Leadership, place: str, plan: RewindPlan) -> None:
        self._directory.rename(self._directory.stage(encoded(plan)), f"{place}/{PLAN}")
        self._directory.rename(place, f"{REWINDING}/{self._query}/{DECIDED}")
        complete(leadership, self._directory)

    def _plan(
        self, leadership: Leadership, batch: int | None, outputs: list[RewoundOutput], back: str = ""
    ) -> RewindPlan:
        last = self._last()
        number = last.number + 1 if last is not None else 1
        return RewindPlan(self._query, batch, uuid.uuid4().hex[:8], leadership.epoch, number, outputs, back)

    def _last(self) -> RewindPlan | None:
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
                f"{advice(found.missing, self.job, self._query)}"
            )
        return found

    def _source(self, to: int, *, begun: bool = False) -> ExportSource:
        return ExportSource(self._admin, self._files, self.job, self._query, to, begun=begun)

    def _log(self, checkpoint: str) -> Logs:
        return logs_of(self._directory, checkpoint)

    def _without_batch(self, why: str) -> Invalid:
        """Return what is said of a query that has committed no batch; or that there is no such query."""
        if self._query in (known := named(each.name for each in self._directory.list(SPARK))):
            return Invalid(f"Query {self._query!r} of job {self.job!r} has committed no batch: {why}.")
        return no_checkpoint(self.job, self._query, known)

    def _find(self) -> FencedDirectory:
        return self._admin.directory(self.job, self._known)


def replaced(
    find: Callable[..., R],
    opened: Stores,
    timeout: float,
    cause: str,
    *,
    agree: Callable[..., bool],
    look: Callable[[R], L],
    change: Callable[[R, Leadership], D],
) -> tuple[L, D | None]:
    """Replace a checkpoint as an operator asks, and return the plan, and what was done; None if nothing was."""
    # The job is led meanwhile. `find` makes the query's tool, of the leader directory that is known if one is, and
    # `look` its plan. `agree` is called with that before the lease is taken, and with `again` when no other process can
    # change it; it returns whether it is to be done. `timeout` is in seconds, for the lease.
    found = find()
    outlook = look(found)  # what can be refused without the lease is
    if not agree(outlook, again=False):
        return outlook, None
    with led(opened, found.job, timeout, cause) as leadership:
        found = find(leadership.own.leader)
        outlook = look(found)  # perhaps it has gone on meanwhile, or an earlier try had decided it
        return outlook, change(found, leadership) if agree(outlook, again=True) else None


def completed(replacing: Replacing, opened: Stores, timeout: float, *, dry_run: bool) -> RewindPlan | None:
    """Complete what an earlier command has decided for the query, and return it; None if there is nothing."""
    if (plan := replacing.decided()) is not None:
        if dry_run:
            raise LeaderError(
                f"An earlier command has decided that {plan.query} goes to batch {plan.batch}, and has not completed "
                "it: give the command without --dry-run, or start the job, whose leader completes it."
            )
        with led(opened, replacing.job, timeout, "rewound"):  # whoever leads completes it first
            pass
    return plan

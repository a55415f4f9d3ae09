"""Sweeps that an operator asks for: of a job, led meanwhile or beside its leader, and of a directory by its URI."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ha.checkpoints.sweeping import FileKind, JobSweep, OutsidePlace, Sweepable, check_trash, find
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.spark.rewind.operated import led
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.swept_files import SweptFiles
from leader.layout.lease import Mode

DAY_MS = 86_400_000.0

Told = Callable[[float, float], object]


class JobToSweep:
    """A job as a sweep finds it."""

    def __init__(
        self, opened: Stores, job: str, *, dry_run: bool, alone: bool, timeout: float, told: Told | None = None
    ) -> None:
        # `alone` says that nothing of the job runs, although its last leader has not given the lease back; `timeout` is
        # in seconds, for the lease. `told` receives how many files are moved, and how many there are.
        self._opened, self._job, self._dry_run, self._alone = opened, job, dry_run, alone
        self._timeout, self._told = timeout, told

    def undo(self) -> dict[str, Any]:
        """Put back what the last sweep has moved; returns what became of it."""
        with self._place() as (job, _):
            return _undone(job.trash)

    def sweep(self, removed: Sequence[str]) -> dict[str, Any]:
        """Move what can go, and the checkpoints of dropped queries to the trash; returns what was found and moved."""
        with self._place() as (job, leadership):
            if removed and leadership is None and not self._dry_run:
                raise LeaderError(f"Job {self._job!r} is led: stop it before you remove the checkpoint of a query.")
            return self._swept(job, leadership, removed)

    @contextlib.contextmanager
    def _place(self) -> Iterator[tuple[JobSweep, Leadership | None]]:
        """Lead the job if its lease is free, or work beside its leader: the next one fences every rename."""
        admin = JobAdmin(self._opened.files, None, self._opened.patience)
        _, lease = admin.lease(self._job)  # raises if there is no such job: to lead it would create it
        leads = not self._dry_run and (self._alone or lease.mode is Mode.RELEASED)
        with led(self._opened, self._job, self._timeout, "swept") if leads else contextlib.nullcontext() as leadership:
            known = leadership.own.leader if leadership is not None else None
            directory = admin.directory(self._job, known)
            yield JobSweep(self._opened.files, directory, alone=leadership is not None), leadership

    def _swept(self, job: JobSweep, leadership: Leadership | None, removed: Sequence[str]) -> dict[str, Any]:
        before_ms, there = job.before_ms(), job.queries()
        if unknown := [each for each in removed if each not in there]:
            known = ", ".join(there) or "none"
            raise LeaderError(f"There is no checkpoint of a query {unknown[0]!r}: there are {known}.")
        found = [job.find(query, before_ms) for query in there if query not in removed]
        copies, revived = job.copies(before_ms), job.revived()
        said = {"queries": list(map(_fields, found)), "copies": copies, "revived": revived, "removed": [*removed]}
        name = ""
        if not self._dry_run and (copies or revived or any(each.kinds for each in found)):
            name = job.trash.begin()
            _move(job.trash, name, found, self._told)
            for query in copies:
                job.move_copy(name, query)
            for old in revived:
                job.move_revived(name, old)
        if leadership is not None and not self._dry_run:
            for query in removed:
                leadership.queries.discard(query)
        return {**said, "trash": name}


def sweep_outside(
    opened: Stores, uri: str, *, dry_run: bool, undo: bool, days: float, told: Told | None = None
) -> dict[str, Any]:
    """Sweep the checkpoint directory at a URI, or put back what the last sweep has moved."""
    # Only what was written so many days before the newest file goes; with 0 all of it.

    def before_ms(written: Sequence[int]) -> float:
        return max(written, default=0) - days * DAY_MS if days else float("inf")

    parent, _, name = uri.rstrip("/").rpartition("/")
    with opened.open_root(parent) as outside:
        trash = SweptFiles(OutsidePlace(outside), "", check_trash(name))
        if undo:
            return _undone(trash)
        found = find(outside, name, name, before_ms)
        moved = ""
        if found.kinds and not dry_run:
            moved = trash.begin()
            _move(trash, moved, [found], told)
        return {"queries": [_fields(found)], "trash": moved}


def _undone(trash: SweptFiles) -> dict[str, Any]:
    name = trash.newest()
    if name is None:
        raise LeaderError("Nothing was swept, or the trash has been emptied: there is nothing to put back.")
    back, taken = trash.undo(name)
    return {"undone": name, "back": back, "taken": taken}


def _move(trash: SweptFiles, name: str, found: Sequence[Sweepable], told: Told | None) -> None:
    total, done = sum(len(each.kinds) for each in found), 0
    for each in found:
        if each.kinds:
            for _ in trash.move(name, each.query, sorted(each.kinds)):
                done += 1
                if told is not None:
                    told(done, total)


def _fields(found: Sweepable) -> dict[str, Any]:
    return {
        "query": found.query,
        "files": len(found.kinds),
        "bytes": found.bytes,
        **{each.value: found.count(each) for each in FileKind},
        "waiting": found.waiting,
        "waiting_bytes": found.waiting_bytes,
        "refused": found.refused,
    }

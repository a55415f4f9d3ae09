"""Pausing a job, for operators: while it is paused its leader stays, and no process takes over. See decision 48.

The lease gets another name. So a standby that has decided to seize it is refused, looks, and finds the pause.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from leader.errors import Fenced
from leader.job.admin import JobAdmin, attempts
from leader.layout.information import Record
from leader.layout.lease import Lease
from leader.layout.names import RECORD, LeaderDirectory
from leader.layout.pause import Pause, present
from store.errors import StoreError
from store.outcome import doubts

T = TypeVar("T")


def pause(admin: JobAdmin, job: str, wanted: Pause) -> tuple[LeaderDirectory, Lease, bool]:
    """Pause a job, or give another reason for its pause. Asking again for the same changes nothing.

    Returns its leader directory, its lease as it was, and whether the job was not paused before. After a StoreError,
    pause it again.
    """
    entry = wanted.name

    def attempt(leader: LeaderDirectory, record: Record, lease: Lease) -> tuple[LeaderDirectory, Lease, bool]:
        known = present(record)
        if known is None or known.reason != wanted.reason:
            admin.directory(job, leader).make_folder(f"{RECORD}/{entry}")  # first: the lease alone pauses the job
            admin.rename_lease(job, leader, lease, lease.as_paused())
            _forget(admin, job, leader, record.pauses - {entry})
        return leader, lease, known in (None, wanted)  # its own, if the answer to an earlier try was lost

    return _changed(admin, job, "paused", attempt)


def resume(admin: JobAdmin, job: str) -> tuple[LeaderDirectory, Lease, Pause | None]:
    """End the pause of a job, if it is paused.

    Returns its leader directory, its lease as it was, and the pause that is over; None if it was not paused. After a
    StoreError, resume it again.
    """
    over: Pause | None = None

    def attempt(leader: LeaderDirectory, record: Record, lease: Lease) -> tuple[LeaderDirectory, Lease, Pause | None]:
        nonlocal over
        if (known := present(record)) is not None:
            over = known
            admin.rename_lease(job, leader, lease, lease.as_resumed())
            _forget(admin, job, leader, record.pauses)
        return leader, lease, over

    return _changed(admin, job, "resumed", attempt)


def _changed(admin: JobAdmin, job: str, what: str, attempt: Callable[[LeaderDirectory, Record, Lease], T]) -> T:
    """Try until the lease was not renewed, and the job not claimed, between the look and the change."""

    def look_and_try() -> T:
        leader, record = admin.record(job)
        assert record.lease is not None, "a record that was returned has a lease"
        return attempt(leader, record, record.lease)

    with doubts(f"job {job!r} is {what}", "ask again, which does no harm"):
        done: T = attempts()(look_and_try)
    admin.poke(job)
    return done


def _forget(admin: JobAdmin, job: str, leader: LeaderDirectory, entries: frozenset[str]) -> None:
    with suppress(StoreError, Fenced):
        for each in entries:
            admin.directory(job, leader).delete(f"{RECORD}/{each}")

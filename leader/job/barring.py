"""Barring contenders and draining hosts, for operators. See decision 60.

A bar (:mod:`leader.layout.bar`) keeps one contender from taking one job over. A drain is the same name in the folder
``.drained`` beside all jobs: every process of that host looks there once, at its start, and bars itself.
Whoever may enter the root must be able to read that folder: processes of other users are on the host, too.
"""

from contextlib import suppress

from leader.job.admin import JobAdmin, attempts
from leader.layout import tree
from leader.layout.bar import Bar, bar_of, bars
from leader.layout.information import Record
from leader.layout.lease import Mode
from leader.layout.names import RECORD, LeaderDirectory
from store.errors import NotFound
from store.files import Files
from store.outcome import doubts

DRAINED = ".drained"  # a name with a dot is no job's


def drained(files: Files) -> dict[str, Bar]:
    """All hosts that an operator has drained, by name, also those whose time is over: one list."""
    try:
        entries = [entry.name for entry in files.list(DRAINED)]
    except NotFound:
        return {}
    return bars(Record.parse(entries))


def drain(files: Files, wanted: Bar) -> None:
    """Note that a host is drained; what was noted of it before is replaced."""
    files.make_root()
    files.make_directory(DRAINED)
    files.make_directory(f"{DRAINED}/{wanted.name}")
    undrain(files, wanted.contender, besides=wanted.name)


def undrain(files: Files, host: str, besides: str = "") -> bool:
    """Forget that a host is drained; returns whether it was."""
    with suppress(NotFound):
        found = [entry.name for entry in files.list(DRAINED)]
        gone = [name for name in found if (bar := Bar.parse(name)) and bar.contender == host and name != besides]
        for name in gone:
            with suppress(NotFound):
                files.delete(f"{DRAINED}/{name}")
        return bool(gone)
    return False


def bar_if_drained(files: Files, job: str, contender: str, wall: float) -> Bar | None:
    """Bar a contender that begins, if its host is drained now (one list); return the order. A new job is not barred."""
    order = bar_of(drained(files), contender)
    if order is None or order.until <= wall:
        return None
    with suppress(NotFound):
        leader = tree.find(files, job)
        files.make_directory(f"{job}/{leader.name}/{RECORD}/{order.name}")
    return order


def bar(admin: JobAdmin, job: str, wanted: Bar) -> None:
    """Bar a contender from taking a job over, or change until when and why. It keeps what it leads."""
    # The lease gets another name after that, so a seizure that was decided before is refused, and its contender looks
    # again. Without a leader there is no name to change: then the next look counts. After a StoreError, bar it again.
    entry = wanted.name

    def attempt(leader: LeaderDirectory, record: Record) -> None:
        if entry not in record.bars:
            admin.directory(job, leader).make_folder(f"{RECORD}/{entry}")
        lease = record.lease
        assert lease is not None, "a record that was returned has a lease"
        if lease.mode is not Mode.RELEASED:
            admin.rename_lease(job, leader, lease, lease.asked_to_look())
        _forget(admin, job, leader, record, wanted.contender, besides=entry)

    with doubts(f"{wanted.contender} is barred from job {job!r}", "ask again, which does no harm"):
        attempts()(lambda: attempt(*admin.record(job)))
    admin.poke(job)


def unbar(admin: JobAdmin, job: str, contender: str) -> bool:
    """Let a contender take a job over again; returns whether it was barred. After a StoreError, ask again."""
    found = False

    def attempt(leader: LeaderDirectory, record: Record) -> None:
        nonlocal found
        found = found or contender in bars(record)  # the answer to a deletion may be lost
        _forget(admin, job, leader, record, contender)

    with doubts(f"the bar of {contender} from job {job!r} has ended", "ask again, which does no harm"):
        attempts()(lambda: attempt(*admin.record(job)))
    if found:
        admin.poke(job)
    return found


def _forget(
    admin: JobAdmin, job: str, leader: LeaderDirectory, record: Record, contender: str, besides: str = ""
) -> None:
    for name in record.bars - {besides}:
        if (each := Bar.parse(name)) and each.contender == contender:
            admin.directory(job, leader).delete(f"{RECORD}/{name}")

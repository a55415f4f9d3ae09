"""Undrain: lets a host take over again; and the names under which processes contend for the jobs, or have led one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

from ha.config.setting import nearest
from leader.errors import LeaderError, NoLeader
from leader.job import barring
from leader.job.admin import JobAdmin
from leader.layout.bar import bars
from leader.layout.hosts import alike, covers, host_of
from store.errors import PermissionDenied

WORKERS = 8  # jobs that are looked at at the same time


class Undrained(msgspec.Struct, frozen=True):
    """What became of the end of a drain.

    Attributes:
        host: its name.
        drained: whether the host was.
        jobs: from which it was barred.
        not_yours: jobs of other users, which may still bar it.
    """

    host: str
    drained: bool
    jobs: list[str]
    not_yours: list[str]


def undrain(admin: JobAdmin, host: str) -> Undrained:
    """Let a host take over again."""
    # StoreError: the file system does not answer; ask again.
    known = admin.call("undrain", lambda files: barring.undrain(files, host))
    closed: list[str] = []

    def one(job: str) -> str | None:
        try:
            return job if barring.unbar(admin, job, host) else None
        except NoLeader:
            return None
        except PermissionDenied:
            closed.append(job)
            return None

    with ThreadPoolExecutor(WORKERS, "ha-drain") as crew:
        jobs = list(filter(None, crew.map(one, admin.jobs())))
    return Undrained(host, known, jobs, sorted(closed))


def known_as(admin: JobAdmin, host: str, what: str) -> str:
    """Return a host's name as its processes spell it, whether a person has written it in full, in capitals or not.

    Histories are read only if nothing else knows the name.

    Args:
        admin: of the jobs.
        host: the name that a person has given: a contender's, or its host's.
        what: sentence that says what to do if the name is right all the same.

    Raises:
        LeaderError: no process is known by that name, or by several: nobody is to believe that a host is drained.
    """
    seen: set[str] = set()
    jobs, unseen = admin.jobs(), False
    for past in (False, True):
        for job in jobs:
            with suppress(NoLeader, PermissionDenied):  # other users' jobs tell nothing
                names, blind = _past(admin, job) if past else _present(admin, job)
                seen.update(names)
                unseen = unseen or blind
        if any(covers(host, each) for each in seen):
            return host
        if found := sorted({host_of(each) for each in seen if alike(host, host_of(each))}):
            return _only(host, found)
    close = nearest(host, seen | {host_of(each) for each in seen}, 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else " `ha job list` shows all contenders."
    blind_to = " ZooKeeper does not say who stands by, so a standby that has never led is not seen." if unseen else ""
    raise LeaderError(
        f"No process contends as {host!r} for any of the {len(jobs)} jobs, and none has led one under that name."
        f"{hint}{blind_to} {what}"
    )


def _only(host: str, found: list[str]) -> str:
    if len(found) > 1:
        raise LeaderError(f"{host!r} may be {' or '.join(found)}: name one of them.")
    return found[0]


def _present(admin: JobAdmin, job: str) -> tuple[Iterator[str], bool]:
    """Return who holds, waits or is barred, and whether those who wait are not known."""
    _, record = admin.record(job)
    contenders = admin.contenders(job)
    holder = (record.lease.contender,) if record.lease else ()
    return iter((*holder, *bars(record), *(contenders or ()))), contenders is None


def _past(admin: JobAdmin, job: str) -> tuple[Iterator[str], bool]:
    return (each.contender for each in admin.history(job)), False

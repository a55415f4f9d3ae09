"""The story of one job, as ``ha job show`` and the HTTP API tell it: what is so, since when, and what can be done."""

from collections.abc import Iterator, Mapping

import msgspec

from ha.views.ages import at_time
from ha.views.jobs import JobSummary, newest_of, summary
from ha.views.leases import JobLook, Leases, steady
from ha.views.records import CheckpointRow, FailureRow, checkpoint_row, failures
from ha.views.remarks import possible, remarks
from leader.errors import Unreadable
from leader.job import grants
from leader.job.admin import JobAdmin
from leader.job.programs import Programs
from leader.job.request_folder import Requests
from leader.job.versioned_files import VersionedFiles
from leader.layout.lease import ANYBODY, LOOK, PAUSED
from leader.layout.names import CHECKPOINTS, HISTORY, REQUESTS, REWINDING, check_job

UNDER_WAY = {REWINDING: "rewind", "importing": "import"}
"""Folders that hold something while an operation on checkpoints goes on, or was interrupted."""


MOST_REQUESTS = 3  # newest requests that are looked at: each costs a read


class StoredVersion(msgspec.Struct, frozen=True):
    """The newest program that is stored for a job; see :class:`leader.job.programs.Program`."""

    version: int
    command: list[str]
    by: str | None
    at: str | None


class OpenRequest(msgspec.Struct, frozen=True):
    """A request that has no answer yet; see :class:`leader.job.request_folder.Request`."""

    id: str
    verb: str
    by: str
    state: str
    said: str


class JobStory(msgspec.Struct, frozen=True):
    """All that the stores say of a job, on one screen.

    Attributes:
        glance: the job at a glance.
        led_since: when this leadership began, by the clock of the file system; null without one, or if unknown.
        reason: why the lease was free then, in a word of the history; null as above.
        endpoints: addresses of the leader, by name.
        standbys: contenders that do not lead; null if ZooKeeper does not answer.
        program: null if none is stored: then each sidecar has a command of its own.
        batches: the newest completed batch of each query.
        requests: that operators have made, and that are not answered.
        under_way: operations on checkpoints that go on, or were interrupted.
        last_failure: null if none is known.
        said: what a person has to know, in sentences.
        possible: commands that a person may give now.
    """

    glance: JobSummary
    led_since: str | None
    reason: str | None
    endpoints: Mapping[str, str]
    standbys: list[str] | None
    program: StoredVersion | None
    batches: list[CheckpointRow]
    requests: list[OpenRequest]
    under_way: list[str]
    last_failure: FailureRow | None
    said: list[str]
    possible: list[str]


def story(admin: JobAdmin, job: str, leases: Leases) -> JobStory:
    """Tell the story of a job. Costs the NameNode some fifteen calls."""
    return steady(lambda: _story(admin, check_job(job), leases))


def _story(admin: JobAdmin, job: str, leases: Leases) -> JobStory:
    glance, look = summary(admin, job, leases), leases.look(admin, job)
    directory = look.directory
    known = grants.read(directory.list(HISTORY)) if glance.holder is not None else []
    grant = next((each for each in known if each.epoch == directory.leader.epoch and each.at_ms), None)
    published = look.record.published(job, directory.leader) if glance.holder is not None else None
    failed = failures(admin, job)
    return JobStory(
        glance,
        at_time(grant.at_ms) if grant is not None else None,
        grant.reason if grant is not None else None,
        dict(published.endpoints) if published is not None else {},
        None if glance.contenders is None else [each for each in glance.contenders if each != glance.holder],
        _program(look),
        [checkpoint_row(each) for each in newest_of(each.name for each in directory.list(CHECKPOINTS))],
        _requests(look),
        [*_under_way(look)],
        failed[-1] if failed else None,
        list(remarks(glance)),
        possible(glance),
    )


def _under_way(look: JobLook) -> Iterator[str]:
    lease = look.record.lease
    if lease is not None and look.lease.held and lease.successor not in ("", LOOK, PAUSED):
        yield f"handover to {'any standby' if lease.successor == ANYBODY else lease.successor}"
    for folder in (each.name for each in look.entries if each.name in UNDER_WAY):
        yield from (f"{UNDER_WAY[folder]} of {each.name}" for each in look.directory.list(folder))


def _program(look: JobLook) -> StoredVersion | None:
    try:
        newest = Programs(look.directory).newest()
    except Unreadable:  # another version of this package has written it
        return None
    if newest is None:
        return None
    return StoredVersion(newest.version, newest.command, newest.by or None, at_time(newest.at * 1000))


def _requests(look: JobLook) -> list[OpenRequest]:
    """Read the newest requests; older ones have been answered, or refused with the end of their leader."""
    requests = Requests(look.directory)
    names = sorted(VersionedFiles(look.directory, REQUESTS, "a request").versions())[-MOST_REQUESTS:]
    found = [each for name in names if (each := requests.load(name)) is not None and not each.state.final]
    return [OpenRequest(each.id, each.verb, each.by, each.state.value, each.said) for each in found]

"""Overview: the roots of a group, with the jobs that lie there and the load that their NameNodes report."""

from concurrent.futures import ThreadPoolExecutor

import msgspec

from ha.groups.placement.group_files import GroupFiles
from ha.groups.placement.load import load_of
from leader.errors import InvalidName
from leader.layout.names import check_job
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock, now
from store.errors import NotFound, StoreError

READERS = 8
"""Roots, or jobs, that are looked at at the same time."""

TIMEOUT_S = 5.0
"""Seconds for one look."""


class RootView(msgspec.Struct, frozen=True):
    """One root of a group.

    Attributes:
        root: its URI.
        jobs: that lie there, sorted; null if it does not answer.
        requests_per_second: that its active NameNode has taken meanwhile, from all its users; null if it does not say.
        queue_ms: that a request has waited lately, on average; likewise.
        processing_ms: that a request has taken after that; likewise.
        queue_length: requests that wait now; likewise.
        problem: why something is not known; null if all is.
    """

    root: str
    jobs: list[str] | None
    requests_per_second: float | None = None
    queue_ms: float | None = None
    processing_ms: float | None = None
    queue_length: int | None = None
    problem: str | None = None


def overview(group: GroupFiles, seconds: float, ca: str = "", clock: Clock = BOOT_CLOCK) -> list[RootView]:
    """Look at all roots of a group.

    Args:
        group: the group.
        seconds: time in which requests are counted.
        ca: file with the authorities that sign the certificates of NameNodes; empty for those of this host.
        clock: measures and waits.
    """
    lying = places(group)

    def one(root: str) -> RootView:
        jobs, problem = lying[root]
        try:
            first, began = load_of(root, ca), clock.now()
            clock.sleep(seconds)
            second, ended = load_of(root, ca), clock.now()
        except StoreError as error:
            return RootView(root, jobs, problem=problem or f"{error}")
        rate = (second.requests - first.requests) / (ended - began)
        said = (second.queue_ms, second.processing_ms, second.queue_length)
        return RootView(root, jobs, round(max(0.0, rate), 1), *said, problem)

    with ThreadPoolExecutor(len(lying), "ha-groups") as crew:
        return list(crew.map(one, sorted(lying)))


def places(group: GroupFiles) -> dict[str, tuple[list[str] | None, str | None]]:
    """Return the jobs that lie at each root, or why that is not known: a list of each root.

    A name at several roots takes one or two lists more: the job lies at one of them, and others point there.
    """
    seen: dict[str, list[str]] = {}
    with ThreadPoolExecutor(READERS, "ha-groups") as crew:
        answers = dict(zip(group.roots, crew.map(_names, group.roots.values()), strict=True))
        for root, names in answers.items():
            for name in names if isinstance(names, list) else ():
                seen.setdefault(name, []).append(root)
        whole = all(isinstance(each, list) for each in answers.values())
        lies = {job: at[0] for job, at in seen.items() if len(at) == 1 and whole}
        unsure = [job for job in seen if job not in lies]
        lies.update(zip(unsure, crew.map(lambda job: _place(group, job), unsure), strict=True))
    return {
        root: (None, f"{each}")
        if isinstance(each, StoreError)
        else (sorted(job for job, at in lies.items() if at == root), None)
        for root, each in answers.items()
    }


def _place(group: GroupFiles, job: str) -> str:
    """Return where a job lies; empty if that is not known."""
    try:
        return group.place(job, now() + TIMEOUT_S)
    except StoreError:
        return ""


def _names(root: BoundedFiles) -> list[str] | StoreError:
    try:
        found = root.call("groups", lambda files: files.list(""), TIMEOUT_S)
    except NotFound:
        return []
    except StoreError as error:
        return error
    return [each.name for each in found if each.is_directory and _is_job(each.name)]


def _is_job(name: str) -> bool:
    try:
        return check_job(name) == name
    except InvalidName:
        return False

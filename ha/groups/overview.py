"""Overview: the roots of a group, with the jobs that lie there and the load that their NameNodes report."""

from concurrent.futures import ThreadPoolExecutor

import msgspec

from ha.placement.group_files import GroupFiles
from ha.placement.load import load_of
from leader.errors import InvalidName
from leader.layout.names import check_job
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock, now
from store.errors import NotFound, StoreError

READERS = 8  # roots, or jobs, that are looked at at the same time
# Seconds between two figures of a NameNode: a shorter count has all requests of that time in it, or none.
REFRESHED_EVERY_S = 10.0
TIMEOUT_S = 5.0  # seconds for one look


class RootView(msgspec.Struct, frozen=True):
    """One root of a group."""

    root: str  # its URI
    jobs: list[str] | None  # that lie there, sorted; null if it does not answer
    # That its active NameNode has taken meanwhile, from all its users; null if it does not say.
    requests_per_second: float | None = None
    queue_ms: float | None = None  # that a request has waited lately, on average; null if unknown
    processing_ms: float | None = None  # that a request has taken after that; null if unknown
    queue_length: int | None = None  # requests that wait now; null if unknown
    problem: str | None = None  # why something is unknown; null if all is known


def overview(group: GroupFiles, seconds: float, ca: str, clock: Clock = BOOT_CLOCK) -> list[RootView]:
    """Look at all roots of a group, and count their requests for some seconds."""
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
        if seconds < REFRESHED_EVERY_S:
            problem = problem or f"{root}: REQUESTS/S is not known: count for {REFRESHED_EVERY_S:g} s or longer."
            return RootView(root, jobs, None, *said, problem)
        return RootView(root, jobs, round(max(0.0, rate), 1), *said, problem)

    with ThreadPoolExecutor(len(lying), "ha-groups") as crew:
        return list(crew.map(one, sorted(lying)))


def places(group: GroupFiles) -> dict[str, tuple[list[str] | None, str | None]]:
    """Return the jobs that lie at each root, or why that is not known: a list of each root."""
    # A name at several roots takes one or two lists more: the job lies at one of them, and others point there.
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

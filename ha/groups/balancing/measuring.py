"""Measuring: the requests of each root, and an estimate of what each job has in them."""

from concurrent.futures import ThreadPoolExecutor

import msgspec

from ha.groups.balancing.plan import JobLoad
from ha.groups.moving.marks import arrival
from ha.groups.moving.staying import bound, outputs, rest, time_of
from ha.groups.overview import READERS, RootView, overview, places
from ha.groups.placement.group_files import GroupFiles
from leader.errors import LeaderError
from leader.layout import tree
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.names import CHECKPOINTS
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import NotFound
from store.files import Files


class _Look(msgspec.Struct, frozen=True):
    """One look at a job.

    Attributes:
        checkpoint: id of the newest one: the number of batches that were completed so far.
        arrived: when the job came to its root, in milliseconds of the root's clock; 0 if it was created there.
        outputs: that are published by renames.
    """

    checkpoint: int
    arrived: int
    outputs: list[str]


def measured(
    group: GroupFiles, seconds: float, timeout: float, ca: str = "", clock: Clock = BOOT_CLOCK
) -> tuple[dict[str, float], list[JobLoad]]:
    """Measure all roots and all jobs of a group.

    A job's share in the requests of its root is the one that it has in the batches which were completed there.

    Args:
        group: the roots.
        seconds: time in which requests and batches are counted.
        timeout: seconds for the looks at one job.
        ca: file with the authorities that sign the certificates of NameNodes; empty for those of this host.
        clock: measures and waits.

    Returns:
        the requests a second of each root, and the load of each job.

    Raises:
        LeaderError: a root does not say how loaded it is, or which jobs it has.
        StoreError: a root does not answer.
    """
    first = {root: jobs or [] for root, (jobs, _) in places(group).items()}
    at = {job: root for root, jobs in first.items() for job in jobs}
    before = _looks(group, at, timeout)
    views = overview(group, seconds, ca, clock)
    after = _looks(group, at, timeout)
    rates = {each.root: _rate(each) for each in views}
    times = {root: time_of(group.roots[root]) for root in {at[job] for job, each in after.items() if each.arrived}}
    batches = {job: after[job].checkpoint - each.checkpoint for job, each in before.items() if job in after}
    sums = dict.fromkeys(rates, 0)
    for job, count in batches.items():
        sums[at[job]] += max(0, count)
    return rates, [
        JobLoad(
            job,
            at[job],
            round(rates[at[job]] * max(0, count) / sums[at[job]], 3) if sums[at[job]] else 0.0,
            _stays(after[job], at[job], list(rates), times),
        )
        for job, count in sorted(batches.items())
    ]


def _rate(view: RootView) -> float:
    if view.requests_per_second is None or view.jobs is None:
        raise LeaderError(f"The load of {view.root} is not known, so nothing can be balanced: {view.problem}")
    return view.requests_per_second


def _stays(seen: _Look, at: str, roots: list[str], times: dict[str, int]) -> str:
    resting = rest(seen.arrived, times[at]) if seen.arrived else ""
    kept = [said for root in roots if root != at and (said := bound(seen.outputs, at, root))]
    return resting or next(iter(kept), "")


def _looks(group: GroupFiles, at: dict[str, str], timeout: float) -> dict[str, _Look]:
    """Look at all jobs; one that has gone or moved meanwhile is left out."""

    def one(item: tuple[str, str]) -> tuple[str, _Look | None]:
        job, root = item
        try:
            return job, _look(group.roots[root], job, timeout)
        except NotFound:
            return job, None

    with ThreadPoolExecutor(READERS, "ha-balance") as crew:
        return {job: seen for job, seen in crew.map(one, at.items()) if seen is not None}


def _look(files: BoundedFiles, job: str, timeout: float) -> _Look:
    def ask(driver: Files) -> tuple[str, int, int]:
        leader = tree.find(driver, job).name
        arrived = max(((arrival(each.name), each.modified_ms) for each in driver.list(job)), default=(0, 0))
        found = [CheckpointEntry.parse(each.name) for each in driver.list(f"{job}/{leader}/{CHECKPOINTS}")]
        return leader, arrived[1] if arrived[0] else 0, max((each.checkpoint.id for each in found if each), default=0)

    leader, arrived, checkpoint = files.call("balance", ask, timeout)
    return _Look(checkpoint, arrived, outputs(files, job, leader))

"""Balancing: the load of each root and each job as measured, and which jobs should move where, and why.

Greedy: of the most loaded root, the job moves that leaves the pair of it and the least loaded root most even. What has
moved lately, or cannot move, stays; at most a fifth of all jobs moves at once, because a measurement is old by then.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ha.groups.moving.marks import arrival
from ha.groups.moving.preconditions import bound, outputs, rest, time_of
from ha.groups.overview import READERS, RootView, overview, places
from ha.placement.group_files import GroupFiles
from leader.errors import LeaderError
from leader.layout import tree
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.names import CHECKPOINTS
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import NotFound
from store.files import Files

GOAL = 1.2  # requests of the most loaded root, in means of all roots
SHARE = 0.2  # most jobs that move, of all jobs of the group


class JobLoad(msgspec.Struct, frozen=True):
    """One job."""

    job: str  # its name
    root: str  # where it lies
    rate: float  # requests a second that it makes, by an estimate
    stays: str = ""  # why it cannot move now; empty if it can


class Move(msgspec.Struct, frozen=True):
    """One job that should move."""

    job: str  # its name
    source: str  # root that it leaves
    target: str  # root to which it goes
    rate: float  # requests a second that it makes
    source_rate: float  # requests a second at the source before it goes
    target_rate: float  # requests a second at the target before it comes


class Plan(msgspec.Struct, frozen=True):
    """What should move."""

    moves: list[Move]  # in this order
    before: float  # requests of the most loaded root, in means, as measured
    after: float  # the same after these moves
    why: str  # why the plan ends before the goal is reached; empty if it is reached
    stay: dict[str, str]  # jobs that could not be considered, and why


def imbalance(roots: Mapping[str, float]) -> float:
    """Return the requests of the most loaded root, in means of all; 1 without requests."""
    mean = sum(roots.values()) / len(roots)
    return max(roots.values()) / mean if mean > 0 else 1.0


def plan(roots: Mapping[str, float], jobs: Sequence[JobLoad], goal: float = GOAL, share: float = SHARE) -> Plan:
    """Return which jobs should move, by the requests a second of each root, and all jobs of the group."""
    rates, most = dict(roots), int(len(jobs) * share)
    left = {each.job: each for each in jobs if not each.stays and each.rate > 0}
    moves: list[Move] = []
    why = ""
    while imbalance(rates) > goal:
        if len(moves) == most:
            why = f"at most {share:.0%} of {len(jobs)} jobs move at once"
            break
        best = _best(rates, left.values())
        if best is None:
            why = "no job that may move would make it more even"
            break
        moves.append(best)
        del left[best.job]
        rates[best.source] -= best.rate
        rates[best.target] += best.rate
    stay = {each.job: each.stays for each in jobs if each.stays}
    return Plan(moves, round(imbalance(roots), 3), round(imbalance(rates), 3), why, stay)


def _best(rates: Mapping[str, float], jobs: Collection[JobLoad]) -> Move | None:
    """Return the move that leaves the most and the least loaded root most even; None if each makes it worse."""
    source = max(rates, key=lambda root: (rates[root], root))
    target = min(rates, key=lambda root: (rates[root], root))

    def gap(rate: float) -> float:
        return abs((rates[source] - rate) - (rates[target] + rate))

    best = min(
        (each for each in jobs if each.root == source), key=lambda each: (gap(each.rate), each.job), default=None
    )
    if best is None or gap(best.rate) >= gap(0):  # a rate may be too small to change anything
        return None
    return Move(best.job, source, target, best.rate, round(rates[source], 3), round(rates[target], 3))


# --- measuring


class _Look(msgspec.Struct, frozen=True):
    """One look at a job."""

    checkpoint: int  # id of the newest one: the number of batches that were completed so far
    arrived: int  # when the job came to its root, in milliseconds of the root's clock; 0 if it was created there
    outputs: list[str]  # that are published by renames


def measured(
    group: GroupFiles, seconds: float, timeout: float, ca: str = "", clock: Clock = BOOT_CLOCK
) -> tuple[list[RootView], list[JobLoad]]:
    """Measure a group for some seconds: return what each root says of its load, and the load of each job."""
    # A job's share in the requests of its root is the one that it has in the batches which were completed there.
    # LeaderError: a root does not say how loaded it is, or which jobs it has.
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
    return views, [
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
        raise LeaderError(f"The load of {view.root} is not known, so no move can be proposed: {view.problem}")
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

    with ThreadPoolExecutor(READERS, "ha-groups") as crew:
        return {job: seen for job, seen in crew.map(one, at.items()) if seen is not None}


def _look(files: BoundedFiles, job: str, timeout: float) -> _Look:
    def ask(driver: Files) -> tuple[str, int, int]:
        leader = tree.find(driver, job).name
        arrived = max(((arrival(each.name), each.modified_ms) for each in driver.list(job)), default=(0, 0))
        found = [CheckpointEntry.parse(each.name) for each in driver.list(f"{job}/{leader}/{CHECKPOINTS}")]
        return leader, arrived[1] if arrived[0] else 0, max((each.checkpoint.id for each in found if each), default=0)

    leader, arrived, checkpoint = files.call("groups", ask, timeout)
    return _Look(checkpoint, arrived, outputs(files, job, leader))

"""Made-up histories from a seed, in the format of drills: input for reports without drills."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random

from ha.drill.outcome import Check, DrillOutcome, Report, Span
from ha.history.events import (
    Believed,
    Completed,
    Copied,
    Counted,
    Ended,
    Event,
    Fault,
    Granted,
    LookedUp,
    Published,
    Ran,
    Revoked,
    Stored,
)

JOB = "orders"
BEGAN = 51_234.5
"""Boot-clock seconds at which all drills begin."""


@dataclass
class Story:
    """Events of a drill.

    Attributes:
        seed: of everything random.
        seconds: of the drill.
        fault_at: start of the fault.
        healed_at: end of the fault.
        takeover: seconds until the next leader; None if the leader stays.
        killed: whether the old leader's process ends with the fault.
        readers: their names.
        during: sources of answers during the fault, with weights; ``unreachable`` for none.
        twice: seconds for which the old leader goes on beside the next one.
        lease: seconds of a belief.
        warm: seconds from a grant to the first batch.
    """

    seed: int = 1
    seconds: float = 75.0
    fault_at: float = 25.0
    healed_at: float = 50.0
    takeover: float | None = 1.4
    killed: bool = True
    readers: list[str] = field(default_factory=lambda: ["reader-1", "reader-2", "agent"])
    during: dict[str, float] = field(default_factory=lambda: {"snapshot": 0.7, "hdfs": 0.3})
    twice: float = 0.0
    lease: float = 6.0
    warm: float = 2.1


def _dice(*seed: object) -> Random:
    return Random(" ".join(map(str, seed)))  # noqa: S311  # nothing here is a secret


def history(story: Story) -> list[Event]:
    events = [*_contenders(story), *_lookups(story), *_batches(story), *_stores(story)]
    return sorted(events, key=lambda event: event.at)


@cache
def _session(seed: int, epoch: int) -> str:
    return str(uuid.UUID(int=_dice(seed, epoch).getrandbits(128), version=4))


def _reign(story: Story, who: str, epoch: int, begins: float, ends: float, *, told: bool) -> Iterator[Event]:
    session = _session(story.seed, epoch)
    yield Believed(begins, JOB, who, begins + story.lease, begins + story.lease + 0.5)
    yield Granted(begins + 0.002, JOB, who, epoch, session, "first" if epoch == 1 else "lease expired")
    yield Ran(begins + 0.05, JOB, who, epoch, True)
    yield Published(begins + 0.3, JOB, who, epoch, session, {"driver": f"{who}:4040", "rest": f"{who}:8080"})
    at = begins
    while (at := at + story.lease / 3) < ends:
        yield Believed(at, JOB, who, at + story.lease, at + story.lease + 0.5)
    if told:
        yield Believed(ends, JOB, who, None, None)
        yield Revoked(ends, JOB, who, session, "lease could not be renewed")
        yield Ran(ends + 0.2, JOB, who, epoch, False)


def _contenders(story: Story) -> Iterator[Event]:
    begins, ends = BEGAN + 1.3, BEGAN + story.seconds - 0.8
    if story.takeover is None:
        yield from _reign(story, "contender-a", 1, begins, ends, told=True)
        return
    broken = BEGAN + story.fault_at
    old_ends = broken if story.killed else broken + story.takeover - 0.3 + story.twice
    yield from _reign(story, "contender-a", 1, begins, old_ends, told=not story.killed)
    if story.killed:
        yield Ended(broken, "", "contender-a")
    yield from _reign(story, "contender-b", 2, broken + story.takeover, ends, told=True)
    yield Believed(BEGAN + 1.2, JOB, "contender-c", None, None)


def _lookups(story: Story) -> Iterator[Event]:
    broken, healed = BEGAN + story.fault_at, BEGAN + story.healed_at
    for number, reader in enumerate(story.readers):
        dice = _dice(story.seed, reader)
        at = BEGAN + 0.4 + 0.03 * number
        while at < BEGAN + story.seconds - 1:
            weights = story.during if broken <= at < healed else {"snapshot": 0.92, "zookeeper": 0.08}
            source = dice.choices(list(weights), list(weights.values()))[0]
            took = {"snapshot": 0.0001, "zookeeper": 0.004, "hdfs": 0.02}.get(source, 2.0) * dice.uniform(0.6, 2.5)
            if dice.random() < 0.002:
                took += dice.uniform(0.2, 0.9)
            new = story.takeover is not None and at > broken + story.takeover
            epoch = 2 if new else 1
            if source == "unreachable":
                took = 2.0
                yield LookedUp(at, JOB, at + took, took, reader, "unreachable")
            elif at < BEGAN + 1.7 or (story.takeover is not None and broken + 0.8 < at <= broken + story.takeover):
                yield LookedUp(at, JOB, at + took, 2.0, reader, "none")
            else:
                session, who = _session(story.seed, epoch), "contender-b" if new else "contender-a"
                endpoints = {"driver": f"{who}:4040", "rest": f"{who}:8080"}
                verified = source == "hdfs"
                yield LookedUp(
                    at, JOB, at + took, 2.0, reader, "leader", epoch, session, endpoints, source, verified, False
                )
            at += max(0.1 * dice.uniform(0.9, 1.1), took)


def _batches(story: Story) -> Iterator[Event]:
    dice = _dice(story.seed, "batches")
    at, batch, epoch, who = BEGAN + 6.0, 0, 1, "contender-a"
    broken = BEGAN + story.fault_at
    while (at := at + 0.75 * dice.uniform(0.8, 1.4)) < BEGAN + story.seconds - 1.5:
        if epoch == 1 and story.takeover is not None and at > broken:
            if story.twice:
                yield Completed(at, JOB, at + 0.01, who, epoch, "words", batch)
            at, epoch, who = broken + story.takeover + story.warm, 2, "contender-b"
        yield Counted(at - 0.1, JOB, at - 0.09, who, epoch, batch + 1)
        yield Completed(at, JOB, at + 0.012, who, epoch, "words", batch)
        batch += 1


def _stores(story: Story) -> Iterator[Event]:
    at, number = BEGAN + 1.0, 0
    while at < BEGAN + story.seconds:
        directory = f"{1:010}-{_session(story.seed, 1)}"
        yield Stored(at, JOB, "rename", f"{directory}/lease/{number}", f"{directory}/lease/{number + 1}", "contender-a")
        yield Copied(at + 0.004, JOB, "write", f"/ha/{JOB}/leader", 72_057_594_037_927_936 + 7, 7, "{}")
        at, number = at + 2.0, number + 1
    yield Fault(BEGAN + story.fault_at, "", "broken")
    yield Fault(BEGAN + story.healed_at, "", "mended")


def outcome(drill: str, story: Story, *, what: str, group: str = "kills", provider: str = "hybrid-ha") -> DrillOutcome:
    """A passed drill, with figures that roughly fit its history."""
    changes = story.takeover is not None
    takeover = {"takeover_seconds": story.takeover, "takeover_bound_seconds": 7.0} if story.takeover is not None else {}
    lookups = [event for event in history(story) if isinstance(event, LookedUp)]
    failed = sum(event.outcome == "unreachable" for event in lookups)
    wrong = 340.0 if story.twice else 0.0
    return DrillOutcome(
        drill=drill,
        title=f"{what[0].upper()}{what[1:]} while the job counts words; see who leads, what is read and what is lost.",
        group=group,
        environment="sandbox",
        provider=provider,
        status="failed" if story.twice or failed else "passed",
        began=BEGAN,
        seconds=story.seconds,
        checks=[
            Check("one leader at a time", not story.twice, f"Two believed to lead for {story.twice:.1f} s."),
            Check("every word is counted once", not wrong, f"{12_000 + wrong:,.0f} of 12,000 words were counted."),
            Check("lookups succeed", not failed, f"{failed} of {len(lookups)} failed."),
        ],
        measures={
            "leader_changes": float(changes),
            **takeover,
            "first_batch_seconds": (story.takeover or 0) + story.warm,
            "longest_without_batch_seconds": (story.takeover or 0) + story.warm + 0.4,
            "lookups": float(len(lookups)),
            "lookups_failed": float(failed),
            "slowest_lookup_seconds": max(event.ended - event.at for event in lookups),
            "words_expected": 12_000.0,
            "words_counted": 12_000.0 + wrong,
            "words_wrong": wrong,
            "batches": 84.0,
            "batches_twice": float(bool(story.twice)),
            "overlap_seconds": story.twice,
            "leaderless_seconds": story.takeover or 0.0,
        },
        faults=[Span(what, BEGAN + story.fault_at, BEGAN + story.healed_at)],
    )


def skipped(drill: str, reason: str, group: str = "network") -> DrillOutcome:
    title = "Cut the leader off from everything, and see that its driver is stopped before the next one begins."
    return DrillOutcome(
        drill=drill, title=title, group=group, environment="containers", status="skipped", reason=reason
    )


def report(*outcomes: DrillOutcome) -> Report:
    return Report(
        version="0.1.0",
        when="2025-06-03T14:05:11+02:00",
        machine={"cores": "2", "memory": "7.8 GB", "kernel": "Linux 6.1", "Python": "3.11.7", "Spark": "4.3.0"},
        settings={"session_timeout": 6.0, "long_ttl": 60.0, "short_ttl": 6.0, "lookup_timeout": 2.0, "audit": 30.0},
        outcomes=list(outcomes),
    )

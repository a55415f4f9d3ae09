"""From SIGKILL of a Spark driver to the first batch that its successor commits: a warm standby beside a cold one.

Two sidecars run the word count on one host: a stateful query with fenced output, its checkpoint in real HDFS. Files
wait all the time, so that no driver waits for any. Two ways to die:

- *driver*: the Python program alone is killed; its sidecar gives the leadership back, and the standby takes it.
- *all*: sidecar, guard, driver, JVM and Python workers are killed at once; the standby sees that the process is gone.

Warm and cold standbys take turns in one run. A batch is committed when its entry in Spark's commit log is written.
"""

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import nan
from statistics import median
from threading import Event

from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from benchmarks.spark.sidecars import Sidecar, Sidecars
from benchmarks.spark.words import Words
from ha.sandbox import Sandbox
from store.clock import now

NAME = "spark_failover"
TITLE = "SIGKILL of a Spark driver until its successor commits a batch, warm and cold"

JOB = "failover"
DRIVER, ALL = "driver", "all"
WARM_WITHIN, FASTER = 2.5, 6.0

BEFORE = 2
"""Batches that the leader commits before it is killed: it is at work, and so is its JVM."""

SETTLED = 10.0
"""Seconds for which a standby has stood by: its own JVM is quiet by then. Python workers that are idle live for a
minute."""


@dataclass(frozen=True, slots=True)
class Failover:
    """One of them.

    Attributes:
        killed: ``driver`` or ``all``.
        warm: whether the standby was.
        granted: seconds from the kill until the standby was granted the leadership.
        committed: seconds from the kill until its first batch was committed.
    """

    killed: str
    warm: bool
    granted: float
    committed: float


def run(context: Context) -> Result:
    """Measure.

    Raises:
        SandboxError: the servers did not come up.
        NotSo: a driver did not do its work.
    """
    with servers(context) as sandbox:
        return summarise(measure(context, sandbox))


def measure(context: Context, sandbox: Sandbox) -> list[Failover]:
    """Kill leaders of one job, one after the other; each successor is the next one's victim."""
    found = sandbox.environment()
    words = Words(found["HA_FILES"], JOB)
    sidecars = Sidecars(words, environment(sandbox), context.folder)
    failovers = []
    with ExitStack() as stack:
        stack.callback(words.close)
        stack.callback(sidecars.end)
        stack.enter_context(words.feeding())
        leader = sidecars.start(warm=False)
        sidecars.until(words.commits, "the first leader commits a batch")
        for number in range(context.repeats(quick=1)):
            for warm in (True, False):
                for killed in (DRIVER, ALL):
                    each, leader = _once(words, sidecars, leader, killed, warm=warm)
                    failovers.append(each)
                    context.say(
                        f"Round {number + 1} of {context.repeats(quick=1)}: {killed}, {'warm' if warm else 'cold'}: "
                        f"granted after {each.granted:.2f} s, committed after {each.committed:.2f} s"
                    )
    return failovers


def environment(sandbox: Sandbox) -> dict[str, str]:
    """Return all variables of a sidecar in this sandbox."""
    quick = {"HA_SNAPSHOTS": "off", "HA_HAND_OVER": "20"}
    return {**os.environ, **sandbox.environment(), **quick}


def _once(words: Words, sidecars: Sidecars, leader: Sidecar, killed: str, *, warm: bool) -> tuple[Failover, Sidecar]:
    successor = sidecars.start(warm=warm)
    sidecars.until(lambda: successor.ready, "the standby is ready")
    Event().wait(SETTLED)
    before = words.newest()
    sidecars.until(lambda: words.newest() >= before + BEFORE, "the leader commits batches")
    wall, at = time.time(), now()
    if killed == DRIVER:
        leader.strike(DRIVER)
    else:
        sidecars.drop(leader)
    granted = sidecars.until(lambda: next(iter(successor.grants), None), "the standby is granted the job")
    if killed == DRIVER:
        sidecars.drop(leader)  # on its own host it would warm up again; here it would take the successor's processor
    granted_at = wall + granted.at - at
    first = sidecars.until(
        lambda: next((c for c in words.commits() if c.epoch >= granted.epoch and c.at > granted_at), None),
        "the successor commits a batch",
    )
    return Failover(killed, warm, granted.at - at, first.at - wall), successor


def summarise(failovers: Sequence[Failover]) -> Result:
    """Return what was found."""
    cases = {
        (killed, warm): [each for each in failovers if (each.killed, each.warm) == (killed, warm)]
        for killed in (DRIVER, ALL)
        for warm in (True, False)
    }
    middles = {case: median(each.committed for each in found) if found else nan for case, found in cases.items()}
    names = {case: f"{case[0]} killed, {'warm' if case[1] else 'cold'} standby" for case in cases}
    return Result(
        name=NAME,
        title=TITLE,
        columns=("what", "times", "granted (s)", "first commit (s)", "fastest (s)", "slowest (s)"),
        rows=tuple(
            (
                names[case],
                len(found),
                median(each.granted for each in found),
                middles[case],
                min(each.committed for each in found),
                max(each.committed for each in found),
            )
            for case, found in cases.items()
            if found
        ),
        targets=tuple(
            target
            for killed in (DRIVER, ALL)
            for target in (
                Target(f"{killed} killed, warm standby: first commit", WARM_WITHIN, middles[killed, True], "s", True),
                Target(
                    f"{killed} killed: a cold standby takes so many times as long",
                    FASTER,
                    middles[killed, False] / middles[killed, True],
                    "x",
                    at_most=False,
                ),
            )
        ),
        notes=(
            "Medians. Warm and cold standbys take turns, on one host that also runs ZooKeeper, NameNode and DataNode.",
            "The query counts words and has a Python function: one file a batch, the next at once; state in HDFS.",
            "Each batch is published by ha.spark.Output.",
            "granted: until the standby's sidecar knows that it leads; what comes after is Spark's, and the program's.",
            f"A standby has been ready for {SETTLED:g} s: it watches the leader; its Python workers live.",
            "Where only the driver is killed, its sidecar waits until the JVM has ended, too; it is ended then.",
        ),
        pictures=(
            Picture(
                "commits",
                "Until the successor commits its first batch",
                dots(
                    "Until the successor commits its first batch",
                    "s",
                    {names[case]: [each.committed for each in found] for case, found in cases.items()},
                    log=True,
                ),
            ),
        ),
        raw={"failovers": [asdict(each) for each in failovers]},
    )

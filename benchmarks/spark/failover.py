"""Benchmark of Spark failovers: from SIGKILL of a driver to its successor's first commit, by the kind of standby.

Two sidecars run the word count on one host: a stateful query with fenced output, its checkpoint in real HDFS. Input
files always wait, so no driver waits for input. There are two kinds of kill:

- *driver*: the Python program alone is killed; its sidecar gives the leadership back, and the standby takes it.
- *all*: sidecar, guard, driver, JVM and Python workers are killed at once; the standby sees that the process is gone.

Three kinds of standbys take turns in one run: warm ones, cold ones, and cold ones with an archive of Spark's classes
(``--class-data on``), which is made before. A batch is committed when its entry in Spark's commit log is written.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import nan
from statistics import median
from threading import Event

from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from benchmarks.spark.sidecars import NotSo, Sidecar, Sidecars
from benchmarks.spark.words import Words
from ha.sandbox import Sandbox
from ha.sidecar.class_data import ClassData
from store.clock import now

NAME = "spark_failover"
TITLE = "SIGKILL of a Spark driver until its successor commits a batch, by the kind of standby"

JOB = "failover"
DRIVER, ALL = "driver", "all"
WARM, COLD, CLASS_DATA = "warm", "cold", "cold with class data"
STANDBYS = (WARM, COLD, CLASS_DATA)
WARM_WITHIN = {DRIVER: 1.2, ALL: 1.0}
FASTER, CLASS_DATA_FASTER = 6.0, 1.5

BEFORE = 2
"""Batches that the leader commits before the kill, so that it and its JVM are warm."""

SETTLED = 10.0
"""Seconds for which a standby has stood by: its JVM is quiet by then. Idle Python workers live for a minute."""


@dataclass(frozen=True, slots=True)
class Failover:
    """One failover.

    Attributes:
        killed: ``driver`` or ``all``.
        standby: its kind, one of ``STANDBYS``.
        granted: seconds from the kill until the standby was granted the leadership.
        committed: seconds from the kill until its first batch was committed.
    """

    killed: str
    standby: str
    granted: float
    committed: float


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
        NotSo: a driver did not do its work.
    """
    with servers(context) as sandbox:
        return summarise(measure(context, sandbox))


def measure(context: Context, sandbox: Sandbox) -> list[Failover]:
    """Kill the leaders of one job, one after the other; each successor is the next victim."""
    found = sandbox.environment()
    words = Words(found["HA_FILES"], JOB)
    sidecars = Sidecars(words, environment(sandbox), context.folder)
    failovers = []
    class_data = ClassData([sys.executable], found["HA_FILES"], environment(sandbox))
    context.say("Making the archive of Spark's classes, if there is none")
    class_data.find()
    if class_data.archive is None:
        raise NotSo("There is no archive of Spark's classes: see the log.")
    with ExitStack() as stack:
        stack.callback(words.close)
        stack.callback(sidecars.end)
        stack.enter_context(words.feeding())
        leader = sidecars.start(warm=False)
        sidecars.until(words.commits, "the first leader commits a batch")
        for number in range(context.repeats(quick=1)):
            for standby in STANDBYS:
                for killed in (DRIVER, ALL):
                    each, leader = _once(words, sidecars, leader, killed, standby)
                    failovers.append(each)
                    context.say(
                        f"Round {number + 1} of {context.repeats(quick=1)}: {killed}, {standby}: "
                        f"granted after {each.granted:.2f} s, committed after {each.committed:.2f} s"
                    )
    return failovers


def environment(sandbox: Sandbox) -> dict[str, str]:
    """Return all variables of a sidecar in this sandbox."""
    quick = {"HA_SNAPSHOTS": "off", "HA_HAND_OVER": "20"}
    return {**os.environ, **sandbox.environment(), **quick}


def _once(words: Words, sidecars: Sidecars, leader: Sidecar, killed: str, standby: str) -> tuple[Failover, Sidecar]:
    successor = sidecars.start(warm=standby == WARM, class_data=standby == CLASS_DATA)
    sidecars.until(lambda: successor.ready, "the standby is ready")
    Event().wait(SETTLED)
    before = words.newest()
    sidecars.until(lambda: words.newest() >= before + BEFORE, "the leader commits batches")
    wall, at = time.time(), now()
    if killed == DRIVER:
        if not leader.kill_child(DRIVER):
            raise NotSo(f"{leader.name} has no driver to be killed: see its log.")
    else:
        sidecars.drop(leader)
    granted = sidecars.until(lambda: next(iter(successor.grants), None), "the standby is granted the job")
    if killed == DRIVER:
        sidecars.drop(leader)  # on its own host it would warm up again; here it would use the successor's processor
    granted_at = wall + granted.at - at
    first = sidecars.until(
        lambda: next((c for c in words.commits() if c.epoch >= granted.epoch and c.at > granted_at), None),
        "the successor commits a batch",
    )
    return Failover(killed, standby, granted.at - at, first.at - wall), successor


def _targets(killed: str, middles: Mapping[tuple[str, str], float]) -> tuple[Target, ...]:
    """Return the targets of one kind of kill, by the medians of each kind of kill and standby."""
    cold = middles[killed, COLD]
    return (
        Target(f"{killed} killed, standby warm: first commit", WARM_WITHIN[killed], middles[killed, WARM], "s", True),
        Target(
            f"{killed} killed: ratio of a cold standby's time to a warm one's",
            FASTER,
            cold / middles[killed, WARM],
            "x",
            at_most=False,
        ),
        Target(
            f"{killed} killed: ratio of a cold standby's time without class data to that with it",
            CLASS_DATA_FASTER,
            cold / middles[killed, CLASS_DATA],
            "x",
            at_most=False,
        ),
    )


def summarise(failovers: Sequence[Failover]) -> Result:
    """Return the result."""
    cases = {
        (killed, standby): [each for each in failovers if (each.killed, each.standby) == (killed, standby)]
        for killed in (DRIVER, ALL)
        for standby in STANDBYS
    }
    middles = {case: median(each.committed for each in found) if found else nan for case, found in cases.items()}
    names = {case: f"{case[0]} killed, standby {case[1]}" for case in cases}
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
        targets=tuple(each for killed in (DRIVER, ALL) for each in _targets(killed, middles)),
        notes=(
            "Medians. The kinds of standbys take turns, on one host that also runs ZooKeeper, NameNode and DataNode.",
            "The query counts words and has a Python function: one file a batch, the next at once; state in HDFS.",
            "Each batch is published by ha.spark.Output.",
            "granted: until the standby's sidecar knows that it leads; the rest is the work of Spark and the program.",
            f"A standby has been ready for {SETTLED:g} s: it watches the leader, and its Python workers are alive.",
            "If only the driver is killed, its sidecar also waits for the end of the JVM.",
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

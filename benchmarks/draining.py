"""Benchmark of a drain: a host that leads many jobs is emptied, in peace, and while its successor is killed."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.context import Context, servers
from benchmarks.led import Job, Programs
from benchmarks.programs import ha
from benchmarks.result import Result, at_most
from benchmarks.thousand_jobs.daemon import Daemon, end_all
from ha.config.sources import load
from ha.config.stores import Stores
from store.clock import now

TITLE = "All jobs of a host moved to others, each until its next batch"
COLUMNS = ("round", "jobs moved", "left", "whole drain (s)", "a job, median (s)", "slowest (s)", "most batches late")
JOBS, QUICK_JOBS = 50, 8
HOSTS = ("a", "b", "c")
TRIGGER = 1.0  # Seconds between two batches of a job
SETTLING = 12.0  # Seconds after the last grant in which ZooKeeper begins to attest
WITHIN = 120.0
SECONDS, LATE = 60.0, 2  # The targets: of the whole drain, and of a job in batches


@dataclass
class Round:
    """One drain: what the command said, and the longest time without a batch of each job, in triggers."""

    name: str
    seconds: float
    said: dict[str, Any]
    gaps: dict[str, float]
    returned: list[str]  # Jobs that the drained host led at the end

    @property
    def late(self) -> int:
        """Batches by which the latest job was late."""
        return max(0, int(max(self.gaps.values())) - 1)


def run(context: Context) -> Result:
    """Run the benchmark; it takes about four minutes."""
    jobs = [f"job-{number:02d}" for number in range(QUICK_JOBS if context.quick else JOBS)]
    with servers(context) as sandbox, ExitStack() as stack:
        variables = {**os.environ, **sandbox.environment(), "HA_SNAPSHOTS": "off"}
        daemons: dict[str, Daemon] = {}
        stack.callback(lambda: end_all(daemons.values()))
        for name in HOSTS:
            daemons[name] = Daemon(name, jobs, variables, context.folder)
            daemons["a"].granted(WITHIN)  # before the others start
        opened = Stores(load({"files": variables["HA_FILES"], "zookeeper": variables["HA_ZOOKEEPER"]}))
        stack.callback(opened.close)
        batches = [Job(name, TRIGGER) for name in jobs]
        programs = Programs(opened, batches)
        stack.callback(programs.end)
        rounds = []

        def drain(name: str, killed: str, of: tuple[str, ...] = ("a",)) -> Round:
            """Drain hosts one after the other; kill a daemon as soon as the first job has moved to it."""
            context.say(f"draining: {', '.join(of)}, {name}")
            began, said = now(), dict[str, Any]()
            for host in of:
                with ThreadPoolExecutor(1) as crew:
                    drained = crew.submit(ha, ["host", "drain", host, "--json", "--timeout", "2 min"], variables)
                    while killed and not drained.done():
                        if any(programs.holder(each) == killed for each in jobs):
                            daemons[killed].kill()
                            break
                    said = json.loads(drained.result().stdout)
            took = now() - began
            threading.Event().wait(2 * TRIGGER)
            gaps = {each.name: each.pause(began, now()) for each in batches}
            return Round(name, took, said, gaps, [each for each in jobs if programs.holder(each) in of])

        for name, killed in (("in peace", ""), ("its first successor is killed meanwhile", "b")):
            threading.Event().wait(SETTLING)
            rounds.append(drain(name, killed))
            if not killed:
                ha(["host", "undrain", "a"], variables)
                drain("back", "", of=HOSTS[1:])
                for each in HOSTS[1:]:
                    ha(["host", "undrain", each], variables)
    return _report(rounds, len(jobs))


def _report(rounds: list[Round], jobs: int) -> Result:
    rows = []
    for each in rounds:
        seconds = sorted(one["seconds"] for one in each.said["moved"]) or [float("nan")]
        left = len(each.said["left"]) + len(each.returned)
        row = (each.name, len(each.said["moved"]), left, round(each.seconds, 1))
        rows.append((*row, round(median(seconds), 2), round(seconds[-1], 2), each.late))
    peace, stormy = rounds
    return Result(
        COLUMNS,
        tuple(rows),
        (
            at_most(f"{jobs} jobs drained off a host", SECONDS, peace.seconds, "s"),
            at_most("Jobs that it leads at the end", 0, len(peace.returned) + len(peace.said["left"])),
            at_most("Batches by which a job was late", LATE, peace.late),
            at_most("Jobs that a failover has put back", 0, len(stormy.returned)),
        ),
        (
            f"{jobs} jobs, contended for by three `ha host daemon`; each leader completes a batch every {TRIGGER:g} s.",
            "A job has moved when its next leader has completed a batch; eight move at a time.",
            "In the second round the daemon that gets the first jobs is killed (SIGKILL) while the others move.",
        ),
        (),
        {"rounds": [asdict(each) for each in rounds]},
    )

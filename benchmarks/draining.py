"""Benchmark of a drain: a host that leads many jobs is emptied, once in peace and once while its successor is killed.

Each job completes a batch every :data:`TRIGGER` seconds under whoever leads it. How late a job was is seen from these
batches alone: the longest time without one, in triggers, less the one that is always there.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from benchmarks.context import Context, servers
from benchmarks.result import Result, Target
from benchmarks.thousand_jobs.daemon import Daemon
from ha.config.sources import load
from ha.config.stores import Stores
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.checkpoints import Checkpoints
from leader.layout.lease import Mode
from store.clock import now
from store.errors import StoreError

NAME = "draining"
TITLE = "All jobs of a host moved to others, each until its next batch"
COLUMNS = ("round", "jobs moved", "left", "whole drain (s)", "a job, median (s)", "slowest (s)", "most batches late")
JOBS, QUICK_JOBS = 50, 8
HOSTS = ("a", "b", "c")
TRIGGER = 1.0
"""Seconds between two batches of a job."""

WRITERS = 4
SETTLING = 12.0
"""Seconds after the last grant in which ZooKeeper begins to attest."""

WITHIN = 120.0
SECONDS, LATE = 60.0, 2
"""The targets: of the whole drain, and of a job in batches."""


@dataclass
class Round:
    """One drain: what the command said, and the longest time without a batch of each job, in seconds."""

    name: str
    seconds: float
    said: dict[str, Any]
    gaps: dict[str, float] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)
    """Jobs that the drained host led at the end."""

    @property
    def late(self) -> int:
        """Batches by which the latest job was late."""
        return max(0, int(max(self.gaps.values()) / TRIGGER) - 1)


class Batches:
    """Completes batches of all jobs under whoever leads them, as their programs would."""

    def __init__(self, admin: JobAdmin, jobs: list[str]) -> None:
        """Start."""
        self._admin = admin
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._gaps: dict[str, float] = {}
        self._batch = dict.fromkeys(jobs, 0)
        parts = [jobs[number::WRITERS] for number in range(WRITERS)]
        self._threads = [threading.Thread(target=self._run, args=(part,), daemon=True) for part in parts]
        for thread in self._threads:
            thread.start()

    def watch(self) -> None:
        """Count the longest times anew."""
        with self._lock:
            self._gaps.clear()

    def gaps(self) -> dict[str, float]:
        """The longest time between two batches of each job, in seconds, also of those that have not come yet."""
        with self._lock:
            return {job: max(self._gaps.get(job, 0.0), now() - at) for job, at in self._last.items()}

    def end(self) -> None:
        """Stop."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, jobs: list[str]) -> None:
        while not self._ended.is_set():
            began = now()
            for job in jobs:
                with suppress(LeaderError, StoreError):  # nobody leads, or a leader has just claimed the job
                    self._complete(job)
            self._ended.wait(max(0.0, began + TRIGGER - now()))

    def _complete(self, job: str) -> None:
        leader, lease = self._admin.lease(job)
        if lease.mode is Mode.RELEASED or lease.owner != leader.session_id:
            return
        Checkpoints(self._admin.directory(job, leader)).completed("daily", self._batch[job])
        at = now()
        with self._lock:
            self._gaps[job] = max(self._gaps.get(job, 0.0), at - self._last.get(job, at))
            self._last[job] = at
        self._batch[job] += 1


def run(context: Context) -> Result:
    """Run the benchmark; it takes about four minutes.

    Raises:
        SandboxError: the servers did not start.
        NotGranted: a daemon did not lead all its jobs in time.
    """
    jobs = [f"job-{number:02d}" for number in range(QUICK_JOBS if context.quick else JOBS)]
    with servers(context) as sandbox, ExitStack() as stack:
        variables = {**os.environ, **sandbox.environment(), "HA_SNAPSHOTS": "off"}
        daemons: dict[str, Daemon] = {}
        stack.callback(_end, daemons)

        def start(name: str) -> Daemon:
            daemons[name] = Daemon(name, jobs, variables, context.folder)
            return daemons[name]

        start("a").granted(WITHIN)
        for name in HOSTS[1:]:
            start(name)
        opened = Stores(load({name.lower()[3:]: value for name, value in variables.items() if name in KNOWN}))
        stack.callback(opened.close)
        admin = JobAdmin(opened.files, opened.zookeeper, opened.timing.call_timeout)
        batches = Batches(admin, jobs)
        stack.callback(batches.end)
        rounds = []
        for name, killed in (("in peace", ""), ("its first successor is killed meanwhile", "b")):
            threading.Event().wait(SETTLING)
            rounds.append(_drain(context, name, variables, admin, batches, daemons, killed))
            if not killed:
                _ha(variables, "undrain", "a")
                _drain(context, "back", variables, admin, batches, daemons, "", of=HOSTS[1:])
                for each in HOSTS[1:]:
                    _ha(variables, "undrain", each)
    return _report(rounds, len(jobs))


KNOWN = ("HA_FILES", "HA_ZOOKEEPER")


def _drain(
    context: Context,
    name: str,
    variables: Mapping[str, str],
    admin: JobAdmin,
    batches: Batches,
    daemons: Mapping[str, Daemon],
    killed: str,
    of: tuple[str, ...] = ("a",),
) -> Round:
    """Drain hosts one after the other; kill a daemon as soon as the first job has moved to it."""
    context.say(f"draining: {', '.join(of)}, {name}")
    batches.watch()
    began, said = now(), dict[str, Any]()
    for host in of:
        with ThreadPoolExecutor(1) as crew:
            drained = crew.submit(_ha, variables, "drain", host, "--json", "--timeout", "2 min")
            while killed and not drained.done():
                if any(_holder(admin, job) == killed for job in list(batches.gaps())):
                    daemons[killed].kill()
                    break
            said = json.loads(drained.result())
    found = Round(name, now() - began, said)
    threading.Event().wait(2 * TRIGGER)
    found.gaps = batches.gaps()
    found.returned = [job for job in found.gaps if _holder(admin, job) in of]
    return found


def _holder(admin: JobAdmin, job: str) -> str:
    with suppress(LeaderError, StoreError):
        return admin.lease(job)[1].contender
    return ""


def _ha(variables: Mapping[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "ha.cli", *arguments]
    return subprocess.run(command, check=False, env=dict(variables), stdout=subprocess.PIPE).stdout.decode()


def _end(daemons: Mapping[str, Daemon]) -> None:
    for each in daemons.values():
        each.end()


def _report(rounds: list[Round], jobs: int) -> Result:
    rows = []
    for each in rounds:
        seconds = sorted(one["seconds"] for one in each.said["moved"]) or [float("nan")]
        left = len(each.said["left"]) + len(each.returned)
        row = (each.name, len(each.said["moved"]), left, round(each.seconds, 1))
        rows.append((*row, round(median(seconds), 2), round(seconds[-1], 2), each.late))
    peace, stormy = rounds
    return Result(
        NAME,
        TITLE,
        COLUMNS,
        tuple(rows),
        (
            Target(f"{jobs} jobs drained off a host", SECONDS, peace.seconds, "s", at_most=True),
            Target("Jobs that it leads at the end", 0, len(peace.returned) + len(peace.said["left"]), "", at_most=True),
            Target("Batches by which a job was late", LATE, peace.late, "", at_most=True),
            Target("Jobs that a failover has put back", 0, len(stormy.returned), "", at_most=True),
        ),
        (
            f"{jobs} jobs, contended for by three `ha daemon`; a batch of each every {TRIGGER:g} s, under its leader.",
            "A job has moved when its next leader has completed a batch; eight move at a time.",
            "In the second round the daemon that gets the first jobs is killed (SIGKILL) while the others move.",
        ),
        (),
        {"rounds": [asdict(each) for each in rounds]},
    )

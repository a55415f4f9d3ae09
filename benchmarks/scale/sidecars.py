"""Real sidecars beside the model: many ``ha run`` on one host, counted by the stores themselves.

    eval "$(ha lab sandbox env)"; python -m benchmarks.scale.sidecars --jobs 100 --seconds 300

It needs a running sandbox that nobody else uses. Each job has two sidecars, whose command sleeps, and one agent lends
its session to all. What the stores count is compared as it is: heartbeats are in the model, because a request of a
session puts its next heartbeat off.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.programs import wait
from benchmarks.scale.costs import HEARTBEATS, NAMENODE, ZOOKEEPER, Sharing, load, rate
from benchmarks.thousand_jobs.counters import counted, zookeeper
from ha.config.sources import load as settings
from ha.config.stores import Stores
from leader.job.admin import JobAdmin
from leader.layout.lease import Lease, Mode
from leader.layout.znodes import SESSIONS, session_path
from store.errors import StoreError
from store.zookeeper import Children, Get

AT_ONCE = 4  # Sidecars that are started before the next ones wait for them: to start one takes a core for a second
ALL_WITHIN_S = 300.0  # Seconds that these may take on a busy machine, and that all leases may take to be attested
SETTLES_S = 70.0
"""Seconds from when all are there until the last one has settled: longer than every period of the protocol."""

CALL_S = 10.0
TICK = os.sysconf("SC_CLK_TCK")


def start(name: str, arguments: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start one process; its log is a file."""
    own = {"HA_ZOOKEEPER_SESSION": "host", "HA_SNAPSHOTS": str(folder / "snapshots"), "HA_CONTENDER": name}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "ha.cli", *arguments], env={**os.environ, **own}, stdout=log, stderr=log
        )


def lent(stores: Stores) -> Counter[int]:
    """Return by session how many nodes attest it: one of its own, and one of each process that borrows it."""
    assert stores.zookeeper is not None, "the sandbox has one"
    try:
        tokens: list[str] = stores.zookeeper.call(Children(SESSIONS), CALL_S)
        nodes = [stores.zookeeper.call(Get(session_path(token)), CALL_S) for token in tokens]
    except StoreError:  # there is no node yet, or not any more; or the machine is busy
        return Counter()
    return Counter(stat.ephemeral_owner for _, stat in nodes)


def more_than(stores: Stores, nodes: int) -> bool:
    """Whether more nodes than that attest sessions."""
    return lent(stores).total() > nodes


def leases(stores: Stores, jobs: int) -> list[Lease]:
    """Return the lease of each job."""
    admin = JobAdmin(stores.files, None, CALL_S)
    return [admin.lease(f"many-{number}")[1] for number in range(jobs)]


def start_all(jobs: int, folder: Path, started: list["subprocess.Popen[bytes]"]) -> int:
    """Start all sidecars, some at a time; returns how many sessions attest them once all leases are attested."""
    with closing(Stores(settings({"snapshots": "off"}))) as stores:
        assert stores.zookeeper is not None, "the sandbox has one"
        stores.zookeeper.start()
        stores.zookeeper.wait(ALL_WITHIN_S)
        for number in range(2 * jobs):
            command = ["run", f"many-{number % jobs}", "--", "sleep", "86400"]
            started.append(start(f"{'ab'[number // jobs]}{number % jobs}", command, folder))
            if number % AT_ONCE == AT_ONCE - 1:
                wait(partial(more_than, stores, number + 1), f"{number + 1} to be attested", ALL_WITHIN_S)
        wait(partial(more_than, stores, 2 * jobs), "all to be attested", ALL_WITHIN_S)
        modes = {Mode.ZOOKEEPER}
        wait(lambda: {lease.mode for lease in leases(stores, jobs)} == modes, "attested leases", ALL_WITHIN_S)
        return len(lent(stores))


def calls() -> tuple[int, float]:
    """Return the calls that the NameNode has counted, just when it has brought them up to date."""
    return counted(os.environ["HA_SANDBOX_WEBHDFS"]), time.monotonic()


def packets() -> tuple[int, float]:
    """Return the packets that ZooKeeper has received, and when."""
    return zookeeper(os.environ["HA_ZOOKEEPER"].partition(",")[0]), time.monotonic()


def cpu_s(started: list["subprocess.Popen[bytes]"]) -> float:
    """Return the processor time of processes until now, without their children's."""
    spent = [Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split()[11:13] for each in started]
    return sum(int(user) + int(system) for user, system in spent) / TICK


def a_minute(before: tuple[int, float], after: tuple[int, float]) -> float:
    """Return the rate between two readings of a counter, a minute."""
    return (after[0] - before[0]) / (after[1] - before[1]) * 60


def modelled(jobs: int, sharing: Sharing) -> tuple[float, float, float]:
    """Return what the model says, a minute: packets of ZooKeeper, heartbeats among them, and calls of the NameNode."""
    parts = [each for part in (sharing.leader, sharing.standby) for each in part]
    requests = rate(ZOOKEEPER, sharing.holder) + jobs * sum(rate(ZOOKEEPER, each) for each in parts)
    beats = rate((HEARTBEATS,), sharing.holder) + jobs * sum(rate((HEARTBEATS,), each) for each in parts)
    return requests + beats, beats, jobs * sum(rate(NAMENODE, each) for each in parts)


@click.command()
@click.option("--jobs", default=100, show_default=True, help="How many; each has two sidecars.")
@click.option("--seconds", default=300.0, show_default=True, help="For how long the stores count.")
def main(jobs: int, seconds: float) -> None:
    """Count the requests of real sidecars at rest, and compare them with the model."""
    with TemporaryDirectory(prefix="sidecars-") as made:
        folder = Path(made)
        started = [start("agent", ["host", "agent"], folder)]
        try:
            sessions = start_all(jobs, folder, started)
            click.echo(f"{2 * jobs} sidecars are attested by {sessions} session(s); load {os.getloadavg()[0]:.1f}")
            time.sleep(SETTLES_S)
            report(jobs, seconds, started)
            logs = [folder / f"{side}{number}.log" for side in "ab" for number in range(jobs)]
            lost = sum(each.read_text().count("revoked") for each in logs)
            click.echo(f"{lost} leaders have lost a lease; load {os.getloadavg()[0]:.1f}")
            click.echo(f"still running: {sum(each.poll() is None for each in started) - 1} of {2 * jobs} sidecars")
        finally:
            for each in started[::-1]:
                each.send_signal(signal.SIGTERM)
            for each in started:
                each.wait(120)


def report(jobs: int, seconds: float, started: list["subprocess.Popen[bytes]"]) -> None:
    """Count, and print what was counted beside what the model says."""
    of_files, of_zookeeper, cpu = calls(), packets(), cpu_s(started)
    time.sleep(seconds)
    zookeeper_a_minute = a_minute(of_zookeeper, packets())
    spent = (cpu_s(started) - cpu) / seconds
    namenode_a_minute = a_minute(of_files, calls())
    of_model, beats, calls_of_model = modelled(jobs, load().shared)
    rows = (
        ("ZooKeeper, all packets", zookeeper_a_minute, of_model),
        ("ZooKeeper, less the modelled heartbeats", zookeeper_a_minute - beats, of_model - beats),
        ("NameNode, calls", namenode_a_minute, calls_of_model),
    )
    for what, found, expected in rows:
        click.echo(f"{what}, a minute: {found:.1f} counted, {expected:.1f} modelled ({found / expected:.2f})")
    click.echo(f"processor time of all sidecars and the agent: {spent:.2f} s a second")


if __name__ == "__main__":
    main()

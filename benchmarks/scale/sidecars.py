"""Real sidecars beside the model: many ``ha run`` on one host, counted by the stores themselves.

    eval "$(ha sandbox env)"; python -m benchmarks.scale.sidecars --jobs 60 --seconds 240

It needs a running sandbox whose ZooKeeper allows the command ``cons``. Each job has two sidecars, whose command sleeps.
One agent lends its session to all. Heartbeats are no requests: a leader's session has nothing else at rest, so the
sessions of the leaders show how many there are.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

from benchmarks.scale.costs import NAMENODE, ZOOKEEPER, load, rate

AT_ONCE = 4
"""Sidecars that are started within :data:`START_EVERY_S` seconds."""

START_EVERY_S = 2.0
ALL_WITHIN_S = 600.0
SETTLES_S = 70.0
"""Seconds from when all are there until the last one has settled: longer than every period of the protocol."""

RPC = ("GetListingNumOps", "Rename2NumOps", "MkdirsNumOps", "DeleteNumOps", "GetFileInfoNumOps", "CreateNumOps")
"""What the NameNode counts of the calls of clients."""

_RECEIVED = re.compile(r"recved=(\d+),.*?sid=0x([0-9a-f]+)")
_OWNER = re.compile(r"^0x([0-9a-f]+):$")


def said(word: str) -> str:
    """Return what ZooKeeper answers to a four-letter word."""
    host, _, port = os.environ["HA_ZOOKEEPER"].partition(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as asked:
        asked.sendall(word.encode())
        answer = b""
        while more := asked.recv(65_536):
            answer += more
    return answer.decode()


def received() -> Counter[str]:
    """Return how many packets ZooKeeper has received in each session."""
    return Counter({session: int(number) for number, session in _RECEIVED.findall(said("cons"))})


def roles() -> dict[str, str]:
    """Return who owns each session: the holder, a leader or a standby."""
    found: dict[str, str] = {}
    session = ""
    for text in said("dump").splitlines():
        if owner := _OWNER.match(text.strip()):
            session = owner[1]
        elif text.endswith("/leader"):
            found[session] = "leader"
        elif "/contenders/" in text and found.get(session) != "leader":
            found[session] = "standby"
        elif "/sessions/" in text:  # a contender has one of its own only if it has confirmed its own session
            found.setdefault(session, "holder")
    return found


def await_all(jobs: int) -> None:
    """Wait until each job has a leader and a standby, and one process lends its session.

    Raises:
        ClickException: they are not there in time.
    """
    end = time.monotonic() + ALL_WITHIN_S
    while (found := Counter(roles().values())) != {"holder": 1, "leader": jobs, "standby": jobs}:
        if time.monotonic() > end:
            raise click.ClickException(f"Not all sidecars came in {ALL_WITHIN_S:g} s: {dict(found)}. Start fewer.")
        time.sleep(1.0)


def calls() -> Counter[str]:
    """Return how many calls of clients the NameNode has served."""
    where = os.environ["HA_SANDBOX_WEBHDFS"].removeprefix("webhdfs://").partition("/")[0]
    question = f"http://{where}/jmx?qry=Hadoop:service=NameNode,name=RpcDetailedActivityForPort*"
    with urllib.request.urlopen(question, timeout=10) as answer:  # the sandbox's
        beans = json.load(answer)["beans"]
    return Counter({name: sum(int(bean.get(name, 0)) for bean in beans) for name in RPC})


def start(name: str, arguments: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start one process; its log is a file."""
    settings = {"HA_ZOOKEEPER_SESSION": "host", "HA_SNAPSHOTS": str(folder / "snapshots"), "HA_CONTENDER": name}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "ha.cli", *arguments], env={**os.environ, **settings}, stdout=log, stderr=log
        )


@click.command()
@click.option("--jobs", default=60, show_default=True, help="How many; each has two sidecars.")
@click.option("--seconds", default=240.0, show_default=True, help="For how long the stores count.")
def main(jobs: int, seconds: float) -> None:
    """Count the requests of real sidecars at rest, and compare them with the model."""
    with TemporaryDirectory(prefix="sidecars-") as made:
        folder = Path(made)
        started = [start("agent", ["agent"], folder)]
        try:
            for number in range(2 * jobs):
                if number % AT_ONCE == 0:
                    time.sleep(START_EVERY_S)
                command = ["run", f"many-{number % jobs}", "--", "sleep", "86400"]
                started.append(start(f"{'ab'[number // jobs]}{number % jobs}", command, folder))
            await_all(jobs)
            time.sleep(SETTLES_S)
            report(jobs, seconds)
            click.echo(f"still running: {sum(each.poll() is None for each in started) - 1} of {2 * jobs} sidecars")
        finally:
            for each in started[::-1]:
                each.send_signal(signal.SIGTERM)
            for each in started:
                each.wait(60)


def report(jobs: int, seconds: float) -> None:
    """Count, and print what was counted beside what the model says."""
    parts, packets, served, began = roles(), received(), calls(), time.monotonic()
    time.sleep(seconds)
    took = (time.monotonic() - began) / 60
    rates = {session: (number - packets[session]) / took for session, number in received().items()}
    of_namenode = (calls() - served).total() / took
    after = roles()
    of = {
        role: [rates[session] for session, its in parts.items() if its == role and after.get(session) == role]
        for role in ("holder", "leader", "standby")
    }
    costs = load().shared
    heartbeats = median(of["leader"])
    asked = sum(rates[session] for session in parts) - heartbeats * 2 * jobs
    expected = rate(ZOOKEEPER, costs.holder) + jobs * sum(
        rate(ZOOKEEPER, each) for part in (costs.leader, costs.standby) for each in part
    )
    of_model = jobs * sum(rate(NAMENODE, each) for part in (costs.leader, costs.standby) for each in part)
    click.echo(f"{len(of['holder'])} holder, {len(of['leader'])} leaders, {len(of['standby'])} standbys")
    click.echo(f"heartbeats of a session, a minute: {heartbeats:.1f}")
    rows = (
        ("ZooKeeper, the holder", sum(of["holder"]), rate(ZOOKEEPER, costs.holder)),
        ("ZooKeeper, all without heartbeats", asked, expected),
        ("ZooKeeper, all with heartbeats", asked + heartbeats * 2 * jobs, expected + heartbeats * 2 * jobs),
        ("NameNode", of_namenode, of_model),
    )
    for what, counted, modelled in rows:
        click.echo(
            f"{what}, requests a minute: {counted:.1f} counted, {modelled:.1f} modelled ({counted / modelled:.2f})"
        )


if __name__ == "__main__":
    main()

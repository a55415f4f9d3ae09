"""Outages of one store while all contestants ask: the fault, the change of leader, and verdicts on the answers."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from benchmarks.availability.asking import LAST, READY, Asked
from benchmarks.availability.contestants import JOB
from benchmarks.context import Context
from benchmarks.programs import READY_S
from ha.sandbox import Sandbox
from ha.sandbox.polling import until
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout.lease import Mode
from store.clock import now
from store.errors import StoreError

# --- the judge of the answers that one contestant got in one outage; no I/O


SOON = 0.1
LATE = 2.0  # Seconds within which a lookup should be answered; the second is a client's default time-out


@dataclass(frozen=True, slots=True)
class Trouble:
    """One outage, as it happened; all times are in boot-clock seconds."""

    name: str  # the fault and the store
    began: float  # its start
    ended: float  # when the store served again
    watched: float  # the last time at which lookups count; readers need a while to find a store again
    moved: float = math.inf  # when another leader had taken over; infinite if none had
    epoch: int = 0  # that leader's epoch


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one contestant in one outage."""

    asked: int  # number of lookups that were due between ``began`` and ``watched``
    soon: float  # share of them that were answered within ``SOON``
    late: float  # share of them that were answered within ``LATE``
    longest: float  # seconds for the slowest answer; infinite if one never came
    misled: float  # seconds from the change of leader to the due time of the last lookup that named the old one


def counted(trouble: Trouble, asked: Sequence[Asked]) -> list[Asked]:
    return [each for each in asked if trouble.began <= each[0] < trouble.watched]


def judge(trouble: Trouble, asked: Sequence[Asked]) -> Verdict:
    during = counted(trouble, asked)
    if not during:
        raise ValueError(f"No lookup was made during this outage: {trouble.name}.")
    seconds = [math.inf if each is None else each for _, each, _ in during]
    old = [due - trouble.moved for due, _, epoch in during if due >= trouble.moved and 0 < epoch < trouble.epoch]
    return Verdict(
        asked=len(during),
        soon=sum(each <= SOON for each in seconds) / len(during),
        late=sum(each <= LATE for each in seconds) / len(during),
        longest=max(seconds),
        misled=max(old, default=0.0),
    )


# --- the outages

EVERY = 0.1  # Seconds between two lookups
BEFORE = 2.0  # Seconds for which all contestants ask before the outage
AFTER = 5.0  # Seconds for which their lookups still count after the store serves again
HAND_OVER = 30.0  # Seconds within which another leader must take over; later the benchmark fails


@dataclass(frozen=True, slots=True)
class Outage:
    """One fault of one server."""

    name: str  # for people
    server: str  # its name in the sandbox
    frozen: bool  # whether it is stopped (SIGSTOP), keeping its connections and answering nothing; else it is killed
    seconds: float  # until it is repaired; a killed server then takes some seconds more to start
    moves: bool  # whether the leader resigns halfway, so that old and new answers can be told apart
    contestants: tuple[str, ...]  # names of the readers that ask


@dataclass(frozen=True, slots=True)
class Environment:
    """Environment of an outage: servers, leaders and the settings of readers."""

    sandbox: Sandbox  # the servers
    operations: JobAdmin  # an operator's access to the job
    settings: Mapping[str, str]  # environment variables of the readers
    context: Context  # reports progress and names the folder for logs


def suffer(environment: Environment, outage: Outage) -> tuple[Trouble, dict[str, list[Asked]]]:
    """Break a store while all contestants ask, repair it, and return the outage with the outcomes of every lookup."""
    await_calm(environment.operations)
    with ExitStack() as stack:
        origin = now()
        askers = {name: stack.enter_context(_asker(environment, name, origin)) for name in outage.contestants}
        for name, asker in askers.items():
            _await_ready(name, asker)
        time.sleep(BEFORE)
        trouble = _break(environment, outage)
        return trouble, {name: _answers(name, asker) for name, asker in askers.items()}


def await_calm(operations: JobAdmin) -> None:
    """Wait until there is a leader and ZooKeeper attests its lease: only then can it outlast one of HDFS."""

    def obstacle() -> str | None:
        try:
            _, lease = operations.lease(JOB)
        except (NoLeader, StoreError) as error:
            return f"{error}"
        return None if lease.mode is Mode.ZOOKEEPER else f"the lease's mode is {lease.mode.value}"

    until(obstacle, READY_S, f"ZooKeeper does not attest the lease of job {JOB!r}")


def _break(environment: Environment, outage: Outage) -> Trouble:
    sandbox, say = environment.sandbox, environment.context.say
    say(f"{outage.name}, for {outage.seconds:g} s")
    began = now()
    (sandbox.pause if outage.frozen else sandbox.kill)(outage.server)
    moved, epoch = math.inf, 0
    if outage.moves:
        time.sleep(outage.seconds / 2)
        moved, epoch = _move(environment.operations)
    time.sleep(max(0.0, began + outage.seconds - now()))
    say(f"{outage.name}: mending it")
    (sandbox.resume if outage.frozen else sandbox.start)(outage.server)
    sandbox.wait_ready(outage.server)
    ended = now()
    time.sleep(AFTER)
    return Trouble(outage.name, began, ended, ended + AFTER, moved, epoch)


def _move(operations: JobAdmin) -> tuple[float, int]:
    """Make the leader resign; return the time at which another leader was seen, and its epoch."""
    before = operations.ask_to_hand_over(JOB)
    assert before is not None, "no contender is named"
    after = operations.handed_over(JOB, before, HAND_OVER)
    if after is None:
        raise RuntimeError(f"Nobody has taken over from epoch {before.epoch} in {HAND_OVER:g} s.")
    return now(), after[0].epoch


@contextmanager
def _asker(environment: Environment, name: str, origin: float) -> Iterator[subprocess.Popen[str]]:
    log = Path(environment.context.folder, f"{name.replace(' ', '-').replace(',', '')}.log")
    with log.open("a") as errors:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.availability.asking", name),
                *("--origin", f"{origin}", "--every", f"{EVERY}"),
            ],
            env={**os.environ, **environment.settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LAST)


def _await_ready(name: str, asker: subprocess.Popen[str]) -> None:
    assert asker.stdout is not None, "it was made with a pipe"
    overdue = Timer(2 * READY_S, asker.kill)  # its line then ends
    overdue.start()
    said = asker.stdout.readline().strip()
    overdue.cancel()
    if said != READY:
        raise RuntimeError(f"{name} did not get its first answer; its log says why.")


def _answers(name: str, asker: subprocess.Popen[str]) -> list[Asked]:
    output, _ = asker.communicate(timeout=4 * LAST)  # ends its input, and so its lookups
    if asker.returncode != 0:
        raise RuntimeError(f"{name} failed with exit code {asker.returncode}; its log says why.")
    found: Sequence[tuple[float, float | None, int]] = json.loads(output)
    return [(due, seconds, epoch) for due, seconds, epoch in found]

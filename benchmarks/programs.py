"""Programs that run beside a benchmark: leaders and agents, started as users start them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import time_ns
from typing import Any

from ha.client import Client
from ha.config.sources import load
from ha.drill.sandbox_environment import Process
from ha.errors import LeaderError
from ha.sandbox.polling import SandboxError, until
from leader.lookup.answers import Source

READY_S = 60.0  # Seconds to wait for a start; Java is slow on a busy machine
HA_S = 900.0
MEASURED_WITHIN_S = 7200.0  # A measurement that takes longer hangs
END_S = 20.0  # Seconds for a program to end after SIGTERM: it releases its leases


@contextmanager
def ha_program(arguments: Sequence[str], settings: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``ha`` with these arguments, and end it with SIGTERM."""
    with program(["-m", "ha.cli", *arguments], settings, log) as process:
        yield process


def ha(
    arguments: Sequence[str], variables: Mapping[str, str] | None = None, *, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``ha`` with these arguments and all these variables until it ends, at most for some minutes."""
    command = [sys.executable, "-m", "ha.cli", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=HA_S, check=check)


@contextmanager
def program(
    arguments: Sequence[str], settings: Mapping[str, str], log: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run this Python with these arguments, and end it politely."""
    environment = {f"HA_{name.upper()}": value for name, value in settings.items()}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments], env={**os.environ, **environment, **variables}, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)


def measured(module: str, told: Mapping[str, Any], folder: Path, environment: Mapping[str, str]) -> Any:
    """Run a module that ends with :func:`answer` as a program of its own; return its answer."""
    with (folder / f"{module}-{time_ns():x}.log").open("wb") as errors:
        command = [sys.executable, "-m", module, json.dumps(told)]
        ran = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, check=True, timeout=MEASURED_WITHIN_S
        )
    return json.loads(ran.stdout.splitlines()[-1])


def answer(measure: Callable[..., Any]) -> None:
    """Call the function with what this program was told, and print what it returns as one line of JSON."""
    sys.stdout.write(f"{json.dumps(measure(**json.loads(sys.argv[1])))}\n")
    sys.stdout.flush()


@contextmanager
def meanwhile(work: Callable[[], object], pause: float) -> Iterator[None]:
    """Call the function again and again on another thread, with so many seconds between; raise what it raised."""
    over = Event()

    def repeat() -> None:
        while not over.wait(pause):
            work()

    with ThreadPoolExecutor(1, "meanwhile") as pool:
        repeated = pool.submit(repeat)
        try:
            yield
        finally:
            over.set()
            repeated.result()


def wait(true: Callable[[], object], what: str, seconds: float, process: Process | None = None) -> None:
    def obstacle() -> str | None:
        if process is not None and not process.running and not true():
            raise SandboxError(f"{process.name} has ended without {what}: {process.log()[-2000:]}")
        return None if true() else f"it is not so{f': {process.log()[-2000:]}' if process else ''}"

    until(obstacle, seconds, f"There was no sign of {what}")


def client(settings: Mapping[str, str], **others: str) -> Client:
    """Return a client with these settings, of which the later ones count."""
    return Client(load({**settings, **others}))


def await_answer(asked: Client, job: str, source: Source) -> None:
    """Ask until the answer comes from this source."""

    def obstacle() -> str | None:
        try:
            answer = asked.leader(job)
        except LeaderError as error:
            return f"{error}"
        if answer.source is source:
            return None
        return f"the last answer was epoch {answer.epoch}, from {answer.source.value}"

    until(obstacle, READY_S, f"{source.value} does not say who leads job {job!r}")

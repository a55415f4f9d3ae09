"""Programs that run beside a benchmark: leaders and agents, started as users start them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ha.client import Client
from ha.config.sources import load
from ha.errors import LeaderError
from ha.sandbox.polling import until
from leader.lookup.answers import Answer, Source

READY_S = 60.0
"""Seconds to wait for a start; Java is slow on a busy machine."""

END_S = 20.0
"""Seconds for a program to end after SIGTERM: it releases its leases."""


@contextmanager
def ha_program(arguments: Sequence[str], settings: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``ha`` with these arguments, and end it with SIGTERM.

    Args:
        arguments: such as ``daemon orders``.
        settings: by name, as for :func:`ha.connect`.
        log: takes its output.
    """
    with program(["-m", "ha.cli", *arguments], settings, log) as process:
        yield process


@contextmanager
def program(
    arguments: Sequence[str], settings: Mapping[str, str], log: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run this Python with these arguments, and end it politely.

    Args:
        arguments: such as ``-m`` and a module.
        settings: by name, as for :func:`ha.connect`.
        log: takes what it says.
        variables: others of its environment.
    """
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
            process.wait()


def client(settings: Mapping[str, str], **others: str) -> Client:
    """Return a client with these settings, of which the later ones count."""
    return Client(load({**settings, **others}))


def await_answer(asked: Client, job: str, source: Source, wanted: Callable[[Answer], bool] = bool) -> Answer:
    """Ask until the answer comes from this source, and is the wanted one; return it.

    Raises:
        SandboxError: not within a minute.
    """
    found: list[Answer] = []

    def obstacle() -> str | None:
        try:
            answer = asked.leader(job)
        except LeaderError as error:
            return f"{error}"
        if answer.source is not source or not wanted(answer):
            return f"the last answer was epoch {answer.epoch}, from {answer.source.value}"
        found.append(answer)
        return None

    until(obstacle, READY_S, f"{source.value} does not say who leads job {job!r}")
    return found[-1]

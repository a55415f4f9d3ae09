"""One contestant in a process of its own: asks at fixed times, whatever became of earlier questions.

    python -m benchmarks.availability.asking NAME --origin S --every S

Writes one line when it has had its first answer. From then on it asks at ``origin`` (boot-clock seconds) plus every
multiple of ``every``, each time on a thread of its own, until its standard input ends. Then it writes what came of each
question as one JSON array: when it was to be asked, after how many seconds it was answered (null if it was not, or not
yet), and with which epoch.

An open loop: who waits for an answer before the next question would ask seldom just when answers are slow, and such a
share of lookups says nothing. (Gil Tene's "coordinated omission".)
"""

import json
import logging
import math
import os
import sys
import threading

import click

from benchmarks.availability.contestants import CONTESTANTS, Ask
from store.clock import now

READY = "ready"

FIRST = 30.0
"""Seconds within which the first answer must come, while nothing is broken: a cache has to be filled."""

AGAIN = 0.1
"""Seconds between two tries to get it."""

LAST = 5.0
"""Seconds that the last questions have to be answered; more is as good as never for whoever asked."""

Asked = tuple[float, float | None, int]
"""When, after how many seconds, and what; the epoch is 0 if there was no answer."""


class Asking:
    """All questions, and what has come of them."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._answers: dict[float, tuple[float, int]] = {}
        self._due: list[float] = []

    def at(self, due: float) -> None:
        """Ask now what is due at this time; returns at once."""
        self._due.append(due)
        threading.Thread(target=self._once, args=(due,), name="lookup", daemon=True).start()

    def answered(self) -> bool:
        """Whether every question has ended."""
        return len(self._answers) == len(self._due)

    def found(self) -> list[Asked]:
        """What has come of each until now."""
        answers = dict(self._answers)
        ended = [(due, *answers.get(due, (math.inf, 0))) for due in self._due]
        return [(due, seconds if epoch else None, epoch) for due, seconds, epoch in ended]

    def _once(self, due: float) -> None:
        try:
            epoch = self._ask()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is no answer
            logging.getLogger("benchmarks").info("after %.3f s: %r", now() - due, error)
            epoch = 0
        self._answers[due] = (now() - due, epoch)


def ask_until(over: threading.Event, asking: Asking, origin: float, every: float) -> None:
    """Ask at all multiples from now on until it is over, and wait a little for the last answers."""
    number = math.ceil((now() - origin) / every)
    while not over.wait(max(0.0, origin + number * every - now())):
        asking.at(origin + number * every)
        number += 1
    end = now() + LAST
    while not asking.answered() and now() < end:
        threading.Event().wait(0.05)


def await_first(ask: Ask) -> None:
    """Ask until there is an answer.

    Raises:
        TimeoutError: there is none in time.
    """
    end = now() + FIRST
    while True:
        try:
            ask()
        except Exception as error:
            if now() >= end:
                raise TimeoutError(f"There was no answer within {FIRST:g} s.") from error
            threading.Event().wait(AGAIN)
        else:
            return


def _await_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


@click.command()
@click.argument("name", type=click.Choice(list(CONTESTANTS)))
@click.option("--origin", type=float, required=True)
@click.option("--every", type=float, required=True)
def main(name: str, origin: float, every: float) -> None:
    """Ask until the standard input ends."""
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    over = threading.Event()
    with CONTESTANTS[name]() as ask:
        await_first(ask)
        click.echo(READY)
        threading.Thread(target=_await_end, args=(over,), name="stdin", daemon=True).start()
        asking = Asking(ask)
        ask_until(over, asking, origin, every)
        click.echo(json.dumps(asking.found()))
        sys.stdout.flush()
        if not asking.answered():
            os._exit(0)  # threads that wait for ZooKeeper would also hold up the end of the client, and of the process


if __name__ == "__main__":
    main()

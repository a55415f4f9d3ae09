"""Process of one contestant: asks at fixed times, whether or not earlier lookups have ended.

    python -m benchmarks.availability.asking NAME --origin S --every S

It writes one line after its first answer. From then on it asks at ``origin`` (boot-clock seconds) plus every multiple
of ``every``, each time on a new thread, until its standard input ends. Then it writes the outcome of each lookup as one
JSON array: when it was due, the seconds until its answer (null if there was none yet), and the epoch in the answer.

The loop is open. A reader that waited for each answer would ask least often just when answers are slow, and its share
of answered lookups would mean nothing. (Gil Tene's "coordinated omission".)
"""

import json
import logging
import math
import os
import sys
import threading

import click

from benchmarks.availability.contestants import CONTESTANTS, Ask
from ha.sandbox.polling import until
from store.clock import now

READY = "ready"

FIRST = 30.0  # Seconds within which the first answer must come, before anything is broken: a cache fills first
LAST = 5.0  # Seconds until the last lookups must be answered; a later answer is useless to a program

Asked = tuple[float, float | None, int]
"""When a lookup was due, the seconds until its answer, and the epoch; the epoch is 0 if there was no answer."""


class Asking:
    """All lookups, and their outcomes."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._answers: dict[float, tuple[float, int]] = {}
        self._due: list[float] = []

    def at(self, due: float) -> None:
        """Start the lookup that is due at this time; return at once."""
        self._due.append(due)
        threading.Thread(target=self._once, args=(due,), name="lookup", daemon=True).start()

    def answered(self) -> bool:
        return len(self._answers) == len(self._due)

    def found(self) -> list[Asked]:
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
    """Ask at every multiple from now on until the end, and wait a little for the last answers."""
    number = math.ceil((now() - origin) / every)
    while not over.wait(max(0.0, origin + number * every - now())):
        asking.at(origin + number * every)
        number += 1
    end = now() + LAST
    while not asking.answered() and now() < end:
        threading.Event().wait(0.05)


def await_first(ask: Ask) -> None:
    def obstacle() -> str | None:
        try:
            ask()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is no answer
            return repr(error)
        return None

    until(obstacle, FIRST, "There was no answer")


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
            os._exit(0)  # threads that wait for ZooKeeper would delay the end of the client and of the process


if __name__ == "__main__":
    main()

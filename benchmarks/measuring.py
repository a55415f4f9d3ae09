"""Durations of calls that are to be compared: measured within one run, in turns.

Whatever disturbs the machine for a while disturbs all of them, and the ratios within a round stay true.
"""

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, perf_counter_ns
from typing import Any

from benchmarks.figures import Summary, summary

TURNS = 10
"""Turns that each call gets in a round, A B C A B C ...: the shorter a turn, the more alike are their circumstances;
but the first call after another's turn finds the processor's caches cold."""

Call = Callable[[], Any]

NS = 1e-9
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A call that is measured.

    Attributes:
        name: in tables.
        call: what is timed.
        times: calls in a round.
    """

    name: str
    call: Call
    times: int


def compare(
    contestants: Sequence[Contestant], rounds: int, say: Callable[[str], None]
) -> dict[str, tuple[list[Summary], list[float]]]:
    """Time all calls in turns, on this thread.

    First each is made for a tenth of a round and not counted: by then connections are made and caches are warm.
    Garbage is collected before each round, and not within one: else a call would pay for what another has left.

    Args:
        contestants: of different names.
        rounds: how often everything is done.
        say: is told of each round.

    Returns:
        For each name what each round says, and every duration of the last round in seconds.
    """
    for each in contestants:
        _timed(each.call, max(1, each.times // 10))
    rounded: dict[str, tuple[list[Summary], list[float]]] = {each.name: ([], []) for each in contestants}
    for number in range(rounds):
        say(f"Round {number + 1} of {rounds}")
        found = one_round(contestants, first=number)
        for name, durations in found.items():
            rounded[name] = ([*rounded[name][0], summary(durations)], durations)
    return rounded


def one_round(contestants: Sequence[Contestant], first: int = 0) -> dict[str, list[float]]:
    """Make every contestant's calls once, in turns; the one with number ``first``, modulo, begins.

    Returns:
        Durations in seconds, by name.
    """
    first %= len(contestants)
    order = [*contestants[first:], *contestants[:first]]
    found: dict[str, list[float]] = {each.name: [] for each in contestants}
    with no_collector():
        for turn in range(TURNS):
            for each in order:
                # So that the turns add up to exactly ``times``.
                times = each.times * (turn + 1) // TURNS - each.times * turn // TURNS
                found[each.name] += _timed(each.call, times)
    return found


def throughput(call: Call, threads: int, seconds: float) -> float:
    """Return how many such calls several threads make in a second, all together.

    Args:
        call: made again and again by each thread.
        threads: how many.
        seconds: for which they are watched.

    Raises:
        RuntimeError: a call failed.
    """
    counts = [0] * threads
    failures: list[BaseException] = []
    over = threading.Event()
    together = threading.Barrier(threads + 1)

    def work(number: int) -> None:
        together.wait()
        try:
            while not over.is_set():
                call()
                counts[number] += 1
        except Exception as error:  # noqa: BLE001  # said below, on the thread that asked
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,), name=f"bench-{number}") for number in range(threads)]
    with no_collector():
        for worker in workers:
            worker.start()
        together.wait()
        began = perf_counter()
        over.wait(seconds)
        made, took = sum(counts), perf_counter() - began
        over.set()
        for worker in workers:
            worker.join()
    if failures:
        raise RuntimeError(f"A call of {threads} threads failed: {failures[0]!r}") from failures[0]
    return made / took


def _timed(call: Call, times: int) -> list[float]:
    durations = []
    for _ in range(times):
        began = perf_counter_ns()
        call()
        durations.append((perf_counter_ns() - began) * NS)
    return durations


@contextmanager
def no_collector() -> Iterator[None]:
    """Collect garbage now, and not again inside."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

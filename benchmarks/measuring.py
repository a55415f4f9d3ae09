"""Timing of calls for comparison: within one run, in turns."""

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, perf_counter_ns
from typing import Any, TypeVar

from benchmarks.figures import Summary, summary

TOGETHER_WITHIN_S = 120.0  # For threads to begin, and to end: later they hang
TURNS = 10
"""Turns of each call in a round, A B C A B C ... Shorter turns make the conditions more alike, but the first call after
another's turn finds the processor's caches cold."""

Call = Callable[[], Any]
Kind = TypeVar("Kind")

NS = 1e-9  # Seconds


@dataclass(frozen=True, slots=True)
class Contestant:
    """A call to measure."""

    name: str  # in tables
    call: Call  # the timed call
    times: int  # number of calls in a round


def rotated(kinds: Sequence[Kind], first: int) -> list[Kind]:
    """Return all of them in their order, beginning with the one with the number ``first`` (modulo)."""
    first %= len(kinds)
    return [*kinds[first:], *kinds[:first]]


def turns(kinds: Sequence[Kind], rounds: int, say: Callable[[str], None]) -> Iterator[tuple[int, Kind]]:
    """Yield the number of each round with each kind in turn; each round begins with another kind."""
    for number in range(rounds):
        for kind in rotated(kinds, number):
            say(f"Round {number + 1} of {rounds}: {kind}")
            yield number, kind


def compare(
    contestants: Sequence[Contestant], rounds: int, say: Callable[[str], None]
) -> dict[str, tuple[list[Summary], list[float]]]:
    """Time all calls in turns, on this thread."""
    for each in contestants:
        timed(each.call, max(1, each.times // 10))
    rounded: dict[str, tuple[list[Summary], list[float]]] = {each.name: ([], []) for each in contestants}
    for number in range(rounds):
        say(f"Round {number + 1} of {rounds}")
        found = one_round(contestants, first=number)
        for name, durations in found.items():
            rounded[name] = ([*rounded[name][0], summary(durations)], durations)
    return rounded


def one_round(contestants: Sequence[Contestant], first: int = 0) -> dict[str, list[float]]:
    """Make every contestant's calls once, in turns; the one with the number ``first`` (modulo) begins."""
    found: dict[str, list[float]] = {each.name: [] for each in contestants}
    with no_collector():
        for turn in range(TURNS):
            for each in rotated(contestants, first):
                # This makes the turns add up to exactly ``times``.
                times = each.times * (turn + 1) // TURNS - each.times * turn // TURNS
                found[each.name] += timed(each.call, times)
    return found


def throughput(call: Call, threads: int, seconds: float) -> float:
    """Return how many calls several threads make in a second, in total."""
    counts = [0] * threads
    failures: list[BaseException] = []
    over = threading.Event()
    together = threading.Barrier(threads + 1, timeout=TOGETHER_WITHIN_S)

    def work(number: int) -> None:
        together.wait()
        try:
            while not over.is_set():
                call()
                counts[number] += 1
        except Exception as error:  # noqa: BLE001  # said below, on the thread that asked
            failures.append(error)

    workers = [
        threading.Thread(target=work, args=(number,), name=f"bench-{number}", daemon=True) for number in range(threads)
    ]
    with no_collector():
        for worker in workers:
            worker.start()
        together.wait()
        began = perf_counter()
        over.wait(seconds)
        made, took = sum(counts), perf_counter() - began
        over.set()
        for worker in workers:
            worker.join(TOGETHER_WITHIN_S)
    if any(worker.is_alive() for worker in workers):
        raise RuntimeError(f"A call of {threads} threads does not end.")
    if failures:
        raise RuntimeError(f"A call of {threads} threads failed: {failures[0]!r}") from failures[0]
    return made / took


def timed(call: Call, times: int) -> list[float]:
    """Return the seconds of each of so many calls in a row."""
    durations = []
    for _ in range(times):
        began = perf_counter_ns()
        call()
        durations.append((perf_counter_ns() - began) * NS)
    return durations


@contextmanager
def no_collector() -> Iterator[None]:
    """Collect garbage now, and disable the collector inside."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

"""Processes that compute in the background, for tests and soaks; nothing waits for them without end."""

import os
import resource
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

from tests.background import in_background

A = TypeVar("A")
B = TypeVar("B")

LIMIT_S = 1800.0
"""For a result. Processes in the background get what others leave: this says that they hang, not that they are slow."""

AHEAD = 4 * (os.cpu_count() or 1)
"""Calls under way: the processes always have one to go on with, and a hundred thousand do not wait in memory."""


@contextmanager
def pool_in_background(
    processes: int | None = None, processor_s: int = resource.RLIM_INFINITY
) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool, whose processes each may compute so many seconds; they are killed in the end, whatever they do.

    They are spawned: a fork of a process with threads may wait for ever for a lock that one of them had. And
    ``shutdown`` waits for its processes without a limit, so it finds none that live.
    """
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=spawn, initializer=in_background, initargs=(processor_s,))
    try:
        yield pool
    finally:
        for each in list((pool._processes or {}).values()):
            each.kill()
        pool.shutdown(cancel_futures=True)


def results(
    pool: ProcessPoolExecutor, work: Callable[[A], B], all_of: Iterable[A], *, chunk: int = 1, limit_s: float = LIMIT_S
) -> Iterator[B]:
    """Yield the results in order; raises TimeoutError if one is not there ``limit_s`` after the one before it.

    Args:
        pool: see above.
        work: what a process does, by its name in a module; a package.__main__ is not imported there.
        all_of: what it is called with.
        chunk: how many calls a process gets at a time.
        limit_s: for a chunk.
    """
    left = iter(all_of)
    chunks = iter(lambda: list(islice(left, chunk)), [])
    under_way = deque(pool.submit(_called, work, each) for each in islice(chunks, AHEAD))
    while under_way:
        yield from under_way.popleft().result(limit_s)
        under_way.extend(pool.submit(_called, work, each) for each in islice(chunks, 1))


def _called(work: Callable[[A], B], chunk: list[A]) -> list[B]:
    return [work(each) for each in chunk]

"""A pool whose child waits for a lock that nobody gives back, as after a fork beside threads."""

import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

LOCK = threading.Lock()


@pytest.fixture(scope="module")
def found() -> list[int]:
    LOCK.acquire()
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return list(pool.map(waits, [1]))


def waits(number: int) -> int:
    with LOCK:
        return number


def test_hangs_in_a_pool(found: list[int]) -> None: ...

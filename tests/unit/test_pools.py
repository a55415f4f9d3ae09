import threading
import time
from concurrent.futures.process import BrokenProcessPool
from itertools import count, islice

import pytest

from tests.pools import AHEAD, pool_in_background, results

pytestmark = pytest.mark.programs


@pytest.mark.parametrize("chunk", [1, 3])
def test_results_come_in_order_and_not_all_are_asked_for_at_once(chunk: int) -> None:
    asked = count()
    with pool_in_background(2) as pool:
        assert list(islice(results(pool, abs, (-number for number in asked), chunk=chunk), 10)) == list(range(10))
    assert next(asked) <= (AHEAD + 10) * chunk


def test_a_process_that_hangs_is_noticed_and_not_waited_for() -> None:
    before = set(threading.enumerate())
    with pool_in_background(1) as pool, pytest.raises(TimeoutError):
        list(results(pool, time.sleep, [0, 86400, 86400], limit_s=5))
    assert set(threading.enumerate()) <= before


def test_a_process_that_computes_too_long_is_ended() -> None:
    with pool_in_background(1, processor_s=2) as pool, pytest.raises(BrokenProcessPool):
        next(results(pool, sum, [count()]))  # without end

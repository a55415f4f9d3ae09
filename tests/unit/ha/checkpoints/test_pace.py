"""Pace: calls begin evenly, and nothing is saved up while nobody calls."""

import threading

from ha.checkpoints.pace import Pace


class Time:
    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.at += seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        raise NotImplementedError


def test_calls_begin_evenly() -> None:
    time = Time()
    pace = Pace(4, time)
    begun = []
    for _ in range(3):
        pace.wait()
        begun.append(time.now())
    assert begun == [100.0, 100.25, 100.5]
    time.at = 200.0
    pace.wait()
    assert time.now() == 200.0
    pace.wait()
    assert time.now() == 200.25

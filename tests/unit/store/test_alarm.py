"""An alarm rings at its time, and its thread leaves once nothing is left to ring for."""

import threading

from store.alarm import Alarm
from store.clock import now
from tests.patience import PATIENCE_S


def test_after_its_close_it_rings_for_what_has_not_ended_and_its_thread_leaves() -> None:
    rung, threads, ended = [], [], threading.Event()

    def ring(item: str) -> None:
        rung.append(item)
        threads.append(threading.current_thread())
        ended.set()

    alarm = Alarm(ring, lambda item: item == "answered")
    assert alarm.add(now() + 3600.0, "answered")
    assert alarm.add(now() + 0.05, "overdue")
    alarm.close()
    assert ended.wait(PATIENCE_S)
    threads[0].join(PATIENCE_S)
    assert (rung, threads[0].is_alive()) == (["overdue"], False)


def test_after_its_close_it_can_be_asked_again() -> None:
    rung = threading.Event()
    alarm: Alarm[int] = Alarm(lambda _: rung.set(), lambda _: False)
    alarm.close()
    assert alarm.add(now(), 1)
    assert rung.wait(PATIENCE_S)

"""The dispatcher: the one thread that calls back."""

import pytest

from store.clock import now
from store.zookeeper.dispatcher import Dispatcher
from tests.patience import PATIENCE_S
from tests.unit.store.zookeeper.helpers import Heard


def test_it_keeps_order_and_goes_on_after_a_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("store.zookeeper.dispatcher.now", lambda: clock[0])
    dispatcher, heard = Dispatcher("test"), Heard()

    def posted() -> None:
        heard("posted")
        clock[0] = 1.0

    dispatcher.at(1.0, lambda: heard("late"))
    dispatcher.at(0.0, lambda: heard("due"))
    dispatcher.post(lambda: heard(1 // 0))
    dispatcher.post(posted)
    dispatcher.start()
    assert heard.wait(3) == ["due", "posted", "late"]
    dispatcher.stop(PATIENCE_S)
    assert "ZeroDivisionError" in caplog.text


def test_cancelled_timers_do_not_pile_up() -> None:
    dispatcher, heard = Dispatcher("test"), Heard()
    dispatcher.start()
    for _ in range(10_000):
        dispatcher.at(now() + 3600, lambda: heard("never")).cancel()
    kept = [dispatcher.at(now() + 3600, lambda: heard("never")) for _ in range(300)]
    for timer in kept:
        dispatcher.post(timer.cancel)
    for _ in range(1000):
        dispatcher.at(now() + 3600, lambda: heard("never"))
    dispatcher.post(lambda: heard(len(dispatcher._timers)))
    assert 1000 <= heard.wait(1)[0] < 1300
    dispatcher.stop(PATIENCE_S)

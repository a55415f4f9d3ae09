"""Outages in the log: one line when one begins, one a minute, and one when it ends, with its length."""

import logging

import pytest

from ha.listening.outage import QUIET_S, Outage
from tests.unit.ha.drain.test_drain import Clock


def test_an_outage_of_three_minutes_has_four_lines(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    outage = Outage(logging.getLogger("ha"), lambda: "The store", clock)
    outage.works()
    for _ in range(180):
        outage.fails("Connection refused.")
        clock.sleep(1.0)
    outage.works()
    clock.sleep(QUIET_S)
    assert outage.works()
    assert not outage.works()
    assert [record.getMessage() for record in caplog.records] == [
        "The store does not work: Connection refused.",
        "The store has not worked for 60 s: Connection refused.",
        "The store has not worked for 120 s: Connection refused.",
        "The store works again, after 180 s.",
    ]


def test_what_flips_at_each_try_is_one_outage(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    outage = Outage(logging.getLogger("ha"), lambda: "Writing", clock)
    for _ in range(50):
        outage.works()
        outage.fails("No space left on device")
        clock.sleep(1.0)
    assert outage.lasts
    assert len(caplog.records) == 1

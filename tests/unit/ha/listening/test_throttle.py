"""Log lines that repeat, and outages: a line when one begins, one a minute, and one when it ends, with its length."""

import logging

import pytest

from ha.listening import throttle
from ha.listening.throttle import EVERY_S, QUIET_S, Outage, Throttle
from tests.unit.ha.drain.test_drain import Clock


def written(filtered: Throttle, text: str, *values: object) -> str:
    """Return what is written of a line; empty for nothing."""
    record = logging.LogRecord("x", logging.WARNING, "", 0, text, values, None)
    return record.getMessage() if filtered.filter(record) else ""


def test_a_line_is_written_once_in_a_while_and_says_how_often_it_was_left_out() -> None:
    at = Clock()
    filtered = Throttle(at)
    assert written(filtered, "%s came", "a") == "a came"
    assert [written(filtered, "%s came", each) for each in "bcd"] == ["", "", ""]
    assert written(filtered, "another") == "another"
    at.sleep(EVERY_S - 0.1)
    assert written(filtered, "%s came", "e") == ""
    at.sleep(0.1)
    assert written(filtered, "%s came", "f") == "f came (4 more like this were left out.)"
    at.sleep(EVERY_S)
    assert written(filtered, "%s came", "g") == "g came"


def test_only_the_first_line_of_a_text_counts() -> None:
    """As of asyncio's, whose further lines differ."""
    filtered = Throttle(Clock())
    assert written(filtered, "out of system resource\nsocket: 1")
    assert not written(filtered, "out of system resource\nsocket: 2")


def test_not_every_kind_is_remembered() -> None:
    filtered = Throttle(Clock())
    for number in range(throttle.MOST_KINDS * 3):
        assert written(filtered, f"kind {number}")
    assert len(filtered._next) <= throttle.MOST_KINDS


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

"""Log lines that repeat."""

import logging

from ha.listening import throttle
from ha.listening.throttle import EVERY_S, Throttle


class At:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


def written(filtered: Throttle, text: str, *values: object) -> str:
    """Return what is written of a line; empty for nothing."""
    record = logging.LogRecord("x", logging.WARNING, "", 0, text, values, None)
    return record.getMessage() if filtered.filter(record) else ""


def test_a_line_is_written_once_in_a_while_and_says_how_often_it_was_left_out() -> None:
    at = At()
    filtered = Throttle(at)  # type: ignore[arg-type]  # it only reads the time
    assert written(filtered, "%s came", "a") == "a came"
    assert [written(filtered, "%s came", each) for each in "bcd"] == ["", "", ""]
    assert written(filtered, "another") == "another"
    at.time = EVERY_S - 0.1
    assert written(filtered, "%s came", "e") == ""
    at.time = EVERY_S
    assert written(filtered, "%s came", "f") == "f came (4 more like this were left out.)"
    at.time = EVERY_S * 2
    assert written(filtered, "%s came", "g") == "g came"


def test_only_the_first_line_of_a_text_counts() -> None:
    """As of asyncio's, whose further lines differ."""
    filtered = Throttle(At())  # type: ignore[arg-type]
    assert written(filtered, "out of system resource\nsocket: 1")
    assert not written(filtered, "out of system resource\nsocket: 2")


def test_not_every_kind_is_remembered() -> None:
    filtered = Throttle(At())  # type: ignore[arg-type]
    for number in range(throttle.MOST_KINDS * 3):
        assert written(filtered, f"kind {number}")
    assert len(filtered._next) <= throttle.MOST_KINDS

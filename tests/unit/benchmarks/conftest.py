"""Isolation: side effects of the benchmarks' command must not reach other tests, and only some tests draw."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _loud_afterwards() -> Iterator[None]:
    """Undo the command's silencing of leaders' logs, which would last for the rest of the process."""
    logger = logging.getLogger("ha")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw pictures in slow tests alone: each takes a tenth of a second or more."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr("benchmarks.drawing.svg", lambda _, says: says)

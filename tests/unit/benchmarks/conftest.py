"""Isolation: side effects of the benchmarks' command must not reach other tests."""

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

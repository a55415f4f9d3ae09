"""What the benchmarks' command does to its process must not reach other tests."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _loud_afterwards() -> Iterator[None]:
    """The command silences what leaders say of themselves, for good: a process of its own ends with it."""
    logger = logging.getLogger("ha")
    before = logger.level
    yield
    logger.setLevel(before)

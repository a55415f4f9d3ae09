"""Fixtures of the protocol's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leader.faulty import Place, opened


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A root directory for jobs, with faults on demand."""
    yield from opened(tmp_path / "jobs")

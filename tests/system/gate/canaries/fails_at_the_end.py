"""A session that fails after its last test has passed."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def exits_with_one() -> Iterator[None]:
    yield
    os._exit(1)


def test_passes() -> None: ...

"""A fixture that never ends."""

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def stuck() -> Iterator[None]:
    yield
    threading.Event().wait()


def test_hangs_in_teardown(stuck: None) -> None: ...

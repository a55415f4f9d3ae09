"""A fixture that never returns, where pytest's own limit does not reach."""

import threading

import pytest


@pytest.fixture
def stuck() -> None:
    threading.Event().wait()


def test_before() -> None: ...


def test_hangs_in_setup(stuck: None) -> None: ...

"""Tests that fail: one by its call, and one also by what is judged in its teardown."""

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def judged() -> Iterator[None]:
    yield
    raise AssertionError("This history breaks a promise")


def test_fails() -> None:
    raise AssertionError("not within 120 s: it is there")


@pytest.mark.usefixtures("judged")
def test_fails_twice() -> None:
    raise AssertionError("not within 120 s: it is there")


@pytest.mark.usefixtures("judged")
def test_fails_at_its_end() -> None: ...


BURNT_S = 0.2
BURNS = f"import time\nwhile time.process_time() < {BURNT_S}: pass"


@pytest.mark.timeout(0)
def test_has_no_limit() -> None:
    subprocess.run([sys.executable, "-S", "-c", BURNS], check=True, timeout=60)

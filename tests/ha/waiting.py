"""Waiting for something that happens in another thread or process, without leaning on how long it takes."""

import threading
from collections.abc import Callable
from typing import TypeVar

from store.clock import now

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which a test gives up: far more than anything takes, on a machine that does other things as well."""


def wait_until(condition: Callable[[], T], seconds: float = PATIENCE, what: str = "") -> T:
    """Return the condition's first true value."""
    end = now() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert now() < end, f"not within {seconds:g} s: {what or condition}"
        pause.wait(0.01)

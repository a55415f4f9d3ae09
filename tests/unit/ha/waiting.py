"""Waits for events in other threads or processes, however long they take."""

import threading
from collections.abc import Callable
from typing import TypeVar

from store.clock import now

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which a test gives up: far more than anything takes, even on a busy machine."""


def wait_until(condition: Callable[[], T], seconds: float = PATIENCE, what: str = "") -> T:
    """Wait until the condition is true; returns its value."""
    end = now() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert now() < end, f"not within {seconds:g} s: {what or condition}"
        pause.wait(0.01)

"""Waiting: the only way in which these tests wait is to look again until a deadline."""

import threading
from collections.abc import Callable
from typing import TypeVar

from store.clock import now

T = TypeVar("T")

SLACK_S = 3.0
"""Added to every promise that is in seconds: the machine also runs three Java servers, and perhaps other tests."""

PATIENCE_S = 40.0
"""For what must happen at some time; what must happen in time is measured against its promise."""

POLL_S = 0.02


def until(question: Callable[[], T], what: str, seconds: float = PATIENCE_S) -> T:
    """Call until the result is true, and return it; fail after that many seconds."""
    end, nothing = now() + seconds, threading.Event()
    while not (answer := question()):
        assert now() < end, f"not in {seconds:g} s: {what}"
        nothing.wait(POLL_S)
    return answer


def pause(seconds: float) -> None:
    """Let time pass in which something must not happen, or in which something is broken."""
    threading.Event().wait(seconds)

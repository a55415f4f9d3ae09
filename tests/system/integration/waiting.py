"""Waiting: the only way in which these tests wait is to look again until a deadline."""

import threading
from collections.abc import Callable
from typing import TypeVar

from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

T = TypeVar("T")

SLACK_S = 3.0
"""Added to every promise that is in seconds: the machine also runs three Java servers, and perhaps other tests."""


def until(question: Callable[[], T], what: str, seconds: float = PATIENCE_S) -> T:
    """Call until the result is true, and return it; what must happen in time has its promise as limit."""
    return wait_until(question, seconds, what)


def pause(seconds: float) -> None:
    """Let time pass in which something must not happen, or in which something is broken."""
    threading.Event().wait(seconds)

"""Waits for events in other threads or processes, however long they take."""

import threading
from collections.abc import Callable
from typing import TypeVar

from store.clock import now
from store.errors import NotSent, StoreError
from tests.patience import PATIENCE_S

T = TypeVar("T")


def wait_until(condition: Callable[[], T], seconds: float = PATIENCE_S, what: str = "") -> T:
    """Wait until the condition is true; returns its value. After an error of a store it is asked again."""
    end = now() + seconds
    pause = threading.Event()
    last = ""
    while True:
        try:
            if value := condition():
                return value
        except StoreError as raised:
            last = f"; the last error: {raised!r}"
        assert now() < end, f"not within {seconds:g} s: {what or condition}{last}"
        pause.wait(0.01)


def until_sent(call: Callable[[], object]) -> None:
    """Make a call of little patience until it is sent: on a busy machine its time is over before a thread takes it."""
    while True:
        try:
            call()
        except NotSent:
            continue
        return

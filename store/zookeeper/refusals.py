"""Refusals: logs once why ZooKeeper refuses this process, counts that, and pauses before the next attempt.

A server that is away is asked again every second, because it may be back. One that refuses this process does so until a
person changes something, and thousands of processes would ask it for ever.
"""

import logging
import random
import threading
from collections.abc import Callable
from enum import Enum

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LEAST_PART = 0.5  # of a pause that the dice leave, so that the processes of a platform do not ask in step


class Reason(Enum):
    """Why ZooKeeper refuses this process; the value is a label of a metric."""

    LOGIN_REQUIRED = "login-required"  # it serves only who has logged in with SASL
    LOGIN_FAILED = "login-failed"  # it does not accept what this process logs in with
    CREDENTIALS = "credentials"  # a file with credentials, or a library for them, is missing or cannot be used
    TLS = "tls"  # one side speaks TLS and the other does not, or one does not accept the other's certificate
    NOT_ALLOWED = "not-allowed"  # a node's access list does not allow it


class Refusals:
    """The refusals of one client, whose connection thread reports them; ``dice`` are from 0 to 1."""

    def __init__(self, dice: Callable[[], float] = random.random) -> None:
        self._dice = dice
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Reason, 0)
        self._said: set[Reason] = set()
        self._in_a_row = 0

    @property
    def counts(self) -> dict[Reason, int]:
        """How often ZooKeeper has refused this process, by reason."""
        with self._lock:
            return dict(self._counts)

    def refused(self, reason: Reason, sentence: str) -> None:
        """ZooKeeper did not serve this process: log why, once until it serves again. The next pause is longer."""
        with self._lock:
            self._in_a_row += 1
        self._note(reason, sentence)

    def not_allowed(self, what: str) -> None:
        """ZooKeeper serves this process but did not allow one operation: log it, once. The connection is good."""
        self._note(Reason.NOT_ALLOWED, f"its access list does not allow {what}.")

    def served(self) -> None:
        """ZooKeeper has accepted this process: the next refusal is news again, unless it is about access lists."""
        with self._lock:
            again, self._in_a_row = self._in_a_row > 0, 0
            self._said &= {Reason.NOT_ALLOWED}
        if again:
            log.info("ZooKeeper accepts this process now.")

    def pause(self) -> float:
        """Return for how many seconds ZooKeeper is not to be asked: 0 unless it refused, at most 30."""
        with self._lock:
            in_a_row = self._in_a_row
        if not in_a_row:
            return 0.0
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(in_a_row - 1, 10))
        return longest * (LEAST_PART + (1 - LEAST_PART) * self._dice())

    def _note(self, reason: Reason, sentence: str) -> None:
        with self._lock:
            self._counts[reason] += 1
            news = reason not in self._said
            self._said.add(reason)
        if news:
            log.warning("ZooKeeper does not attest this process: %s", sentence)

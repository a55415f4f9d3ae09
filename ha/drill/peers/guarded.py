"""What every peer's guard does with its command, and what it writes into the history.

``Granted`` and ``Published`` once for each node that comes first, ``Revoked`` whenever that is over; ``Ran`` when the
command begins and ends to run: a frozen one does not run. ``Believed`` needs care, because a peer's belief has no
deadline: it leads until it is told otherwise. A belief without an end would accuse a guard that was killed of leading
for ever, so it is written five times a second and counts for three of these: a paused guard's belief ends with the
pause, and begins anew if it wakes up and still takes itself for the leader. ``holds_until`` is never claimed.
"""

import logging
import signal
import threading
from collections.abc import Callable
from enum import Enum
from types import FrameType

from ha.drill.peers import election
from ha.drill.peers.command import Command
from ha.drill.peers.task import Task
from ha.history.events import Believed, Granted, Published, Ran, Revoked
from ha.history.opening import open_history
from store.clock import now

POLL = 0.05
"""Seconds between two looks at the standing, and at the command."""

BEAT = 0.2
"""Seconds between two lines that say that the guard still believes."""

BELIEF = 3 * BEAT
"""Seconds that each of them counts for."""

_log = logging.getLogger("ha.drill")


class Standing(Enum):
    """What a recipe says of the leadership of this contender."""

    LEADS = "leads"
    UNSURE = "unsure"
    LOST = "lost"


class Guarded:
    """Runs one contender's command whenever it leads."""

    def __init__(self, task: Task) -> None:
        """Prepare; nothing runs yet.

        Args:
            task: what to run, and for whom.
        """
        self._task = task
        self._job = task.job
        self._contender = task.settings.contender
        self._history = open_history(task.settings.history, self._contender)
        self._node = ""
        self._epoch = 0
        self._believes_until = float("-inf")

    def lead(self, node: str, standing: Callable[[], Standing], changed: threading.Event) -> int | None:
        """Run the command for as long as this contender leads; return its exit code, None if it was stopped.

        Call it from the main thread.

        Args:
            node: name of the contender's node, which comes first.
            standing: what the recipe says; asked again and again. An unsure one freezes the command.
            changed: set when it may say something else.

        Raises:
            Exception: what ``standing`` raises; the command is stopped then, as it is by a signal.
        """
        self._granted(node)
        command = Command(self._task.command, self._told())
        _log.info("%s: the command runs as process %d.", self._job, command.pid)
        self._ran(running=True)
        reason = "The guard was stopped."
        try:
            while not command.ended:
                says = standing()
                if says is Standing.LOST:
                    reason = "The recipe says that the leadership is lost."
                    break
                self._follow(command, leads=says is Standing.LEADS)
                changed.wait(POLL)
                changed.clear()
            else:
                reason = ""
        finally:
            ran = not command.frozen  # else it was written down that it does not run
            self._believes(False)
            code = command.stop(self._task.grace)
            if ran:
                self._ran(running=False)
            self._history.write(
                Revoked(now(), self._job, self._contender, node, reason or f"The command has ended with {code}.")
            )
            _log.info("%s: the command has ended with %d. %s", self._job, code, reason)
        return None if reason else code

    # ---

    def _follow(self, command: Command, *, leads: bool) -> None:
        if leads and command.frozen:
            _log.info("%s: the leadership goes on, and so does the command.", self._job)
            self._ran(running=True)
            command.thaw()
        elif not leads and not command.frozen:
            command.freeze()
            self._ran(running=False)
            _log.info("%s: the leadership is in doubt: the command is frozen.", self._job)
        self._believes(leads)

    def _told(self) -> dict[str, str]:
        """What the command needs to write its part of the history, and nothing else."""
        return {"HA_JOB": self._job, "HA_CONTENDER": self._contender, "HA_EPOCH": str(self._epoch)}

    # --- the history

    def _granted(self, node: str) -> None:
        if node == self._node:
            _log.info("%s: leads again, with the same node.", self._job)
            return
        self._node, self._epoch = node, election.epoch(node)
        at, endpoints = now(), {"jobmaster": self._contender}
        self._history.write(Granted(at, self._job, self._contender, self._epoch, node, "first in the election"))
        self._history.write(Published(at, self._job, self._contender, self._epoch, node, endpoints))
        _log.info("%s: leads as number %d.", self._job, self._epoch)

    def _ran(self, *, running: bool) -> None:
        self._history.write(Ran(now(), self._job, self._contender, self._epoch, running))

    def _believes(self, leads: bool) -> None:
        at = now()
        if leads and self._believes_until - at < BELIEF - BEAT:
            self._believes_until = at + BELIEF
            self._history.write(Believed(at, self._job, self._contender, self._believes_until, None))
        elif not leads and self._believes_until > at:
            self._believes_until = at
            self._history.write(Believed(at, self._job, self._contender, None, None))


def end_on_signals() -> None:
    """Make TERM and INT end this process as an exception would, so that the command is stopped on the way."""

    def end(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

"""Contender of a baseline: its command line, the command that runs while it leads, and the history of both.

``Granted`` and ``Published`` are written once for each node that comes first, ``Revoked`` whenever its leadership is
over, and ``Ran`` when the command begins or stops running; a frozen command does not run.

``Believed`` needs care, because a baseline's belief has no deadline: it leads until it is told otherwise. A belief
without an end would accuse a killed contender of leading for ever. So the belief is written five times a second, and
each line counts for three of these intervals. The belief of a paused contender ends during the pause, and begins anew
if the contender wakes up and still takes itself for the leader. ``holds_until`` is never claimed.
"""

import argparse
import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import FrameType

from benchmarks.baselines import election
from benchmarks.baselines.command import Command
from ha.config.settings import Settings
from ha.config.sources import load
from ha.config.stores import open_history
from ha.history.events import Believed, Granted, Published, Ran, Revoked
from leader.errors import InvalidName, InvalidSettings
from leader.layout.names import check_job
from store.clock import now

STOP_GRACE = "3"  # Seconds between TERM and KILL, unless ``HA_STOP_GRACE`` says otherwise
POLL_S = 0.05  # Pause between two checks of the leadership and of the command
BELIEF_EVERY_S = 0.2  # Time between two lines that say that the contender still believes to lead
BELIEF_S = 3 * BELIEF_EVERY_S  # Time that each of these lines counts for

_log = logging.getLogger("ha.drill")


@dataclass(frozen=True)
class Task:
    """Task of one contender, from its command line and its environment."""

    job: str  # the job's name
    command: list[str]  # program and arguments
    # of which ``zookeeper``, ``session_timeout``, ``stop_grace``, ``contender`` and ``history`` are used
    settings: Settings

    @property
    def grace(self) -> float:
        """Seconds between TERM and KILL once the leadership is in doubt: of the session timeout, what is left of it.

        Both clients report a silent connection after two thirds; a careful user stops before another one may lead.
        """
        return min(self.settings.command.stop_grace, self.settings.leadership.session_timeout / 3)


def parse(baseline: str, words: Sequence[str]) -> Task:
    """Read a command line and the environment."""
    parser = argparse.ArgumentParser(description=f"Run a command while {baseline} says that this contender leads.")
    parser.add_argument("job")
    parser.add_argument("--contender", metavar="NAME", help="name of this contender")
    parser.usage = "%(prog)s JOB --contender NAME -- COMMAND..."
    end = words.index("--") if "--" in words else len(words)
    options, command = parser.parse_args(words[:end]), list(words[end + 1 :])
    try:
        check_job(options.job)
        settings = load({"contender": options.contender}, {"HA_STOP_GRACE": STOP_GRACE, **os.environ})
    except (InvalidName, InvalidSettings) as error:
        parser.error(str(error))
    if not command or not settings.stores.zookeeper:
        parser.error("a command after -- is needed, and HA_ZOOKEEPER.")
    return Task(options.job, command, settings)


class Standing(Enum):
    """State of this contender's leadership, as reported by a recipe."""

    LEADS = "leads"
    UNSURE = "unsure"
    LOST = "lost"


class CommandRunner:
    """Runs one contender's command whenever the contender leads."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._job = task.job
        self._contender = task.settings.leadership.contender
        self._history = open_history(task.settings.stores.history, self._contender)
        self._node = ""
        self._epoch = 0
        self._believes_until = float("-inf")

    def lead(self, node: str, standing: Callable[[], Standing], changed: threading.Event) -> int | None:
        """Run the command on the main thread while it leads; return its exit code, None if it was stopped."""
        self._granted(node)
        command = Command(self._task.command, self._command_variables())
        _log.info("%s: the command runs as process %d.", self._job, command.pid)
        self._ran(running=True)
        reason = "The contender was stopped."
        try:
            while not command.ended:
                says = standing()
                if says is Standing.LOST:
                    reason = "The recipe says that the leadership is lost."
                    break
                self._follow(command, leads=says is Standing.LEADS)
                changed.wait(POLL_S)
                changed.clear()
            else:
                reason = ""
        finally:
            ran = not command.frozen  # a frozen command is in the history as not running already
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

    def _command_variables(self) -> dict[str, str]:
        """Return the variables with which the command writes its part of the history, and nothing else."""
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
        if leads and self._believes_until - at < BELIEF_S - BELIEF_EVERY_S:
            self._believes_until = at + BELIEF_S
            self._history.write(Believed(at, self._job, self._contender, self._believes_until, None))
        elif not leads and self._believes_until > at:
            self._believes_until = at
            self._history.write(Believed(at, self._job, self._contender, None, None))


def end_on_signals() -> None:
    """Make TERM and INT end this process like an exception, so that the command is stopped on the way."""

    def end(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

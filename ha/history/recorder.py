"""Recorder: a history that is written down, one line an event and one system call a line.

Each process writes a file of its own. So one that is killed loses at most the event it was about to write, and lines
of two processes never mix. When an event cannot be written, recording stops with a warning; the leader goes on.
"""

import errno
import logging
import math
import os
import secrets
from itertools import count
from pathlib import Path

from ha.history import events
from ha.history.events import Event, History, encode
from leader.contender.participant import Belief
from leader.election.events import Grant, Publish, Revoke, Suspect
from leader.job.checkpoints import BatchPublished, IdHandedOut
from leader.lookup.observed import CheckpointsRead, LookupEnded
from leader.observer import Observer
from leader.timing import LONGEST
from store.clock import now

_log = logging.getLogger("ha")


class Recorder(History):
    """A history in a directory.

    Safe to use from several threads, and from a forked child, which begins a file of its own. There is no lock, which
    a fork could leave held for ever: a line is one write to a file that is open for appending. An event costs some
    8 microseconds on a local disk, and a belief changes a few times a second at most.
    """

    def __init__(self, folder: str | Path, name: str) -> None:
        """Open nothing before there is something to write; the process's files and readers are named after it."""
        self._folder = Path(folder).absolute()
        self._name = name
        self._part = _Part(self._folder, name)
        self._over = False
        self._readers = count(1)

    def observer(self, job: str, happened: object) -> None:
        """Record a step of the contender, or of a leader's checkpoints."""
        event = _event_of_contender(job, self._name, happened)
        if event is not None:
            self.write(event)

    def reader(self) -> Observer:
        """Return an observer for one reader; in a forked child it counts as another reader."""
        number = next(self._readers)

        def observe(job: str, happened: object) -> None:
            event = _event_of_reader(job, f"{self._own_part().stem}.{number}", happened)
            if event is not None:
                self.write(event)

        return observe

    def ran(self, job: str, epoch: int, *, running: bool) -> None:
        """See the base class."""
        self.write(events.Ran(now(), job, self._name, epoch, running))

    def write(self, event: Event) -> None:
        """See the base class."""
        if self._over:
            return
        try:
            self._own_part().append(encode(event))
        except (OSError, ValueError) as error:  # ValueError: a text that cannot be encoded
            self._over = True
            cause = error.strerror if isinstance(error, OSError) else error
            _log.warning("The history in %s ends here (%s); nothing else is hurt.", self._folder, cause)

    def close(self) -> None:
        """See the base class."""
        self._over = True
        self._part = _Part(self._folder, self._name)

    def _own_part(self) -> "_Part":
        """This process's part; two threads that come first in a child have one each, which does no harm."""
        part = self._part
        if part.pid != os.getpid():
            part = self._part = _Part(self._folder, self._name)
        return part


class _Part:
    """One process's file of a history. It is closed with its last reference: a thread may be about to write."""

    def __init__(self, folder: Path, name: str) -> None:
        self.pid = os.getpid()
        self.stem = f"{name}-{self.pid}-{secrets.token_hex(4)}"
        self._folder = folder
        self._descriptor = -1

    def append(self, line: bytes) -> None:
        if self._descriptor < 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self._folder / f"{self.stem}.jsonl", flags, 0o644)
        if os.write(self._descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def _event_of_contender(job: str, contender: str, happened: object) -> Event | None:  # noqa: PLR0911  # one an event
    """The event of the history for this; None if it is not recorded."""
    at = now()
    match happened:
        case Belief(leads_until, holds_until):
            return events.Believed(at, job, contender, _finite(leads_until), _finite(holds_until))
        case Grant(epoch, session_id, reason):
            return events.Granted(at, job, contender, epoch, session_id, reason)
        case Revoke(session_id, reason):
            return events.Revoked(at, job, contender, session_id, reason)
        case Publish(information):
            endpoints = dict(information.endpoints)
            return events.Published(at, job, contender, information.epoch, information.session_id, endpoints)
        case Suspect(suspected):
            return events.Suspected(at, job, suspected, contender)
        case IdHandedOut(started, epoch, number):
            return events.Counted(started, job, at, contender, epoch, number)
        case BatchPublished(started, epoch, query, batch):
            return events.Completed(started, job, at, contender, epoch, query, batch)
        case _:
            return None


def _event_of_reader(job: str, reader: str, happened: object) -> Event | None:
    match happened:
        case LookupEnded():
            return _looked_up(job, reader, happened)
        case CheckpointsRead(started, state):
            return events.CheckpointsRead(started, job, now(), reader, state.epoch, state.next_id, state.queries)
        case _:
            return None


def _looked_up(job: str, reader: str, lookup: LookupEnded) -> events.LookedUp:
    started, ended, answer = lookup.started, lookup.ended, lookup.answer
    # JSON has no infinity; and a watch may wait for a change as long as it likes.
    timeout = min(lookup.timeout, LONGEST) if lookup.timeout is not None else ended - started
    if answer is None:
        return events.LookedUp(started, job, ended, timeout, reader, "none" if lookup.reached else "unreachable")
    return events.LookedUp(
        started, job, ended, timeout, reader, "leader", answer.epoch, answer.session_id, dict(answer.endpoints),
        answer.source.value, answer.verified, answer.stale,
    )  # fmt: skip


def _finite(until: float) -> float | None:
    return until if math.isfinite(until) else None

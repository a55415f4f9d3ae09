"""Each process writes its part of a history: into a file of its own, one line an event, one system call a line.

So a process that is killed loses at most the event that it was about to write, and no two processes' lines mix. What
cannot be written is not: recording stops then, says so once, and the leader goes on.
"""

import errno
import logging
import math
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    Granted,
    LookedUp,
    Published,
    Ran,
    Revoked,
    Suspected,
    encode,
)
from ha.history.opening import CheckpointLookups, Checkpoints, Lookups, NoHistory
from leader.answers import Answer
from leader.candidacy import Leads
from leader.checkpoint import NOTHING, Checkpoint, Metadata
from leader.checkpoint_state import CheckpointState
from leader.errors import NoLeader, Unreachable
from leader.events import Grant, Revoke
from leader.information import LeaderInformation
from leader.timing import LONGEST
from store.clock import now

_log = logging.getLogger("ha")


class Recorder(NoHistory):
    """Writes into a directory; safe to use from several threads, and from a forked child, which begins its own file.

    There is no lock, which a fork could leave held for ever: a line is one write to a file that is open for appending.
    An event costs some 8 microseconds on a local disk, and a belief changes a few times a second at most.
    """

    def __init__(self, folder: str | Path, name: str) -> None:
        """Open nothing before there is something to write.

        Args:
            folder: made if it is not there.
            name: of the contender, or of whoever looks up; the names of its files and of its readers begin with it.
        """
        self._folder = Path(folder).absolute()
        self._name = name
        self._part = _Part(self._folder, name)
        self._over = False
        self._readers = count(1)

    def write(self, event: Event) -> None:
        """Record an event."""
        if self._over:
            return
        try:
            self._own_part().append(encode(event))
        except (OSError, ValueError) as error:  # the latter for a text that is no Unicode
            self._over = True
            cause = error.strerror if isinstance(error, OSError) else error
            _log.warning("The history in %s ends here (%s); nothing else is hurt.", self._folder, cause)

    def ran(self, job: str, epoch: int, *, running: bool) -> None:
        """A command of a leader is being started, or it has ended; so does a block of ``ha.lead``."""
        self.write(Ran(now(), job, self._name, epoch, running))

    def leads(self, leads: Leads) -> Leads:
        """Return who is to be told about leadership, so that it is recorded."""
        return _Leads(self.write, self._name, leads)

    def checkpoints(self, job: str, epoch: int, checkpoints: Checkpoints) -> Checkpoints:
        """Return a leader's hand on its checkpoints, so that what it does is recorded."""
        return _Checkpoints(self.write, job, self._name, epoch, checkpoints)

    def lookups(self, reader: Lookups) -> Lookups:
        """Return a reader whose answers are recorded."""
        return _Lookups(self.write, self._reader_name(), reader)

    def checkpoint_lookups(self, reader: CheckpointLookups) -> CheckpointLookups:
        """Return a reader of checkpoints whose answers are recorded."""
        return _CheckpointLookups(self.write, self._reader_name(), reader)

    def close(self) -> None:
        """Record nothing more."""
        self._over = True
        self._part = _Part(self._folder, self._name)

    def _own_part(self) -> "_Part":
        """This process's part; two threads that come first in a child have one each, which does no harm."""
        part = self._part
        if part.pid != os.getpid():
            part = self._part = _Part(self._folder, self._name)
        return part

    def _reader_name(self) -> Callable[[], str]:
        """What a reader is called: what it is in a forked child is another one than the parent's."""
        number = next(self._readers)
        return lambda: f"{self._own_part().stem}.{number}"


class _Part:
    """One process's part of a history. Its file is closed when nobody uses it any more: a thread may be about to."""

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


Write = Callable[[Event], None]


class _Leads:
    """Stands before who is told about leadership."""

    def __init__(self, write: Write, contender: str, leads: Leads) -> None:
        self._write = write
        self._contender = contender
        self._leads = leads

    def granted(self, job: str, grant: Grant) -> None:
        self._write(Granted(now(), job, self._contender, grant.epoch, grant.session_id, grant.reason))
        self._leads.granted(job, grant)

    def revoked(self, job: str, revoke: Revoke) -> None:
        self._write(Revoked(now(), job, self._contender, revoke.session_id, revoke.reason))
        self._leads.revoked(job, revoke)

    def asked(self, job: str, successor: str) -> None:
        self._leads.asked(job, successor)

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        self._write(Believed(now(), job, self._contender, _finite(leads_until), _finite(holds_until)))
        self._leads.believed(job, leads_until, holds_until)

    def published(self, job: str, information: LeaderInformation) -> None:
        session_id, endpoints = information.session_id, dict(information.endpoints)
        self._write(Published(now(), job, self._contender, information.epoch, session_id, endpoints))
        self._leads.published(job, information)

    def suspected(self, job: str, contender: str) -> None:
        self._write(Suspected(now(), job, contender, self._contender))
        self._leads.suspected(job, contender)

    def said(self, job: str, sentence: str) -> None:
        self._leads.said(job, sentence)


def _finite(until: float) -> float | None:
    return until if math.isfinite(until) else None


class _Checkpoints:
    """Stands before a leader's hand on its checkpoints; what raised is not recorded: nobody was told anything."""

    def __init__(self, write: Write, job: str, contender: str, epoch: int, checkpoints: Checkpoints) -> None:
        self._write = write
        self._job = job
        self._contender = contender
        self._epoch = epoch
        self._checkpoints = checkpoints

    def state(self) -> CheckpointState:
        return self._checkpoints.state()

    def latest(self, query: str) -> Checkpoint | None:
        return self._checkpoints.latest(query)

    def retained(self, query: str) -> list[Checkpoint]:
        return self._checkpoints.retained(query)

    def next(self) -> int:
        at = now()
        number = self._checkpoints.next()
        self._write(Counted(at, self._job, now(), self._contender, self._epoch, number))
        return number

    def set(self, number: int) -> int:
        return self._checkpoints.set(number)

    def completed(self, query: str, batch: int, metadata: Metadata = NOTHING) -> CheckpointState:
        at = now()
        state = self._checkpoints.completed(query, batch, metadata)
        self._write(Completed(at, self._job, now(), self._contender, self._epoch, query, batch))
        return state


class _CheckpointLookups:
    """Stands before a reader of checkpoints."""

    def __init__(self, write: Write, name: Callable[[], str], reader: CheckpointLookups) -> None:
        self._write = write
        self._name = name
        self._reader = reader

    def checkpoint(self, job: str, timeout: float = 2.0) -> CheckpointState:
        at = now()
        state = self._reader.checkpoint(job, timeout)
        self._write(CheckpointsRead(at, job, now(), self._name(), state.epoch, state.next_id, state.queries))
        return state

    def retained(self, job: str, timeout: float = 2.0) -> dict[str, list[Checkpoint]]:
        return self._reader.retained(job, timeout)


class _Lookups:
    """Stands before a reader."""

    def __init__(self, write: Write, name: Callable[[], str], reader: Lookups) -> None:
        self._write = write
        self._name = name
        self._reader = reader

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        return self._recorded(job, timeout, lambda: self._reader.leader(job, timeout, stale=stale))

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        return self._recorded(job, timeout, lambda: self._reader.report(job, session_id, timeout))

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        at = now()
        for answer in self._reader.watch(job, stop, timeout):
            ended = now()
            self._answered(job, at, ended, ended - at, answer)  # it may wait for a change as long as it likes
            yield answer
            at = now()

    def _recorded(self, job: str, timeout: float, look: Callable[[], Answer]) -> Answer:
        at, timeout = now(), min(timeout, LONGEST)  # JSON has no infinity
        try:
            answer = look()
        except NoLeader:
            self._answered(job, at, now(), timeout, None)
            raise
        except Unreachable:
            self._write(LookedUp(at, job, now(), timeout, self._name(), "unreachable"))
            raise
        self._answered(job, at, now(), timeout, answer)
        return answer

    def _answered(self, job: str, at: float, ended: float, timeout: float, answer: Answer | None) -> None:
        if answer is None:
            self._write(LookedUp(at, job, ended, timeout, self._name(), "none"))
            return
        self._write(
            LookedUp(
                at,
                job,
                ended,
                timeout,
                self._name(),
                "leader",
                answer.epoch,
                answer.session_id,
                dict(answer.endpoints),
                answer.source.value,
                answer.verified,
                answer.stale,
            )
        )

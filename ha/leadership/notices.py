"""Notices: the contender's messages, queued in order for a thread that may take its time."""

import logging
import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leader.election.events import Grant, Revoke
from leader.layout.information import LeaderInformation

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class GrantNotice:
    """Leadership begins."""

    job: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class RevocationNotice:
    """Leadership has ended, or must end sooner than announced before."""

    job: str
    revoke: Revoke


@dataclass(frozen=True, slots=True)
class AskedTo:
    """An operator asks the leader to hand over."""

    job: str
    successor: str


@dataclass(frozen=True, slots=True)
class Requested:
    """An operator has left a request for the leader: see :mod:`leader.job.request_folder`."""

    job: str


@dataclass(frozen=True, slots=True)
class PublicationNotice:
    """HDFS holds the endpoints."""

    job: str
    information: LeaderInformation


@dataclass(frozen=True, slots=True)
class RefusalNotice:
    """This process has to stop contending for the job; ``sentence`` says why, and what to do."""

    job: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Another event, of the queue's owner."""

    what: Any


Notice = GrantNotice | RevocationNotice | AskedTo | Requested | PublicationNotice | RefusalNotice | Wake


class NoticeQueue:
    """A listener of the contender that logs its decisions and queues those that its owner must act on."""

    def __init__(self, believed: Callable[[str, float, float], None] | None = None) -> None:
        """Queue nothing yet."""
        # `believed`: called on the contender's thread with a job, until when it leads and until when no other process
        # can lead, whenever these change; in seconds of the boot clock.
        self._queue: queue.SimpleQueue[Notice] = queue.SimpleQueue()
        self._believed = believed
        self.last_said = ""
        """The contender's newest decision, which may be why nothing was granted."""

    def get(self, timeout: float | None = None) -> Notice | None:
        """Take the next notice; None if there is none within ``timeout`` seconds."""
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def put(self, notice: Notice) -> None:
        """Add a notice."""
        self._queue.put(notice)

    def refused(self, job: str, sentence: str) -> None:
        """This process has to stop contending."""
        _log.error("%s: %s", job, sentence)
        self.put(RefusalNotice(job, sentence))

    # --- leader.contender.participant.LeaderListener

    def granted(self, job: str, grant: Grant) -> None:
        """Leadership begins."""
        _log.info("%s: granted at epoch %d, session %s (%s).", job, grant.epoch, grant.session_id, grant.reason)
        self.put(GrantNotice(job, grant))

    def revoked(self, job: str, revoke: Revoke) -> None:
        """Leadership ended."""
        orderly = revoke.until is None  # the lease is kept while the work is being stopped
        _log.log(logging.INFO if orderly else logging.WARNING, "%s: revoked. %s", job, revoke.reason)
        self.put(RevocationNotice(job, revoke))

    def asked(self, job: str, successor: str) -> None:
        """An operator asks the leader to hand over."""
        _log.info("%s: an operator asks to hand over to %s.", job, successor.replace("_any", "anybody"))
        self.put(AskedTo(job, successor))

    def requested(self, job: str) -> None:
        """An operator has left a request."""
        self.put(Requested(job))

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        """The deadlines have changed."""
        if self._believed is not None:
            self._believed(job, leads_until, holds_until)

    def published(self, job: str, information: LeaderInformation) -> None:
        """HDFS holds the endpoints."""
        endpoints = ", ".join(f"{name}={address}" for name, address in sorted(information.endpoints.items()))
        _log.info("%s: published epoch %d: %s.", job, information.epoch, endpoints or "no endpoints")
        self.put(PublicationNotice(job, information))

    def suspected(self, job: str, contender: str) -> None:
        """The leader's process seems to have ended."""
        _log.warning("%s: the process of %s is gone: its lease is seized.", job, contender)

    def said(self, job: str, sentence: str, *, warns: bool = False) -> None:
        """The contender has decided something."""
        self.last_said = sentence
        _log.log(logging.WARNING if warns else logging.INFO, "%s: %s", job, sentence)

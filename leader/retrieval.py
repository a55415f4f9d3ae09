"""Retrieval: what a reader may believe of what the two stores tell it. No I/O.

ZooKeeper's record is believed unless it is older than what is known, or has the same epoch under another session id.
HDFS wins every comparison, in both directions. Apart from that, what is known only ever gets newer.
"""

from collections import deque
from enum import Enum
from typing import NamedTuple

from leader.information import LeaderInformation, Record
from leader.names import LeaderDirectory
from leader.snapshot import Snapshot

REMEMBERED_FORGERIES = 8
"""What HDFS did not bear out: a forgery in ZooKeeper, or a claim that a NameNode has shown and forgotten. More than
one, for both can come in a row, and whichever is still in ZooKeeper would be believed again."""


class Source(Enum):
    """Where an answer comes from."""

    SNAPSHOT = "snapshot"
    ZOOKEEPER = "zookeeper"
    HDFS = "hdfs"


class Known(NamedTuple):
    """What a reader knows of a job's leader.

    Attributes:
        epoch: the highest that counts.
        session_id: of that epoch.
        information: None if that epoch has no leader that can be reached: not confirmed yet, or released.
        source: who told.
        since: boot-clock seconds when this epoch and session id were first told of.
        published: boot-clock seconds when this information was first told of.
        at: boot-clock seconds when it was last told of.
        verified: whether HDFS has said the same.
    """

    epoch: int
    session_id: str
    information: LeaderInformation | None
    source: Source
    since: float
    published: float
    at: float
    verified: bool


class Knowledge:
    """What one reader knows of one job; every change goes through one of the ``hear_`` methods, or :meth:`nobody`."""

    def __init__(self) -> None:
        self.known: Known | None = None
        self.mismatches = 0
        self._forged: deque[tuple[int, str]] = deque(maxlen=REMEMBERED_FORGERIES)
        self._over: tuple[int, str] | None = None

    def hear_zookeeper(self, information: LeaderInformation, at: float) -> bool:
        """ZooKeeper holds this record; returns whether it is believed. If not, ask HDFS."""
        known, version = self.known, (information.epoch, information.session_id)
        contradicted = version in self._forged or version == self._over
        believed = not contradicted and (known is None or _supersedes(information, known))
        if not believed:
            self.mismatches += 1
            return False
        same = known is not None and known.information == information
        verified = same and known is not None and known.verified
        self._know(information, version, Source.ZOOKEEPER, at, verified=verified)
        return True

    def hear_files(self, directory: LeaderDirectory, record: Record, job: str, started: float, at: float) -> bool:
        """HDFS holds this record, read between two boot-clock times; returns whether it is believed.

        It is not if something newer became known after the read had begun: the read is then just older. If what is
        known was there before the read began, and is still ahead of HDFS, then it never came from a claim.
        """
        known = self.known
        if known is not None and known.epoch > directory.epoch:
            if started <= known.since:
                return False
            self._contradict(known)
        elif known is not None and known.epoch == directory.epoch and known.session_id != directory.session_id:
            self._contradict(known)
        elif (directory.epoch, directory.session_id) in self._forged:
            self._forged.remove((directory.epoch, directory.session_id))
        if record.released:
            self._over = (directory.epoch, directory.session_id)  # for ever: the next leader has another epoch
        version = (directory.epoch, directory.session_id)
        information = None if self._over == version else record.published(job, directory)
        if self._outdated(information, started):
            return False
        self._know(information, version, Source.HDFS, at, verified=True)
        return True

    def hear_snapshot(self, snapshot: Snapshot) -> bool:
        """An agent of this host was told this; returns whether it is believed. If not, ask the stores.

        It is believed as ZooKeeper's record is, but not if it says something else than what was told here since. That
        nobody leads is believed without being learnt: what a job's next leader must exceed is what was known before.
        """
        known, information = self.known, snapshot.information
        version = (snapshot.epoch, snapshot.session_id)
        if known is not None and snapshot.at < known.at and information != known.information:
            return False
        if information is None:
            return known is None or snapshot.epoch > known.epoch or version == (known.epoch, known.session_id)
        if version in self._forged or version == self._over or not (known is None or _supersedes(information, known)):
            return False
        same = known is not None and known.information == information
        verified = snapshot.verified or (same and known is not None and known.verified)
        self._know(information, version, Source.SNAPSHOT, snapshot.at, verified=verified)
        return True

    def doubted_by(self, snapshot: Snapshot) -> bool:
        """Whether HDFS may have told an agent that what is known here never came from a claim: then ask HDFS."""
        known = self.known
        older = known is not None and (snapshot.epoch, snapshot.session_id) != (known.epoch, known.session_id)
        return older and known is not None and snapshot.verified and known.since < snapshot.at

    def _contradict(self, known: Known) -> None:
        version = (known.epoch, known.session_id)
        if version not in self._forged:
            self._forged.append(version)

    def _outdated(self, information: LeaderInformation | None, started: float) -> bool:
        """Whether a read that began then just missed the publication that is known by now."""
        known = self.known
        if known is None or known.information is None or information is None or started > known.published:
            return False
        same = (known.epoch, known.session_id) == (information.epoch, information.session_id)
        return same and information.version < known.information.version

    def _know(
        self,
        information: LeaderInformation | None,
        version: tuple[int, str],
        source: Source,
        at: float,
        *,
        verified: bool,
    ) -> None:
        """To hear something again does not make it newer: else frequent lookups would shield a forgery from audits."""
        known = self.known
        since = known.since if known is not None and (known.epoch, known.session_id) == version else at
        published = known.published if known is not None and known.information == information else at
        self.known = Known(*version, information, source, since, published, at, verified)

    def nobody(self, at: float) -> None:
        """HDFS and ZooKeeper agree that whoever was known leads no more."""
        if self.known is not None:
            self.known = self.known._replace(information=None, at=at)


def _supersedes(information: LeaderInformation, known: Known) -> bool:
    if information.epoch != known.epoch:
        return information.epoch > known.epoch
    if information.session_id != known.session_id:
        return False
    return known.information is None or information.version >= known.information.version

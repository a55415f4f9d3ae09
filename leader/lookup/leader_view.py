"""LeaderView: one picture of a job's leader, merged from ZooKeeper, HDFS and the host's agent. No I/O, no clock.

A record from ZooKeeper is believed if HDFS has said the same, since anybody may have written it. One that is older than
the view, or has the same epoch under another session id, is not even worth asking about. HDFS wins every comparison, in
both directions. Apart from that, the view only ever gets newer.
"""

from collections import deque
from enum import Enum

from leader.layout.information import LeaderInformation, Record
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Known, Snapshot, Source

REMEMBERED_FORGERIES = 8  # versions that HDFS contradicted: forged in ZooKeeper, or claims that a NameNode forgot
Version = tuple[int, str]  # an epoch and its session id


class Verdict(Enum):
    """The verdict of a view on a record from ZooKeeper."""

    BELIEVED = "believed"  # it is what the view knows
    UNVERIFIED = "unverified"  # it is news, or HDFS has not said the same: HDFS must be asked before it is used
    CONTRADICTED = "contradicted"  # it is older than the view, or HDFS has contradicted it


class LeaderView:
    """One reader's knowledge of one job. Only methods named ``merge``, ``believe`` and ``mark`` change it."""

    def __init__(self) -> None:
        self.known: Known | None = None  # None before a store or an agent has named an epoch
        # The one that ZooKeeper or HDFS named last; reading it first saves HDFS a list.
        self.directory: LeaderDirectory | None = None
        self._forged: deque[Version] = deque(maxlen=REMEMBERED_FORGERIES)
        self._released: Version | None = None
        # The last endpoints that were believed; a leader that was found dead may live on, but not under older ones.
        self._newest: LeaderInformation | None = None
        self.doubted = False  # an agent that HDFS has answered says otherwise: what HDFS has not said must be asked

    def merge_zookeeper(self, information: LeaderInformation, started: float, at: float) -> Verdict:
        """Merge ZooKeeper's record, read between two boot-clock times, if it says what HDFS has said."""
        known, version = self.known, (information.epoch, information.session_id)
        contradicted = version in self._forged or version == self._released
        if contradicted or not (known is None or self._supersedes(information, known)):
            return Verdict.CONTRADICTED
        if known is None or known.information != information:
            return Verdict.UNVERIFIED
        if not known.verified and (known.source is not Source.ZOOKEEPER or self.doubted):
            return Verdict.UNVERIFIED
        self._learn_from_zookeeper(information, started, at, verified=known.verified)
        return Verdict.BELIEVED

    def believe_unverified(self, information: LeaderInformation, started: float, at: float) -> bool:
        """Merge ZooKeeper's record although HDFS cannot be asked; returns whether it is believed."""
        verdict = self.merge_zookeeper(information, started, at)
        if verdict is Verdict.UNVERIFIED:
            self._learn_from_zookeeper(information, started, at, verified=False)
        return verdict is not Verdict.CONTRADICTED

    def refute(self, candidate: LeaderInformation, directory: LeaderDirectory) -> None:
        """Remember a record of ZooKeeper as forged if HDFS, read after it, names another leader directory."""
        version = (candidate.epoch, candidate.session_id)
        if version >= (directory.epoch, "") and version != (directory.epoch, directory.session_id):
            self._contradict(version)

    def merge_files(self, directory: LeaderDirectory, record: Record, job: str, started: float, at: float) -> bool:
        """Merge the record that HDFS holds, read between two boot-clock times; returns whether it is believed."""
        # It is not if the view became newer after the read had begun: then the read is merely older. A view from before
        # the read that is still ahead of HDFS never came from a claim.
        known, version = self.known, (directory.epoch, directory.session_id)
        if known is not None and known.epoch > directory.epoch:
            if started <= known.since:
                return False
            self._contradict((known.epoch, known.session_id))
        elif known is not None and known.epoch == directory.epoch and known.session_id != directory.session_id:
            self._contradict((known.epoch, known.session_id))
        elif version in self._forged:
            self._forged.remove(version)
        if record.released:
            self._released = version  # never unset: the next leader has another epoch
        information = None if self._released == version else record.published(job, directory)
        if self._outdated(information, started):
            return False
        self._learn(information, version, Source.HDFS, started, at, verified=True)
        self.directory = directory
        return True

    def merge_snapshot(self, snapshot: Snapshot) -> bool:
        """Merge an agent's snapshot; returns whether it is believed. If not, the stores must be asked."""
        # It must not be older than the view, and this reader must not have heard something else since. The agent has
        # asked HDFS, or could not. "No leader" is believed but not learnt: the known epoch remains the least.
        self.doubted = self.doubted or self.contradicted_by(snapshot)
        known, information = self.known, snapshot.information
        version = (snapshot.epoch, snapshot.session_id)
        if known is not None and snapshot.at < known.at and information != known.information:
            return False
        if information is None:
            return known is None or snapshot.epoch > known.epoch or version == (known.epoch, known.session_id)
        contradicted = version in self._forged or version == self._released
        if contradicted or not (known is None or self._supersedes(information, known)):
            return False
        same = known is not None and known.information == information
        verified = snapshot.verified or (same and known is not None and known.verified)
        self._learn(information, version, Source.SNAPSHOT, snapshot.at, snapshot.at, verified=verified)
        return True

    def contradicted_by(self, snapshot: Snapshot) -> bool:
        """Whether HDFS may have told the agent that this view never came from a claim: then ask HDFS."""
        known = self.known
        if known is None or (snapshot.epoch, snapshot.session_id) == (known.epoch, known.session_id):
            return False
        return snapshot.verified and known.since < snapshot.at

    def mark_dead(self, at: float) -> None:
        """Record that the known leader has ended, as HDFS and ZooKeeper agree."""
        if self.known is not None:
            self.known = self.known._replace(information=None, at=at)

    def _contradict(self, version: Version) -> None:
        if version not in self._forged:
            self._forged.append(version)

    def _outdated(self, information: LeaderInformation | None, started: float) -> bool:
        """Whether a read that began at ``started`` just missed the publication that the view has by now."""
        known = self.known
        if known is None or known.information is None or information is None or started > known.published:
            return False
        same = (known.epoch, known.session_id) == (information.epoch, information.session_id)
        return same and information.version < known.information.version

    def _learn_from_zookeeper(
        self, information: LeaderInformation, started: float, at: float, *, verified: bool
    ) -> None:
        version = (information.epoch, information.session_id)
        self._learn(information, version, Source.ZOOKEEPER, started, at, verified=verified)
        self.directory = LeaderDirectory(*version)

    def _learn(
        self,
        information: LeaderInformation | None,
        version: Version,
        source: Source,
        started: float,
        at: float,
        *,
        verified: bool,
    ) -> None:
        """Replace the knowledge. Its age counts from before the question: the reader may have been frozen since."""
        # `since` and `published` stay if the knowledge stays the same. Otherwise a forgery that is looked up often
        # would always seem newer than the audit that contradicts it.
        known = self.known
        since = known.since if known is not None and (known.epoch, known.session_id) == version else at
        published = known.published if known is not None and known.information == information else at
        self.known = Known(*version, information, source, since, published, started, verified)
        self._newest = information or self._newest
        self.doubted = False

    def _supersedes(self, information: LeaderInformation, known: Known) -> bool:
        if information.epoch != known.epoch:
            return information.epoch > known.epoch
        if information.session_id != known.session_id:
            return False
        newest = self._newest
        if newest is None or (newest.epoch, newest.session_id) != (known.epoch, known.session_id):
            return True
        return information.version >= newest.version

"""The stores that a reader asks about all its jobs, and how often it may ask them."""

import random
import threading

import msgspec

from leader.nodes import Node, ReadNode, leader_path
from leader.pace import PAUSE, Bucket, Pace
from leader.session import check_attestation
from leader.timing import CONFIRMATIONS_PER_SESSION, Timing
from store import zookeeper as zk  # lazy: what an agent answers needs no kazoo
from store.bounded import BoundedFiles
from store.clock import Clock
from store.errors import NotFound, NotSent, StoreError
from store.outcome import Outcome

FIRST_CONNECTION = 0.5
"""Seconds that the very first lookup waits for ZooKeeper to be connected."""

SULK = 1.0
"""Seconds for which ZooKeeper is not asked after it did not answer in time."""

FILES_RATE, FILES_BURST = 20.0, 100.0
"""Lists a second, and in a row, of all jobs of one process."""

LEAST_ASKED = 3
"""So many times in an audit interval HDFS is asked at least about what ZooKeeper says nothing of."""


class Waker(msgspec.Struct, frozen=True):
    """Wakes a watching thread; equal to itself, so that a client keeps it once."""

    changed: threading.Event

    def __call__(self, _: "zk.Event | zk.Connection") -> None:
        """Something has changed."""
        self.changed.set()


class Fallback(Exception):  # no error: HDFS is asked
    """ZooKeeper will not do: the kind of reason, for counting, and a sentence."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(kind, sentence)
        self.kind = kind
        self.sentence = sentence


class Sources:
    """The stores that one reader asks about all its jobs, and what it may cost them."""

    def __init__(
        self,
        files: BoundedFiles,
        zookeeper: "zk.ZooKeeper | None",
        timing: Timing,
        audit: float,
        clock: Clock,
        dice: random.Random,
    ) -> None:
        """Ask nothing yet; for the arguments see :class:`leader.reader.Reader`."""
        self.files = files
        self.zookeeper = zookeeper
        self.timing = timing
        self.audit = audit
        self.clock = clock
        self.fallbacks: dict[str, int] = {}
        self._dice = dice
        self._allowance = Bucket(FILES_RATE, FILES_BURST)
        self._lock = threading.Lock()
        self._local = files.uri.startswith("file:")  # there is no NameNode that could be asked too often
        self._waited = False
        self._sulking_until = float("-inf")

    @property
    def connected(self) -> bool:
        """Whether there is a connection to ZooKeeper now."""
        return self.zookeeper is not None and self.zookeeper.state is zk.Connection.CONNECTED

    def spread(self, seconds: float) -> float:
        """Return about so many seconds: hosts that were told the same thing at once must not act at once."""
        return seconds * self._dice.uniform(0.8, 1.2)

    def phase(self, seconds: float) -> float:
        """Return at most so many seconds."""
        return self._dice.uniform(0.0, seconds)

    def get(self, job: str, timeout: float, watcher: Waker | None, *, hurried: bool = False) -> bytes:
        """Read ZooKeeper's record.

        Args:
            job: the job's name.
            timeout: seconds.
            watcher: told of the next change, if it is there.
            hurried: it has so little time that no answer says nothing about it.

        Raises:
            Fallback: there is none, or no answer.
        """
        assert self.zookeeper is not None, "only asked when there is one"
        if not self._waited:
            self.zookeeper.start()
            self.zookeeper.wait(min(timeout, FIRST_CONNECTION))
            self._waited = True
        if self.clock.now() < self._sulking_until:
            raise Fallback("error", "it did not answer a moment ago.")
        try:
            return self.zookeeper.call(zk.Get(leader_path(job), watcher), timeout)[0]
        except NotFound:
            raise Fallback("no_node", "it holds no record.") from None
        except StoreError as error:
            if not hurried:
                self._failed(error)
            raise Fallback("error", f"{error}") from error

    def answered(self) -> None:
        """ZooKeeper has answered somebody else of this process just now: it need not be left alone."""
        self._sulking_until = float("-inf")

    def attested(self, token: str, deadline: float) -> bool | None:
        """Whether ZooKeeper has the session node of that token; None if it does not say, now or a moment ago."""
        if self.clock.now() < self._sulking_until:
            return None
        steps = check_attestation(token)
        outcome: Outcome[Node | None] | None = None
        while True:
            try:
                command = next(steps) if outcome is None else steps.send(outcome)
            except StopIteration as stop:
                return bool(stop.value) if stop.value is not None else None
            share = self.timing.session_timeout / CONFIRMATIONS_PER_SESSION
            timeout = min(share, deadline - self.clock.now())
            outcome = self._node(command.path, timeout, read=isinstance(command, ReadNode))

    def _node(self, path: str, timeout: float, *, read: bool) -> Outcome[Node | None]:
        assert self.zookeeper is not None, "only asked when there is one"
        started = self.clock.now()
        try:
            if not read:
                self.zookeeper.call(zk.Sync(path), timeout)
                return Outcome(None, None, started, self.clock.now())
            data, stat = self.zookeeper.call(zk.Get(path), timeout)
            return Outcome(Node(data, stat.ephemeral_owner, stat.version), None, started, self.clock.now())
        except StoreError as error:
            if not isinstance(error, NotFound):
                self._failed(error)
            return Outcome(None, error, started, self.clock.now())

    def _failed(self, error: StoreError) -> None:
        if not isinstance(error, NotSent):
            self._sulking_until = self.clock.now() + SULK

    def new_pace(self) -> Pace:
        """Return how often HDFS is asked about one thing that ZooKeeper says nothing of."""
        return Pace(self.audit / LEAST_ASKED if self.zookeeper is not None else PAUSE)

    def due(self, pace: Pace) -> float:
        """Seconds from now until HDFS may be asked about a job; 0 if it may be now, and then it counts as asked."""
        if self._local:
            return 0.0
        with self._lock:
            now = self.clock.now()
            due = max(pace.due(now), self._allowance.due(now))
            if due <= 0:
                pace.asked(now)
                self._allowance.take(now)
            return due

    def fell_back(self, kind: str) -> None:
        """ZooKeeper would not do."""
        self.fallbacks[kind] = self.fallbacks.get(kind, 0) + 1

    def forked(self) -> None:
        """Any lock may be held by a thread that is not here."""
        self._lock = threading.Lock()

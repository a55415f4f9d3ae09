"""StoreClients: one reader's access to ZooKeeper and HDFS. They classify errors, and judge no answer."""

import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from leader.election.attestation import check_attestation
from leader.layout import tree
from leader.layout.information import LeaderInformation, Record
from leader.layout.names import LeaderDirectory
from leader.layout.znodes import Node, ReadNode, leader_path
from leader.lookup.rate_limit import Jitter
from leader.timing import CONFIRMATIONS_PER_SESSION, Timing
from store import zookeeper as zk  # lazy: an answer from an agent needs no kazoo
from store.bounded import BoundedFiles
from store.clock import Clock
from store.errors import DeadlineExceeded, NotFound, NotSent, StoreError
from store.outcome import Outcome

FIRST_CONNECTION_S = 0.5  # seconds that the first question waits for a connection to ZooKeeper
SHORT_DEADLINE_S = 0.3  # silence of a store for less than that many seconds is no evidence against it
ZOOKEEPER_BACK_OFF_S = 1.0  # seconds for which ZooKeeper is not asked after it did not answer in time
Reading = tuple[LeaderDirectory, Record]  # a reading of a job in HDFS


class LookupContext(msgspec.Struct, frozen=True):
    """Objects that all parts of one reader share."""

    timing: Timing  # all durations of the protocol
    audit: float  # seconds after which an answer of ZooKeeper is compared with HDFS
    clock: Clock  # the host's boot clock, unless in a simulation
    jitter: Jitter  # spreads the readers of many hosts over time


class Waker(msgspec.Struct, frozen=True):
    """Wakes a watching thread. Two wakers of one event are equal, so that a ZooKeeper client keeps it once."""

    changed: threading.Event

    def __call__(self, _: "zk.Event | zk.Connection") -> None:
        """Report that the watched node or the connection has changed."""
        self.changed.set()


class Candidate(NamedTuple):
    """A record of ZooKeeper that is to be believed once HDFS has said the same."""

    information: LeaderInformation  # what it says
    started: float  # boot-clock seconds before ZooKeeper was asked


class Fallback(msgspec.Struct, frozen=True):
    """The reason why a lookup asks HDFS in place of ZooKeeper."""

    reason: str  # for counting: none, error, no_node, undecodable, mismatch or unverified
    sentence: str  # for people
    candidate: Candidate | None = None  # ZooKeeper's record, if HDFS can confirm it


class StoreClients:
    """The stores of one reader. After a silence of ZooKeeper it backs off for a second."""

    def __init__(self, context: LookupContext, files: BoundedFiles, zookeeper: "zk.ZooKeeper | None") -> None:
        """Ask nothing yet; the caller closes the stores."""
        self._timing = context.timing
        self._clock = context.clock
        self._files = files
        self._zookeeper = zookeeper
        self._waited_for_connection = False
        self._zookeeper_back_off_until = float("-inf")
        self.fallbacks: dict[str, int] = {}  # how often HDFS was asked in ZooKeeper's place, by reason

    def count_fallback(self, reason: str) -> None:
        """Count a lookup that asks HDFS in ZooKeeper's place."""
        self.fallbacks[reason] = self.fallbacks.get(reason, 0) + 1

    @property
    def connected(self) -> bool:
        """Whether there is a connection to ZooKeeper now."""
        return self._zookeeper is not None and self._zookeeper.state is zk.Connection.CONNECTED

    # --- ZooKeeper

    def add_listener(self, listener: "Callable[[zk.Connection], None]") -> None:
        """Have ``listener`` called when the connection to ZooKeeper changes."""
        if self._zookeeper is not None:
            self._zookeeper.add_listener(listener)

    def remove_listener(self, listener: "Callable[[zk.Connection], None]") -> None:
        """Undo :meth:`add_listener`."""
        if self._zookeeper is not None:
            self._zookeeper.remove_listener(listener)

    def connect(self, timeout: float) -> None:
        """Connect to ZooKeeper; continue in the background if that takes longer than ``timeout`` seconds."""
        if self._zookeeper is not None:
            self._zookeeper.start()
            self._zookeeper.wait(timeout)

    def read_zookeeper(
        self, job: str, timeout: float, watcher: Waker | None, *, last_resort: bool = False
    ) -> bytes | Fallback:
        """Read the job's record, or return why HDFS must be asked. Its next change wakes ``watcher``."""
        # As a last resort even a ZooKeeper that did not answer a moment ago is asked: HDFS does not answer either.
        if self._zookeeper is None:
            return Fallback("none", "none is configured.")
        deadline = self._clock.now() + timeout
        if not self._waited_for_connection:
            self.connect(min(timeout, FIRST_CONNECTION_S))
            self._waited_for_connection = True
        if self._backs_off and not last_resort:
            return Fallback("error", "it did not answer a moment ago.")
        timeout = deadline - self._clock.now()
        try:
            return self._zookeeper.call(zk.Get(leader_path(job), watcher), timeout)[0]
        except NotFound:
            return Fallback("no_node", "it holds no record.")
        except StoreError as error:
            self._zookeeper_failed(error, timeout)
            return Fallback("error", f"{error}")

    def watch_node(self, path: str, watcher: "Callable[[zk.Event], None]", timeout: float) -> bool:
        """Tell ``watcher`` of the node's next change; returns whether the watch is set. An answer ends the back-off."""
        # Setting an equal watch again costs nothing: kazoo keeps equal watches once.
        if self._zookeeper is None or not self.connected:
            return False
        try:
            self._zookeeper.call(zk.Exists(path, watcher), timeout)
        except StoreError:
            return False
        self._zookeeper_back_off_until = float("-inf")
        return True

    def session_lives(self, token: str, deadline: float) -> bool | None:
        """Whether ZooKeeper has the session node of an attestation; None if it does not answer."""
        if self._backs_off:
            return None
        steps = check_attestation(token)
        outcome: Outcome[Node | None] | None = None
        while True:
            try:
                command = next(steps) if outcome is None else steps.send(outcome)
            except StopIteration as stop:
                return bool(stop.value) if stop.value is not None else None
            share = self._timing.session_timeout / CONFIRMATIONS_PER_SESSION
            timeout = min(share, deadline - self._clock.now())
            outcome = self._run_node(command.path, timeout, read=isinstance(command, ReadNode))

    def _run_node(self, path: str, timeout: float, *, read: bool) -> Outcome[Node | None]:
        assert self._zookeeper is not None, "only a connected ZooKeeper is asked for a session"
        started = self._clock.now()
        try:
            if not read:
                self._zookeeper.call(zk.Sync(path), timeout)
                return Outcome(None, None, started, self._clock.now())
            data, stat = self._zookeeper.call(zk.Get(path), timeout)
            return Outcome(Node(data, stat.ephemeral_owner, stat.version), None, started, self._clock.now())
        except StoreError as error:
            if not isinstance(error, NotFound):
                self._zookeeper_failed(error, timeout)
            return Outcome(None, error, started, self._clock.now())

    @property
    def _backs_off(self) -> bool:
        return self._clock.now() < self._zookeeper_back_off_until

    def _zookeeper_failed(self, error: StoreError, timeout: float) -> None:
        no_evidence = isinstance(error, DeadlineExceeded) and timeout <= SHORT_DEADLINE_S
        if not no_evidence and not isinstance(error, NotSent):
            self._zookeeper_back_off_until = self._clock.now() + ZOOKEEPER_BACK_OFF_S

    # --- HDFS

    def read_hdfs(self, job: str, directory: LeaderDirectory | None, timeout: float) -> Outcome[Reading]:
        """Read the job's leader directory and its record: one list if ``directory`` is still the present one."""
        return self._files.outcome("lookup", lambda driver: tree.read(driver, job, directory), timeout)

    def audit_hdfs(self, job: str, directory: LeaderDirectory | None, done: Callable[[Outcome[Reading]], None]) -> None:
        """Read the same in the background, and call ``done`` with the outcome on another thread."""
        timeout = self._timing.call_timeout
        self._files.submit("audit", lambda driver: tree.read(driver, job, directory), timeout, done)

"""The client: where is the job master, what is the newest checkpoint. For executors, tools and dashboards."""

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ha.agent.finding import SnapshotFinder
from ha.settings import Settings, load
from ha.stores import Stores
from leader.answers import Answer
from leader.errors import InvalidSettings
from leader.reader import Reader
from store.imports import will_import

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ha.history.opening import CheckpointLookups
    from ha.metrics.process import Metrics
    from leader.checkpoint import Checkpoint
    from leader.checkpoint_state import CheckpointState


class Client:
    """Answers lookups from any thread, each within its deadline; a forked child may go on using it.

    It takes what an agent of this host was told, as long as that is fresh; else it asks ZooKeeper, and else HDFS.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        registry: "CollectorRegistry | None" = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: all of them.
            registry: the program's own, to show there what the lookups do; None to count nothing.

        Raises:
            InvalidSettings: an address is not one, or the registry is another client's.
        """
        self.settings = settings
        metrics = _metrics(registry) if registry is not None else None
        self._stores = metrics.stores.open(settings) if metrics is not None else Stores(settings)
        place = self._stores.snapshots
        self._reader = Reader(
            self._stores.files,
            self._stores.zookeeper,
            self._stores.timing,
            audit=settings.audit,
            snapshots=SnapshotFinder(place, settings.audit) if place is not None else None,
        )
        self._lookups = self._stores.history.lookups(self._reader)
        if metrics is not None:
            self._lookups = metrics.lookups.lookups(self._lookups)
            metrics.lookups.fallbacks(self._reader)
        self._checkpoints: CheckpointLookups | None = None
        self._stopped = threading.Event()

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """Return who leads the job, within ``timeout`` seconds whatever is down.

        Args:
            job: the job's name.
            timeout: seconds, for all stores together.
            stale: if no store can be reached, return what was known last, marked as stale, instead of raising.

        Raises:
            InvalidName: that is not a job's name.
            NoLeader: the job has no leader now, or does not exist.
            Unreachable: no store answered in time.
        """
        return self._lookups.leader(job, timeout, stale=stale)

    def told(self, job: str, timeout: float = 2.0) -> Answer | None:
        """Return what an agent of this host was told, in microseconds; None if there is no agent, or nothing to go by.

        An agent that nobody has asked about this job lately has a fifth of ``timeout``, and 0.3 s at most, to find out.

        Raises:
            InvalidName, NoLeader: as in :meth:`leader`.
        """
        return self._reader.told(job, timeout)

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """Say that the leader of this session id refused to answer, and return who leads now, asked of HDFS.

        Raises:
            InvalidName, NoLeader, Unreachable: as in :meth:`leader`.
        """
        return self._lookups.report(job, session_id, timeout)

    def watch(self, job: str) -> Iterator[Answer | None]:
        """Yield the leader, then every true change; None when there is no leader. Ends when the client is closed."""
        return self._lookups.watch(job, self._stopped)

    def checkpoint(self, job: str, timeout: float = 2.0) -> "CheckpointState":
        """Return the job's next checkpoint id and each query's newest completed checkpoint; ZooKeeper is asked first.

        Raises:
            InvalidName, NoLeader, Unreachable: as in :meth:`leader`.
            Unreadable: HDFS was asked, and holds a name among the checkpoints that cannot be read.
        """
        if self._stores.zookeeper is not None:
            self._stores.zookeeper.start()  # lookups that an agent answers never do
        return (self._checkpoints or self._checkpoint_lookups()).checkpoint(job, timeout)

    def _checkpoint_lookups(self) -> "CheckpointLookups":
        will_import("leader.checkpoint_reader")
        from leader.checkpoint_reader import CheckpointReader  # noqa: PLC0415  # only who asks for them pays for it

        # No lock, which a forked child might find held: the first of several threads wins.
        reader = CheckpointReader(self._stores.files, self._stores.zookeeper, self._reader)
        made: CheckpointLookups = self.__dict__.setdefault("_made", self._stores.history.checkpoint_lookups(reader))
        self._checkpoints = made
        return made

    def checkpoints(self, job: str, timeout: float = 2.0) -> "dict[str, list[Checkpoint]]":
        """Return all completed checkpoints that HDFS holds, by query, the newest one last.

        Raises:
            InvalidName, NoLeader, Unreachable, Unreadable: as in :meth:`checkpoint`.
        """
        return (self._checkpoints or self._checkpoint_lookups()).retained(job, timeout)

    def close(self) -> None:
        """End all watches and let go of the stores."""
        self._stopped.set()
        self._stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(registry: "CollectorRegistry | None" = None, /, **settings: Any) -> Client:
    """Return a client; settings come from the arguments, the environment and ``ha.toml``, in this order.

    Args:
        registry: of ``prometheus_client``, to show there what its lookups and stores do; one client a registry.
        settings: see the README.

    Raises:
        InvalidSettings: one of them is wrong; the message says which.
    """
    return Client(load(settings), registry=registry)


def _metrics(registry: "CollectorRegistry") -> "Metrics":
    from ha.metrics.process import Metrics  # noqa: PLC0415  # only who shows them pays for prometheus_client

    try:
        return Metrics(registry)
    except ValueError as error:
        raise InvalidSettings(
            "The registry has the metrics of another client: let the program share that one, or give each a registry."
        ) from error

"""The client: finds the leader of a job and its newest checkpoints. For executors, tools and dashboards."""

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ha.agent.finder import SnapshotFinder
from ha.agent.processes import processes_of
from ha.config.settings import Settings
from ha.config.sources import load
from ha.config.stores import Stores
from leader.errors import InvalidSettings
from leader.lookup.answers import Answer
from leader.lookup.observed import observed
from leader.lookup.reader import Reader
from leader.observer import fan_out
from store.lazy_imports import will_import

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ha.metrics.process_metrics import Metrics
    from leader.layout.checkpoint import Checkpoint
    from leader.layout.checkpoint_state import CheckpointState
    from leader.lookup.checkpoint_reader import CheckpointReader


class Client:
    """Finds leaders and checkpoints, from any thread, each within its time-out; a forked child may go on using it.

    It asks the agent of this host first, then ZooKeeper, then HDFS, until one of them answers.

    Raises:
        InvalidName: what was given is not a job's name.
        NoLeader: the job has no leader now, or does not exist.
        Unreachable: no store answered in time.
    """

    def __init__(self, settings: Settings, *, registry: "CollectorRegistry | None" = None) -> None:
        """Connect to nothing yet.

        Args:
            settings: all settings.
            registry: the program's own, to count lookups and calls of stores there; None to count nothing.

        Raises:
            InvalidSettings: an address is not one, or the registry has the metrics of another client.
        """
        self.settings = settings
        metrics = _metrics(registry) if registry is not None else None
        self._stores = Stores(settings)
        if metrics is not None:
            metrics.stores.show(self._stores.files, self._stores.zookeeper)
        place = self._stores.snapshots
        self._reader = Reader(
            self._stores.files,
            self._stores.zookeeper,
            self._stores.timing,
            audit=settings.leadership.audit,
            snapshots=SnapshotFinder(place, settings.leadership.audit) if place is not None else None,
            processes=processes_of(settings),
        )
        counts = None
        if metrics is not None:
            metrics.lookups.show_fallbacks(self._reader)
            counts = metrics.lookups.observe
        self._lookups = observed(self._reader, fan_out(self._stores.history.reader(), counts))
        self._checkpoint_readers: dict[str, CheckpointReader] = {}
        self._stopped = threading.Event()

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """Return who leads the job, within ``timeout`` seconds whatever is down.

        If this client knew a leader and there is none now, it waits for the next one within its time-out.

        Args:
            job: name of the job.
            timeout: seconds, for all stores together.
            stale: if no store can be reached, return the last known answer, marked as stale, instead of raising.
        """
        return self._lookups.leader(job, timeout, stale=stale)

    def cached_leader(self, job: str, timeout: float = 2.0) -> Answer | None:
        """Return what the agent of this host says, within microseconds; None without an agent, or if it does not know.

        An agent that was not asked about this job lately gets 0.2 ``timeout``, at most 0.3 s. No store is asked.
        """
        return self._reader.cached_leader(job, timeout)

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """Report that the leader of this session refused or did not answer; return who leads now, as HDFS says."""
        return self._lookups.report(job, session_id, timeout)

    def watch(self, job: str) -> Iterator[Answer | None]:
        """Yield the leader, then every change, with None when there is no leader; ends when the client is closed."""
        return self._lookups.watch(job, self._stopped)

    def checkpoint(self, job: str, timeout: float = 2.0) -> "CheckpointState":
        """Return the job's next checkpoint id and each query's newest completed checkpoint, within ``timeout`` seconds.

        ZooKeeper is asked first, then HDFS.

        Raises:
            Unreadable: HDFS was asked, and holds a name among the checkpoints that cannot be read.
        """
        if self._stores.zookeeper is not None:
            self._stores.zookeeper.start()  # lookups that an agent answers never do
        return self._checkpoint_reader().checkpoint(job, timeout)

    def checkpoints(self, job: str, timeout: float = 2.0) -> "dict[str, list[Checkpoint]]":
        """Return all completed checkpoints that HDFS holds, by query, the newest one last.

        Raises:
            Unreadable: as in :meth:`checkpoint`.
        """
        return self._checkpoint_reader().retained(job, timeout)

    def _checkpoint_reader(self) -> "CheckpointReader":
        made = self._checkpoint_readers.get("made")
        if made is None:
            will_import("leader.lookup.checkpoint_reader")
            from leader.lookup.checkpoint_reader import CheckpointReader  # noqa: PLC0415  # few programs need it

            observer = self._stores.history.reader()
            made = CheckpointReader(self._stores.files, self._stores.zookeeper, self._reader, observer=observer)
            # Of several threads the first one wins. A lock might be held for ever in a forked child.
            made = self._checkpoint_readers.setdefault("made", made)
        return made

    def close(self) -> None:
        """End all watches and close the stores."""
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
        registry: a registry of ``prometheus_client``, to count the client's lookups there, and all calls of stores of
            the process; one client a registry.
        settings: by name; see the reference of settings.

    Raises:
        InvalidSettings: a setting is wrong, or the registry has the metrics of another client; the message says which.
    """
    return Client(load(settings), registry=registry)


def _metrics(registry: "CollectorRegistry") -> "Metrics":
    from ha.metrics.process_metrics import Metrics  # noqa: PLC0415  # only programs with metrics pay for prometheus_client

    try:
        return Metrics(registry)
    except ValueError as error:
        raise InvalidSettings(
            "The registry has the metrics of another client: share that client, or give each client its own registry."
        ) from error

"""Leadership as a program holds it."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import closing

from ha.jobmaster.verdict import Verdict, check
from ha.moves import Moves
from ha.publishing import publish, staged_path
from ha.stores import Stores
from leader.checkpoint_state import CheckpointState, encode
from leader.checkpoints import Checkpoints
from leader.cleanup import Cleanup
from leader.copy import Copy
from leader.errors import Fenced, InvalidName, NotLeader
from leader.graph import Graph
from leader.names import BLOBS, LeaderDirectory
from leader.nodes import checkpoints_path
from leader.own import OwnDirectory
from leader.queries import Queries
from leader.results import Results
from leader.runtime import Runtime
from leader.shelf import Shelf
from leader.status import JobStatus

_log = logging.getLogger("ha")


class Leadership:
    """One leadership of one job: it begins before you get it, and ends for ever.

    It does NOT promise that code already running stops in time when this process was paused: what it writes below
    :meth:`path` is refused by the store then, and nothing else can be.

    Attributes:
        job: the job's name.
        epoch: of this leadership.
        session_id: of this leadership.
        directory: the leader directory's URI.
        checkpoints: the id counter and the completed checkpoints; :class:`leader.checkpoints.Checkpoints`.
        status: the job's state; :class:`leader.status.JobStatus`.
        graph: what is to be run, in versions; :class:`leader.graph.Graph`.
        results: how what was run has ended; :class:`leader.results.Results`.
        blobs: small files by name; :class:`leader.shelf.Shelf`.
        cleanup: what a job that has ended leaves, into the trash and out of it; :class:`leader.cleanup.Cleanup`.
        queries: their checkpoint directories, into the trash and out of it; :class:`leader.queries.Queries`.
    """

    def __init__(
        self,
        job: str,
        directory: LeaderDirectory,
        stores: Stores,
        runtime: Runtime,
        is_leader: Callable[[], bool],
        copy: Copy | None = None,
    ) -> None:
        """Hold what was granted to this process; ``copy`` is that of its checkpoints in ZooKeeper, if there is one."""
        self.job = job
        self.epoch = directory.epoch
        self.session_id = directory.session_id
        self.directory = f"{stores.settings.files.rstrip('/')}/{job}/{directory.name}"
        self.checkpoints = stores.history.checkpoints(
            job,
            directory.epoch,
            Checkpoints(
                stores.files,
                job,
                directory,
                stores.timing.call_timeout,
                changed=self._copy_checkpoints,
                retained=stores.settings.checkpoints_retained,
            ),
        )
        self._own = OwnDirectory(stores.files, job, directory, stores.timing.call_timeout)
        self.status = JobStatus(self._own)
        self.graph = Graph(self._own)
        self.results = Results(self._own)
        self.blobs = Shelf(self._own, BLOBS, "a blob")
        self.cleanup = Cleanup(self._own)
        self.queries = Queries(self._own)
        self._runtime = runtime
        self._copy = copy or copy_of_checkpoints(runtime, job)
        self._is_leader = is_leader
        self._revoked = threading.Event()
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @property
    def own(self) -> OwnDirectory:
        """Its directory as a store, for this package's own modules."""
        return self._own

    def is_leader(self) -> bool:
        """Whether this process leads now: a comparison with the clock, nobody is asked."""
        return not self._revoked.is_set() and self._is_leader()

    def check(self, session_id: str | None, epoch: str | int | None) -> Verdict:
        """Say whether a request to this process that names a session id and an epoch is meant for this leadership.

        Ask :meth:`is_leader` again before you answer it; :func:`ha.jobmaster.guarded` does both.
        """
        return check(self, session_id, epoch)

    def path(self, relative: str) -> str:
        """Return the URI of a path below the leader directory: once another leads, nothing can be written there.

        Raises:
            InvalidName: the path is absolute or leads out of the directory.
        """
        parts = relative.split("/")
        if not relative or any(part in ("", ".", "..") for part in parts):
            raise InvalidName(f"{relative!r} is not a path below the leader directory: give one like 'spark/orders'.")
        return f"{self.directory}/{relative}"

    def names(self, relative: str) -> list[str]:
        """Return the names in a directory below the leader directory; none if it does not exist.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: as in :meth:`path`.
            StoreError: the store did not answer.
        """
        self.path(relative)  # raises if it is not one
        return [entry.name for entry in self._own.list(relative)]

    def publish(self, staged: str, final: str) -> bool:
        """Move a file or a directory from below :meth:`path` to where it is read: whole, once, not at all if fenced.

        If there is something at ``final`` already, that stays, and what was staged is dropped. Folders above ``final``
        are made. For batches of a streaming query there is :class:`ha.spark.Output`.

        Args:
            staged: its URI, such as ``leadership.path("work/report")``; nobody may be writing there any more.
            final: a URI in the same file system, not in a job's directory.

        Returns:
            Whether it was published now, and not before.

        Raises:
            Fenced: another leader has taken over; nothing was published.
            InvalidName: ``staged`` is not below the leader directory, or is the protocol's own.
            InvalidSettings: no rename leads to ``final``.
            NotFound: nothing is staged there.
            StoreError: it stayed unknown whether it was published.
        """
        relative = staged_path(self, staged)
        with closing(Moves(self, final)) as moves:
            return publish(moves, relative, self._own.staging())

    def fenced_by(self) -> Fenced | None:
        """Ask HDFS whether another leader has taken over; return the error that says who, or None if nobody has.

        Raises:
            StoreError: HDFS did not answer, or has no such job any more.
        """
        return self._own.fenced_by()

    def on_revoked(self, callback: Callable[[], object]) -> None:
        """Have this called when the leadership ends, last one first; at once if it has ended already.

        It runs on a thread of its own, and should return within the setting ``stop_margin``.
        """
        with self._lock:
            if not self._revoked.is_set():
                self._callbacks.append(callback)
                return
        _call(callback)

    def confirm(self, endpoints: Mapping[str, str]) -> None:
        """Publish these endpoints instead of the present ones; returns when HDFS holds them.

        Raises:
            InvalidName: a name or an address cannot be stored.
            NotLeader: the leadership is over, or is the sidecar's.
            Unreachable: HDFS did not take them in time.
        """
        del endpoints
        raise NotLeader(f"The endpoints of job {self.job!r} are the sidecar's: give them to `ha run --endpoint`.")

    def resign(self) -> None:
        """Give the leadership up, so that a standby takes over; returns when the job is free.

        Raises:
            NotLeader: the leadership is the sidecar's.
        """
        raise NotLeader(f"Job {self.job!r} is led by the sidecar: `ha resign {self.job}` asks it.")

    def _copy_checkpoints(self, state: CheckpointState) -> None:
        self._runtime.post(lambda: None if self._revoked.is_set() else self._copy.want(encode(state)))

    def end(self) -> None:
        """The leadership is over: have everybody called who asked for it."""
        with self._lock:
            self._revoked.set()
            callbacks, self._callbacks = self._callbacks, []
        self._runtime.post(lambda: self._copy.want(None))  # whatever is published from now on is not copied
        for callback in reversed(callbacks):
            _call(callback)


def copy_of_checkpoints(runtime: Runtime, job: str) -> Copy:
    """Return one for all of a process's leaderships of a job: a runtime never forgets a copy."""
    copy = Copy(runtime, checkpoints_path(job))
    runtime.attach(copy)
    return copy


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:  # noqa: BLE001  # whatever it is, the leadership has ended
        _log.exception("A callback of on_revoked failed.")

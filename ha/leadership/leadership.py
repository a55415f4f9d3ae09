"""Leadership: the object through which a program leads a job."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Protocol

from ha.config.stores import Stores
from ha.jobmaster.verdict import Verdict, check
from ha.leadership.fenced_rename import PATIENCE_S, FencedRename, staged_path
from ha.program import end_file, failure_notes
from leader.contender.mirror_runner import MirrorRunner
from leader.contender.runtime import Runtime
from leader.errors import Fenced, InvalidName, NotLeader
from leader.job.checkpoints import Checkpoints
from leader.job.cleanup import Cleanup
from leader.job.exceptions import Exceptions
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.results import Results
from leader.job.status import JobStatus
from leader.job.versioned_files import VersionedFiles, graph_of
from leader.layout.checkpoint_state import CheckpointState, encode
from leader.layout.information import check_endpoints
from leader.layout.names import BLOBS, LeaderDirectory
from leader.layout.znodes import checkpoints_path
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import StoreError

KEEP_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)  # between the tries to keep a failure
KEEP_TIMEOUT_S = 3.0  # longest wait of a block's end until its failures are kept; a sidecar keeps later what is left

_log = logging.getLogger("ha")


class Holder(Protocol):
    """Holder of a lease: this process itself, or the sidecar that supervises it."""

    def is_leader(self) -> bool:
        """Whether the holder leads now; does not ask a store."""

    def confirm(self, endpoints: dict[str, str]) -> None:
        """Publish other endpoints, as :meth:`Leadership.confirm` promises."""

    def resign(self) -> None:
        """Give the lease back, as :meth:`Leadership.resign` promises."""


class SidecarHolder:
    """The sidecar holds the lease: the program that it supervises can neither publish endpoints nor resign."""

    def __init__(self, job: str, is_leader: Callable[[], bool]) -> None:
        """Prepare; ``is_leader`` tells whether the sidecar leads now."""
        self._job = job
        self.is_leader = is_leader

    def confirm(self, endpoints: dict[str, str]) -> None:
        """Refuse."""
        del endpoints
        raise NotLeader(f"The sidecar publishes the endpoints of job {self._job!r}: give them to `ha run --endpoint`.")

    def resign(self) -> None:
        """Refuse."""
        raise NotLeader(f"The sidecar leads job {self._job!r}: ask it with `ha job handover {self._job}`.")


class Leadership:
    """One leadership of one job: it has begun when a program gets it, and ends for ever.

    It does NOT promise that running code stops in time if this process was paused. Once another process leads, the
    store refuses everything that such code writes below :meth:`path`, and nothing else.

    Attributes:
        job: name of the job.
        epoch: number of this leadership, higher than that of all before it.
        session_id: id of this leadership.
        directory: URI of the leader directory.
        checkpoints: the id counter and the completed checkpoints; :class:`leader.job.checkpoints.Checkpoints`.
        status: the job's state; :class:`leader.job.status.JobStatus`.
        graph: description of what the job runs, with versions; :class:`leader.job.versioned_files.VersionedFile`.
        results: how the job and its parts have ended; :class:`leader.job.results.Results`.
        exceptions: the newest failures of the job, of all leaders; :class:`leader.job.exceptions.Exceptions`.
        blobs: small files by name, with versions; :class:`leader.job.versioned_files.VersionedFiles`.
        cleanup: moves the leavings of a job that has ended to the trash, and back;
            :class:`leader.job.cleanup.Cleanup`.
        queries: moves the checkpoint directories of queries to the trash, and back;
            :class:`leader.job.query_checkpoints.QueryCheckpoints`.
    """

    def __init__(
        self,
        job: str,
        directory: LeaderDirectory,
        stores: Stores,
        runtime: Runtime,
        holder: Holder,
        mirror: MirrorRunner | None = None,
    ) -> None:
        """Begin a leadership that was granted."""
        # The caller closes the stores. The runtime runs the mirror of the checkpoints in ZooKeeper; `mirror` is that of
        # the job, if this process has one already.
        self.job = job
        self.epoch = directory.epoch
        self.session_id = directory.session_id
        self.directory = stores.directory_uri(job, directory)
        self._stores = stores
        self.own = FencedDirectory(stores.files, job, directory, stores.timing.call_timeout)
        """The leader directory as a store; for modules of this package."""
        self.checkpoints = Checkpoints(
            self.own,
            changed=self._mirror_checkpoints,
            retained=stores.settings.command.checkpoints_retained,
            observer=stores.history.observer,
            patience=PATIENCE_S,
        )
        self.status = JobStatus(self.own)
        self.graph = graph_of(self.own)
        self.results = Results(self.own)
        self.exceptions = Exceptions(self.own)
        self.blobs = VersionedFiles(self.own, BLOBS, "a blob")
        self.cleanup = Cleanup(self.own)
        self.queries = QueryCheckpoints(self.own)
        self._runtime = runtime
        self._mirror = mirror or mirror_of_checkpoints(runtime, job)
        self._holder = holder
        self._revoked = threading.Event()
        self._keeping: list[threading.Thread] = []
        self.finished = False
        """Whether :meth:`finish` was called, for modules of this package."""
        self.settling = threading.Event()
        """Set while the queries are stopped in order, for modules of this package: no output begins a batch then."""
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def open_files(self, uri: str, workers: int = 8) -> BoundedFiles:
        """Open one directory as the settings say; its calls are counted, too. For modules of this package."""
        return self._stores.open_root(uri, workers=workers)

    def keep_failure(self, kind: str, message: str, *, query: str = "", trace: str = "") -> None:
        """Keep a failure among the job's exceptions, on a thread of its own. For modules of this package.

        A store that is away makes queries fail: so there are some tries, in half a minute. A failure whose outcome is
        unknown is rather kept twice than never. Until it is kept, a note for the sidecar outlives this process.
        """
        noted = isinstance(self._holder, SidecarHolder)
        note = failure_notes.make(failure_notes.Note(kind, message, query, trace)) if noted else None

        def keep() -> None:
            for pause in (*KEEP_PAUSES_S, None):
                try:
                    self.exceptions.add(kind, message, query=query, trace=trace)
                    failure_notes.drop(note)
                except (StoreError, NotLeader) as error:
                    if pause is not None and isinstance(error, StoreError) and not self._revoked.wait(pause):
                        continue
                    _log.warning("%s: a failure is not kept for `ha job exceptions`: %s", self.job, error)
                return

        thread = threading.Thread(target=keep, name="ha-exceptions", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # with a note, the sidecar keeps it after this process's end
            _log.warning("%s: a failure is not kept for `ha job exceptions` now: %s", self.job, error)
        self._keeping = [*filter(threading.Thread.is_alive, self._keeping), *([thread] if thread.ident else [])]

    def await_failures(self) -> None:
        """Wait until the failures are kept, or that takes too long. For modules of this package."""
        deadline = now() + KEEP_TIMEOUT_S
        for each in self._keeping:
            each.join(max(0.0, deadline - now()))

    def finish(self) -> None:
        """Say that the job has finished when the block is left, whatever its queries do then.

        Without this an exit code of 0 is no success while a query has failed or is still active, or if none was
        started: the job goes on by its restart strategy. A program that does not run under ``ha run`` needs no call.
        """
        self.finished = True
        if isinstance(self._holder, SidecarHolder):
            end_file.tell(end_file.End())

    def is_leader(self) -> bool:
        """Whether this process leads now: a comparison with the clock that asks no store."""
        return not self._revoked.is_set() and self._holder.is_leader()

    def check(self, session_id: str | None, epoch: str | int | None) -> Verdict:
        """Check whether a request to this process is meant for this leadership.

        Ask :meth:`is_leader` again before you answer the request; :func:`ha.jobmaster.guarded` does both.

        Args:
            session_id: the session id in the request; None if it has none.
            epoch: the epoch in the request; None if it has none.
        """
        return check(self, session_id, epoch)

    def path(self, relative: str) -> str:
        """Return the URI of a path below the leader directory, where nothing can be written once another process leads.

        Raises:
            InvalidName: the path is absolute or leads out of the directory.
        """
        parts = relative.split("/")
        if not relative or any(part in ("", ".", "..") for part in parts):
            raise InvalidName(f"{relative!r} is not a path below the leader directory: give one like 'spark/orders'.")
        return f"{self.directory}/{relative}"

    def names(self, relative: str) -> list[str]:
        """Return the names in a directory below the leader directory; none if there is no such directory.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the path is absolute or leads out of the leader directory.
            StoreError: the store did not answer.
        """
        self.path(relative)  # raises if it is not below the directory
        return [entry.name for entry in self.own.list(relative)]

    def publish(self, staged: str, final: str) -> bool:
        """Move a file or directory from below :meth:`path` to its readers: as a whole, once, and never when fenced.

        If ``final`` exists, it stays, and the staged data is dropped. Missing folders above ``final`` are created. For
        the batches of a streaming query use :class:`ha.spark.Output`.

        Args:
            staged: its URI, such as ``leadership.path("work/report")``; nothing may write there any more.
            final: a URI in the same file system, outside the directories of jobs.

        Returns:
            Whether it was published now, and not before.

        Raises:
            Fenced: another leader has taken over; nothing was published.
            InvalidName: ``staged`` is not below the leader directory, or belongs to the protocol.
            InvalidSettings: no rename leads to ``final``.
            NotFound: there is nothing at ``staged``.
            StoreError: it is not known whether it was published.
        """
        relative = staged_path(self, staged)
        with closing(FencedRename(self, final)) as renames:
            return renames.publish(relative, self.own.staging())

    def fenced_by(self) -> Fenced | None:
        """Ask HDFS for a new leader; return the error that names it, or None if this one still leads.

        Raises:
            StoreError: HDFS did not answer, or has no such job any more.
        """
        return self.own.fenced_by()

    def on_revoked(self, callback: Callable[[], object]) -> None:
        """Register a function to be called when the leadership ends; at once if it has ended already.

        The functions run on a thread of their own, the last registered first, and should return in ``stop_margin``.
        """
        with self._lock:
            if not self._revoked.is_set():
                self._callbacks.append(callback)
                return
        _call(callback)

    def confirm(self, endpoints: Mapping[str, str]) -> None:
        """Replace the published endpoints; returns when HDFS holds them.

        Args:
            endpoints: address by name.

        Raises:
            InvalidName: a name or an address cannot be stored.
            NotLeader: the leadership is over, or the sidecar publishes the endpoints.
            Unreachable: HDFS did not take them in time.
        """
        self._holder.confirm(check_endpoints(endpoints))

    def resign(self) -> None:
        """Give up the leadership so that a standby takes over; returns when the lease is free.

        Raises:
            NotLeader: the sidecar holds the lease.
        """
        self._holder.resign()

    def end(self) -> None:
        """End the leadership in this process: call every function that was registered with :meth:`on_revoked`."""
        with self._lock:
            self._revoked.set()
            callbacks, self._callbacks = self._callbacks, []
        self._runtime.post(lambda: self._mirror.want(None))  # later publications are not mirrored
        for callback in reversed(callbacks):
            _call(callback)

    def _mirror_checkpoints(self, state: CheckpointState) -> None:
        self._runtime.post(lambda: None if self._revoked.is_set() else self._mirror.want(encode(state)))


def mirror_of_checkpoints(runtime: Runtime, job: str) -> MirrorRunner:
    """Return one mirror for all leaderships of a job in this process, because a runtime never forgets a mirror."""
    mirror = MirrorRunner(runtime, checkpoints_path(job))
    runtime.attach(mirror)
    return mirror


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:  # noqa: BLE001  # the leadership has ended, whatever the error is
        _log.exception("A callback of on_revoked failed.")

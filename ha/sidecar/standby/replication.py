"""Replication by a sidecar that does not lead: `ha replica run` in a process of its own, with the lowest priority.

Each sidecar of the job that stands by has one. The leader of the replica does the work; the others wait to take over. A
sidecar that is granted the job ends its own first: the job's host has other work then. Before it runs the command it
looks whether the replica was promoted, so that a cluster which comes back does not run the job a second time.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path

from prometheus_client import CollectorRegistry

from ha.config.settings import Settings
from ha.daemon.process import ContendingProcess
from ha.hosts.background import in_background
from ha.metrics.standby import ReplicationFile
from ha.sidecar.command.run_directory import RunDirectory
from ha.spark.replication import report
from leader.errors import NotLeader
from leader.job.fenced_directory import FencedDirectory
from store.errors import StoreError

METRICS = "replica.prom"  # the file beside the sidecar's own in which the replicator keeps its metrics
LOOK_S = 0.5  # between two looks whether this sidecar still does not lead
SETTLED_S = 3.0  # a sidecar that has just begun, or just lost the job, may be granted it in a moment
AGAIN_S = 60.0  # between two replicators: the other side may have been promoted, or set up only now
STDERR = 2  # what it says belongs to the sidecar's log, not to the output of the job's command
STOP_S = 10.0  # time to give the lease of the replica back
_log = logging.getLogger("ha")


class Replication:
    """The replicator of one job beside one sidecar."""

    def __init__(self, settings: Settings, job: str, registry: CollectorRegistry, standby: Callable[[], bool]) -> None:
        """Begin with nothing; ``standby`` says whether the sidecar does not lead."""
        self._settings, self._job, self._registry, self._standby = settings, job, registry, standby
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Replicate on a thread of its own, if that was asked for."""
        if not self._settings.standby.replicate_to:
            return
        if find_spec("pyarrow") is None:
            _log.warning("%s: replicate_to needs pyarrow: pip install 'hybrid-ha[spark]'.", self._job)
            return
        self._thread = threading.Thread(target=self._run, name="ha-replication", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the replication; the lease of the replica is given back."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(2 * STOP_S)

    def _run(self) -> None:
        with ExitStack() as stack:
            directory: RunDirectory | None = None
            while not self._closing.wait(SETTLED_S if self._standby() else LOOK_S):
                try:
                    if directory is None:
                        directory = stack.enter_context(closing(RunDirectory()))
                        ReplicationFile(self._registry, directory.path / METRICS)
                    directory.make()
                    went_well = not self._standby() or self._replicate(directory.path / METRICS)
                except OSError as error:
                    went_well = False
                    _log.warning("%s: the replication cannot be started: %s.", self._job, error.strerror or error)
                if not went_well:
                    self._closing.wait(AGAIN_S)

    def _replicate(self, path: Path) -> bool:
        """Have it done for as long as this sidecar stands by; returns whether that, and no failure, was the end."""
        with ExitStack() as stack:
            child = stack.enter_context(self._started(path))
            stack.callback(_end, child)
            while child.poll() is None:
                if self._closing.wait(LOOK_S) or not self._standby():
                    return True
        _log.warning("%s: the replication has ended with exit code %s, see above.", self._job, child.returncode)
        return False

    def _started(self, path: Path) -> "subprocess.Popen[bytes]":
        settings = self._settings
        command = [
            sys.executable,
            "-P",
            "-m",
            "ha.cli",
            "replica",
            "run",
            self._job,
            "--to",
            settings.standby.replicate_to,
        ]
        command += ["--metrics-file", str(path), "--quiet"]
        if settings.standby.replicate_rate:
            command += ["--rate", str(settings.standby.replicate_rate)]
        own = {
            "HA_FILES": settings.stores.files,
            "HA_ZOOKEEPER": settings.stores.zookeeper,
            "HA_CONTENDER": settings.leadership.contender,
            "HA_HISTORY": "",
        }
        return subprocess.Popen(
            command, env={**os.environ, **own}, stdin=subprocess.DEVNULL, stdout=STDERR,
            preexec_fn=in_background,  # noqa: PLW1509
        )  # fmt: skip


def promoted_away(process: ContendingProcess, job: FencedDirectory) -> bool:
    """Whether a job runs where it was replicated to. If that side does not answer in time, it is to run here."""
    to = process.settings.standby.replicate_to
    if not to:
        return False
    try:
        with process.stores.open(to) as there:
            return report.promoted_away(there, job, process.stores.timing.call_timeout)
    except (StoreError, NotLeader) as error:
        _log.warning("%s: it runs, although nobody says whether it was promoted at %s: %s", job.job, to, error)
        return False


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()

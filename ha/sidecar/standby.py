"""Standby: what a sidecar that does not lead does with its job's checkpoints: it verifies and replicates them.

Each is a command in a process of its own, with the lowest priority. So a large checkpoint slows down neither lookups
nor the election, and takes memory only for the time of a verification.

Each sidecar of the job that stands by has a replicator. The leader of the replica does the work; the others wait to
take over. A sidecar that is granted the job ends its own first: the job's host has other work then. Before it runs the
command it looks whether the replica was promoted, so that a cluster which comes back does not run the job a second
time.
"""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from ha.config.settings import Settings
from ha.daemon.process import ContendingProcess
from ha.hosts.background import in_background
from ha.metrics.standby import QueryVerified, ReplicationFile, VerificationMetrics
from ha.sidecar.command.run_directory import RunDirectory
from ha.spark.replication import report
from leader.errors import NotLeader
from leader.job.fenced_directory import FencedDirectory
from store.errors import StoreError

RATE = 50  # most calls of the store in a second, as the documentation of the setting says
LIMIT_S = 3600.0  # time after which a verification is given up: 180,000 calls
DAMAGED = 1  # exit code of `ha checkpoint verify` that has found damage; 0 if all is well
NO_JOB = 3  # the same if there is no such job yet

METRICS = "replica.prom"  # the file beside the sidecar's own in which the replicator keeps its metrics
LOOK_S = 0.5  # between two looks whether this sidecar still does not lead
SETTLED_S = 3.0  # a sidecar that has just begun, or just lost the job, may be granted it in a moment
AGAIN_S = 60.0  # between two replicators: the other side may have been promoted, or set up only now
STDERR = 2  # what it says belongs to the sidecar's log, not to the output of the job's command
STOP_S = 10.0  # time to give the lease of the replica back

HA = (sys.executable, "-P", "-m", "ha.cli")

_log = logging.getLogger("ha")


class Verification:
    """The verifications of one job by one sidecar."""

    def __init__(self, settings: Settings, job: str, registry: CollectorRegistry, standby: Callable[[], bool]) -> None:
        """Begin with nothing; ``standby`` says whether the sidecar does not lead."""
        self._settings, self._job, self._standby = settings, job, standby
        self._metrics = VerificationMetrics(registry, job, standby)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._told: set[str] = set()

    def begin(self) -> None:
        """Verify on a thread of its own, if that was asked for: first at a random time, as other sidecars do."""
        if not self._settings.standby.verify_interval:
            return
        if _can_run(self._job, "verify_interval"):
            threading.Thread(target=self._run, name="ha-verification", daemon=True).start()

    def close(self) -> None:
        """Stop verifying."""
        self._closing.set()
        with self._lock:
            if self._child is not None:
                self._child.kill()

    def _run(self) -> None:
        interval = self._settings.standby.verify_interval
        if self._closing.wait(random.random() * interval):  # noqa: S311  # spreads the sidecars
            return
        while True:
            if self._standby():
                try:
                    self.verify()
                except Exception:  # noqa: BLE001  # without this thread nothing would be verified any more
                    _log.exception("%s: the checkpoints could not be verified.", self._job)
            if self._closing.wait(interval):
                return

    def verify(self) -> None:
        """Verify once; what goes wrong is logged."""
        command = [*HA, "checkpoint", "verify", self._job, "--json", "--rate", f"{RATE}"]
        with self._lock:
            if self._closing.is_set():
                return
            try:
                self._child = child = subprocess.Popen(
                    command, env=_environment(self._settings), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, preexec_fn=in_background,  # noqa: PLW1509
                )  # fmt: skip
            except OSError as error:
                _log.warning("%s: the checkpoints could not be verified: %s.", self._job, error.strerror or error)
                return
        try:
            said, why = child.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            _log.warning("%s: the checkpoints were not verified within %g s.", self._job, LIMIT_S)
            return
        if child.returncode in (0, DAMAGED) and said:
            self._take(json.loads(said))
        elif child.returncode != NO_JOB and not self._closing.is_set():
            line = why.decode(errors="replace").strip().rpartition("\n")[2]
            _log.warning("%s: the checkpoints could not be verified: %s", self._job, line)

    def _take(self, rows: list[dict[str, Any]]) -> None:
        self._metrics.found({row["query"]: verified(row["batches"]) for row in rows})
        holes = {f"{row['query']}: {each['missing']}" for row in rows for each in row["batches"] if _is_damaged(each)}
        for hole in sorted(holes - self._told):
            _log.error("%s: a checkpoint is damaged, see `ha checkpoint verify %s`. %s", self._job, self._job, hole)
        self._told = holes


def verified(batches: list[Mapping[str, Any]]) -> QueryVerified:
    """Sum up what `ha checkpoint verify --json` says of one query; a query without a batch needs nothing."""
    damaged = [each for each in batches if _is_damaged(each)]
    newest = not batches or batches[-1] not in damaged
    return QueryVerified(len(damaged), len({each["missing"] for each in damaged}), newest)


def _is_damaged(batch: Mapping[str, Any]) -> bool:
    return batch["condition"] in ("damaged", "altered")


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
        if _can_run(self._job, "replicate_to"):
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
        command = [*HA, "replica", "run", self._job, "--to", settings.standby.replicate_to]
        command += ["--metrics-file", str(path), "--quiet"]
        if settings.standby.replicate_rate:
            command += ["--rate", str(settings.standby.replicate_rate)]
        environment = {**_environment(settings), "HA_CONTENDER": settings.leadership.contender}
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=STDERR,
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


def _can_run(job: str, setting: str) -> bool:
    if find_spec("pyarrow") is None:
        _log.warning("%s: %s needs pyarrow: pip install 'hybrid-ha[spark]'.", job, setting)
        return False
    return True


def _environment(settings: Settings) -> dict[str, str]:
    stores = settings.stores
    return {**os.environ, "HA_FILES": stores.files, "HA_ZOOKEEPER": stores.zookeeper, "HA_HISTORY": ""}

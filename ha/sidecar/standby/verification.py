"""Verification on a schedule: a sidecar that does not lead has its job's checkpoints verified, before they are needed.

`ha checkpoint verify` does it in a process of its own, with the lowest priority. So a large checkpoint slows down
neither lookups nor the election, and takes memory only for the time of a verification.
"""

import json
import logging
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from prometheus_client import CollectorRegistry

from ha.config.settings import Settings
from ha.hosts.background import in_background
from ha.metrics.verification import QueryVerified, VerificationMetrics

RATE = 50  # most calls of the store in a second, as the documentation of the setting says
LIMIT_S = 3600.0  # time after which a verification is given up: 180,000 calls
DAMAGED = 1  # exit code of `ha checkpoint verify` that has found damage; 0 if all is well
NO_JOB = 3  # the same if there is no such job yet
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
        if find_spec("pyarrow") is None:
            _log.warning("%s: verify_interval needs pyarrow: pip install 'hybrid-ha[spark]'.", self._job)
            return
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
        command = [
            sys.executable,
            "-P",
            "-m",
            "ha.cli",
            "checkpoint",
            "verify",
            self._job,
            "--json",
            "--rate",
            f"{RATE}",
        ]
        stores = {
            "HA_FILES": self._settings.stores.files,
            "HA_ZOOKEEPER": self._settings.stores.zookeeper,
            "HA_HISTORY": "",
        }
        with self._lock:
            if self._closing.is_set():
                return
            try:
                self._child = child = subprocess.Popen(
                    command, env={**os.environ, **stores}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
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

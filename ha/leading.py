"""``ha.lead``: leadership as a block, contended for here or handed down by the sidecar that runs the program."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ha.belief import BeliefReader
from ha.contended import Contended
from ha.grant import take
from ha.leadership import Leadership
from ha.settings import Settings, load
from ha.stores import Stores
from leader.errors import InvalidSettings, NotLeader
from leader.information import check_endpoints
from leader.names import LeaderDirectory, check_job
from leader.runtime import Runtime

_log = logging.getLogger("ha")


class lead:  # noqa: N801  # reads as a verb: with ha.lead("orders") as leadership
    """Contend for a job; the block is entered when leadership is granted, and left by giving it back.

    Inside a program that ``ha run`` supervises, the sidecar's leadership of that job is taken as it is; one that was
    started by a standby (``--standby warm``) waits for it here.
    """

    def __init__(
        self,
        job: str,
        endpoints: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        **settings: Any,
    ) -> None:
        """Prepare; nothing is connected before the block is entered.

        Args:
            job: the job's name.
            endpoints: where this process can be reached, address by name; published when granted.
            timeout: seconds to wait for the grant; None waits for ever.
            settings: as for :func:`ha.connect`.

        Raises:
            InvalidName: the job or an endpoint cannot be called that.
            InvalidSettings: a setting is wrong.
        """
        self._job = check_job(job)
        self._endpoints = check_endpoints(endpoints or {})
        self._timeout = timeout
        self._settings = load(settings)
        self._held: Contended | HandedDown | None = None

    def __enter__(self) -> Leadership:
        """Wait for the grant.

        Raises:
            InvalidSettings: the sidecar that runs this program was given ``--spark``.
            NotLeader: nothing was granted in time.
        """
        self._held = HandedDown(self._settings) if supervised(self._job) else Contended(self._job, self._settings)
        try:
            return self._held.enter(self._endpoints, self._timeout)
        except BaseException:
            self._held.leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is not None:
            self._held.leave()


def supervised(job: str) -> bool:
    """Whether this program was started by the job's ``ha run``."""
    return os.environ.get("HA_JOB") == job and "HA_BELIEF" in os.environ


class HandedDown:
    """The leadership of the sidecar that runs this program."""

    def __init__(self, settings: Settings) -> None:
        self._stores = Stores(settings)
        self._runtime = Runtime(settings.contender, self._stores.timing, self._stores.files, self._stores.zookeeper)
        self._leadership: Leadership | None = None

    def enter(self, endpoints: Mapping[str, str], timeout: float | None) -> Leadership:
        """Take what the environment says, or will be granted to a program that a standby has started.

        Raises:
            InvalidSettings: the sidecar itself publishes what is committed here.
            NotLeader: the sidecar is gone, or was not granted the job within ``timeout`` seconds.
        """
        if os.environ.get("HA_SPARK_JVM"):
            raise InvalidSettings(
                "`ha run --spark` publishes the checkpoints of a program that does not lead by itself, and this one "
                "does: leave --spark out."
            )
        if endpoints:
            _log.info("The endpoints are the sidecar's; those given to ha.lead are not published.")
        job = os.environ["HA_JOB"]
        try:
            belief = BeliefReader(Path(os.environ["HA_BELIEF"]))
        except OSError as error:
            raise NotLeader(f"The sidecar of job {job!r} is gone: {error.strerror}.") from error
        if granted := os.environ.get("HA_GRANT"):
            directory = take(Path(granted), timeout)
        else:
            directory = LeaderDirectory(int(os.environ["HA_EPOCH"]), os.environ["HA_SESSION_ID"])
        self._leadership = Leadership(job, directory, self._stores, self._runtime, belief.is_leader)
        return self._leadership

    def leave(self) -> None:
        """Let go; the leadership itself is the sidecar's to give back."""
        if self._leadership is not None:
            self._leadership.end()
        self._runtime.close()
        self._stores.close()

"""``ha.lead``: leadership as a block, for a program that contends itself or that a sidecar supervises."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ha.config.log import announce
from ha.config.settings import Settings
from ha.config.sources import gather
from ha.config.stores import Stores
from ha.leadership.dry_run_job import settings_here
from ha.leadership.leadership import Leadership, SidecarHolder
from ha.leadership.standalone import StandaloneLeadership
from ha.program import end_file
from ha.program.deadline_file import DeadlineReader
from ha.program.end_file import End
from ha.program.grant_file import take
from leader.contender.runtime import Runtime
from leader.errors import InvalidSettings, NotLeader
from leader.layout.information import check_endpoints
from leader.layout.names import LeaderDirectory, check_job

_log = logging.getLogger("ha")


class lead:  # noqa: N801  # reads as a verb: with ha.lead("orders") as leadership
    """Lead a job: the block is entered once leadership is granted, and leaving it gives leadership back.

    In a program that ``ha run`` supervises, the block shares the leadership of the sidecar. A program that a standby
    has started (``--standby warm``) waits here for the grant.
    """

    def __init__(
        self, job: str, endpoints: Mapping[str, str] | None = None, *, timeout: float | None = None, **settings: Any
    ) -> None:
        """Prepare; nothing is connected before the block is entered.

        Args:
            job: name of the job.
            endpoints: addresses of this process, by name; published with the grant.
            timeout: seconds to wait for the grant; None waits for ever.
            settings: as for :func:`ha.connect`.

        Raises:
            InvalidName: the job or an endpoint cannot have that name.
            InvalidSettings: a setting is wrong.
        """
        self._job = check_job(job)
        self._endpoints = check_endpoints(endpoints or {})
        self._timeout = timeout
        self._gathered = gather(settings_here(settings))
        self._held: StandaloneLeadership | SupervisedLeadership | None = None
        self._leadership: Leadership | None = None
        self.end: End | None = None
        """How the block ends, for modules of this package that know it better than by its error."""

    def __enter__(self) -> Leadership:
        """Wait for the grant, and return the leadership.

        Raises:
            InvalidSettings: the sidecar that supervises this program runs with ``--spark``, or ``files`` names a store
                whose renames let two processes lead.
            NotLeader: the job was not granted in time.
        """
        settings = self._gathered.settings
        if supervised(self._job):
            self._held = SupervisedLeadership(settings)
        else:
            announce(self._gathered)
            self._held = StandaloneLeadership(self._job, settings)
        try:
            self._leadership = self._held.enter(self._endpoints, self._timeout)
        except BaseException:
            self._held.leave()
            raise
        return self._leadership

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(self._held, StandaloneLeadership) and error is not None:
            self._held.record_end(f"raised-{type(error).__name__}"[:64].replace("_", "-"))
        if self._leadership is not None:
            self._leadership.await_failures()
        if isinstance(self._held, SupervisedLeadership):
            self._held.leave(self.end or End(f"{type(error).__name__}: {error}" if failed(error) else ""))
        elif self._held is not None:
            self._held.leave()

    def record_end(self, cause: str) -> None:
        """Write into the job's history why this leadership ends; a supervised program's sidecar does that itself.

        Args:
            cause: one word of letters, digits, dots and hyphens.
        """
        if isinstance(self._held, StandaloneLeadership):
            self._held.record_end(cause)


def supervised(job: str) -> bool:
    """Whether ``ha run`` for this job has started this program."""
    return os.environ.get("HA_JOB") == job and "HA_BELIEF" in os.environ


def failed(error: BaseException | None) -> bool:
    """Whether a block is left by an error, and not by ``sys.exit(0)``."""
    return error is not None and not (isinstance(error, SystemExit) and not error.code)


class SupervisedLeadership:
    """This program shares the leadership of the sidecar that supervises it."""

    def __init__(self, settings: Settings) -> None:
        self._stores = Stores(settings)
        self._runtime = Runtime(
            settings.leadership.contender, self._stores.timing, self._stores.files, self._stores.zookeeper
        )
        self._leadership: Leadership | None = None

    def enter(self, endpoints: Mapping[str, str], timeout: float | None) -> Leadership:
        """Take the leadership from the environment, or wait for its grant in a program that a standby has started.

        Raises:
            InvalidSettings: the sidecar itself publishes this program's checkpoints.
            NotLeader: the sidecar is gone, or was not granted the job within ``timeout`` seconds.
        """
        if os.environ.get("HA_SPARK_JVM"):
            raise InvalidSettings(
                "`ha run --spark` is for a program that does not use this package, but this one calls ha.lead: leave "
                "--spark out."
            )
        if endpoints:
            _log.info("The sidecar publishes its own endpoints; those given to ha.lead are not published.")
        job = os.environ["HA_JOB"]
        try:
            deadline = DeadlineReader(Path(os.environ["HA_BELIEF"]))
        except OSError as error:
            raise NotLeader(f"The sidecar of job {job!r} is gone: {error.strerror}.") from error
        if granted := os.environ.get("HA_GRANT"):
            directory = take(Path(granted), timeout)
        else:
            directory = LeaderDirectory(int(os.environ["HA_EPOCH"]), os.environ["HA_SESSION_ID"])
        holder = SidecarHolder(job, deadline.is_leader)
        self._leadership = Leadership(job, directory, self._stores, self._runtime, holder)
        end_file.tell(end_file.INSIDE)
        return self._leadership

    def leave(self, end: End | None = None) -> None:
        """Close everything, and say how the block ends; the sidecar gives the lease back itself."""
        if self._leadership is not None:
            self._leadership.end()
            if end is not None:
                end_file.tell(End() if self._leadership.finished else end)
        self._runtime.close()
        self._stores.close()

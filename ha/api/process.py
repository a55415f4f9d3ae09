"""The process that the HTTP API shows, and the API's own access to its stores."""

import threading
from typing import Any, Protocol

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.drain.drain import Note, for_all_users
from ha.metrics.process_metrics import Metrics
from ha.views.leases import Leases
from leader.job.admin import JobAdmin
from leader.lookup.answers import Lookups
from store.bounded import BoundedFiles

WORKERS = 4  # calls of the file system that the API makes at a time


class StatusSource(Protocol):
    """A process whose status can be shown: a :class:`ha.daemon.process.ContendingProcess`, or an agent."""

    @property
    def stores(self) -> Stores:
        """The stores that it has opened."""

    @property
    def reader(self) -> Lookups:
        """Answers lookups."""

    @property
    def metrics(self) -> Metrics:
        """Its metrics; collecting them may raise ``TimeoutError``."""

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return the status of every job that the process contends for; may raise ``TimeoutError``."""


class ApiStores:
    """Connections to the file system for the API alone: however many ask, the contender's calls never wait for them."""

    def __init__(self, process: StatusSource) -> None:
        """Open nothing yet."""
        self._process = process
        self._lock = threading.Lock()
        self._files: BoundedFiles | None = None

    @property
    def settings(self) -> Settings:
        """Of the process."""
        return self._process.stores.settings

    def files(self) -> BoundedFiles:
        """Return the file system of the jobs."""
        stores = self._process.stores
        with self._lock:
            if self._files is None:
                self._files = stores.open(
                    stores.settings.stores.files, int(stores.settings.stores.directory_mode, 8), WORKERS
                )
            return self._files

    def admin(self) -> JobAdmin:
        """Return the operators' view of the jobs."""
        stores = self._process.stores
        return JobAdmin(self.files(), stores.zookeeper, stores.timing.call_timeout)

    def note(self) -> Note:
        """Return what notes orders that processes of all users read."""
        return for_all_users(self._process.stores)

    def leases(self) -> Leases:
        """Return whether jobs are led, for one look."""
        return Leases(self._process.stores)

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            if self._files is not None:
                self._files.close()

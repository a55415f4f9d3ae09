"""ExecutorHosts: the hosts that a command's executors keep off: those that an operator named, and those drained now."""

import logging

from ha.config.stores import Stores
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.yarn_nodes import as_yarn_spells, where_alike
from leader.errors import LeaderError
from leader.job.barring import drained
from leader.job.excluded import ExcludedHosts
from leader.layout.names import LeaderDirectory
from store.clock import wall
from store.errors import StoreError

_log = logging.getLogger("ha")


class ExecutorHosts:
    """The hosts of one job's executors, for its sidecar."""

    def __init__(self, stores: Stores, job: str, status: JobStatusUpdater) -> None:
        self._stores, self._job, self._status = stores, job, status
        self._known: list[str] = []

    def keep_off(self, leader: LeaderDirectory, hosts: list[str]) -> str:
        """Record which hosts an operator names for the next starts; returns why that failed, empty if it did not."""
        # They are recorded as the cluster spells them: it ignores what it does not know, and so would the operator.
        try:
            ExcludedHosts(self._status.directory(leader)).keep(as_yarn_spells(hosts) if hosts else [])
        except (StoreError, LeaderError) as error:
            return f"it is not recorded which hosts are excluded: {error}"
        return ""

    def excluded(self, leader: LeaderDirectory | None) -> list[str]:
        """Return the hosts to keep off, for a start: two lists. If the store does not answer: those known before."""
        # Without a leadership a warm standby knows only those that are drained.
        try:
            named = ExcludedHosts(self._status.directory(leader)).load() if leader is not None else []
            orders = self._stores.files.call("drained", drained, self._stores.timing.call_timeout)
        except (StoreError, LeaderError) as error:
            _log.warning("%s: it is not known which hosts its executors have to keep off: %s", self._job, error)
            return self._known
        now_drained = where_alike(host for host, order in orders.items() if order.until > wall())
        self._known = sorted({*named, *now_drained})
        if self._known:
            _log.info("%s: its executors keep off %s, if its cluster can.", self._job, ", ".join(self._known))
        return self._known

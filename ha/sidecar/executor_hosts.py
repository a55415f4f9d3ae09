"""ExecutorHosts: the hosts that a command's executors keep off: those that an operator named, and those drained now.

YARN ignores a host that is none of its nodes. So they are spelled as its ResourceManager, in ``yarn-site.xml``, names
them: ``GET /ws/v1/cluster/nodes``. One that asks for Kerberos tells us nothing.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from ha.config.stores import Stores
from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import LeaderError
from leader.job.barring import drained
from leader.job.excluded import ExcludedHosts
from leader.layout.hosts import alike
from leader.layout.names import LeaderDirectory
from store.clock import wall
from store.errors import StoreError
from store.hadoop_errors import configuration

CALL_S = 5.0
SITES = ("core-site.xml", "yarn-site.xml")
MANAGER = "yarn.resourcemanager"
STATES = "NEW,RUNNING,UNHEALTHY,DECOMMISSIONING,DECOMMISSIONED,LOST,REBOOTED,SHUTDOWN"  # all that there are
MOST_NAMES = 20  # in a message

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


def as_yarn_spells(hosts: Iterable[str]) -> list[str]:
    """Return hosts as YARN names them; as they are, if no ResourceManager is known here, or none answers."""
    # LeaderError: a host is none of the cluster's nodes, or may be several; the message has their names.
    known = nodes()
    if known is None:
        _log.info("It is not known whether %s are nodes of the cluster: no ResourceManager says so.", ", ".join(hosts))
        return list(hosts)
    return [_spelled(each, known) for each in hosts]


def where_alike(hosts: Iterable[str]) -> list[str]:
    """Return the nodes that may be these hosts; a host that none may be, as it is: it need not be of the cluster."""
    known = (nodes() or []) if (wanted := list(hosts)) else []
    return [name for host in wanted for name in [each for each in known if alike(each, host)] or [host]]


def nodes() -> list[str] | None:
    """Return the names of all nodes, sorted; None if no ResourceManager is known here, or none answers."""
    for address in _addresses():
        try:
            said = _ask(f"{address}/ws/v1/cluster/nodes?states={STATES}")
            return sorted({f"{each['nodeHostName']}" for each in (said["nodes"] or {}).get("node", [])})
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            _log.info("%s does not say which nodes there are: %s", address, error)
    return None


def _spelled(host: str, known: list[str]) -> str:
    found = [each for each in known if each == host] or [each for each in known if alike(each, host)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(known[:MOST_NAMES]) + (f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else "")
    raise LeaderError(
        f"{host!r} may be {' or '.join(found)}: name one of them." if found
        else f"YARN has no node {host!r}, and would ignore it. It has {there or 'none at all'}."
    )  # fmt: skip


def _addresses() -> Iterator[str]:
    """Yield the URLs of the ResourceManagers; of two, the one that stands by sends its callers to the other."""
    settings = configuration(sites=SITES)
    scheme, name, port = "http", "webapp.address", 8088
    if settings.get("yarn.http.policy") == "HTTPS_ONLY":
        scheme, name, port = "https", "webapp.https.address", 8090
    ids = [f".{each.strip()}" for each in settings.get(f"{MANAGER}.ha.rm-ids", "").split(",") if each.strip()]
    for which in ids or [""]:
        host = settings.get(f"{MANAGER}.hostname{which}", "")
        if address := settings.get(f"{MANAGER}.{name}{which}", f"{host}:{port}" if host else ""):
            yield f"{scheme}://{address}"


def _ask(url: str) -> Any:
    import urllib.request  # noqa: PLC0415  # few sidecars ever ask

    with urllib.request.urlopen(url, timeout=CALL_S) as answer:  # noqa: S310  # the administrator's own address
        return json.load(answer)

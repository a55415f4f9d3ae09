"""The nodes of a YARN cluster, as its ResourceManager names them: YARN ignores a host to keep off that is none of them.

``GET /ws/v1/cluster/nodes`` of the ResourceManager in ``yarn-site.xml``. One that asks for Kerberos tells us nothing.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from leader.errors import LeaderError
from leader.layout.hosts import alike
from store.hadoop_errors import configuration

CALL_S = 5.0
SITES = ("core-site.xml", "yarn-site.xml")
MANAGER = "yarn.resourcemanager"
STATES = "NEW,RUNNING,UNHEALTHY,DECOMMISSIONING,DECOMMISSIONED,LOST,REBOOTED,SHUTDOWN"  # all that there are
MOST_NAMES = 20  # in a message

_log = logging.getLogger("ha")


def as_yarn_spells(hosts: Iterable[str]) -> list[str]:
    """Return hosts as YARN names them; as they are, if no ResourceManager is known here, or none answers.

    Raises:
        LeaderError: a host is none of the cluster's nodes, or may be several; the message has their names.
    """
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

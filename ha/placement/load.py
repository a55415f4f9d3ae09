"""Load of the roots of a group, as their NameNodes say it by JMX over HTTP, and which root a new job gets by it.

They say how many requests they take, and how long and how many of them wait. The first process that starts a job
decides where it lies, for good. People are shown which jobs lie at each root, and how loaded it is.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from ha.placement.group_files import Choose, GroupFiles
from ha.placement.place import HASH, LEAST_JOBS, LEAST_RPC, home_of
from leader.errors import InvalidName
from leader.layout.names import check_job
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock, now
from store.errors import Invalid, NotFound, NotSent, StoreError
from store.hadoop_errors import configuration, namenodes
from store.traits import traits

if TYPE_CHECKING:
    import requests

ANSWER_WITHIN_S = 2.0
MAX_ANSWER_BYTES = 1_000_000
ACTIVITY = "Hadoop:service=NameNode,name=RpcActivityForPort*"
STATUS = "Hadoop:service=NameNode,name=NameNodeStatus"
WEB_PORTS = {"http": 9870, "https": 9871}  # of a NameNode's web server, if the Hadoop configuration names none
LIST_S = 2.0  # seconds for a list of a root
READERS = 8  # roots, or jobs, that are looked at at the same time
# Seconds between two figures of a NameNode: a shorter count has all requests of that time in it, or none.
REFRESHED_EVERY_S = 10.0
TIMEOUT_S = 5.0  # seconds for one look

_log = logging.getLogger("ha")


class Load(msgspec.Struct, frozen=True):
    """The load of one NameNode."""

    address: str  # of its web server
    requests: int  # that it has taken since it started
    queue_ms: float  # that a request has waited lately, on average
    processing_ms: float  # that a request has taken lately after that, on average
    queue_length: int  # requests that wait now


def load_of(root: str, ca: str = "") -> Load:
    """Ask the active NameNode of a root; ``StoreError`` if it has none, or none says how loaded it is."""
    # `ca` is the file of the authorities that sign the servers' certificates; empty for those of this host.
    known = configuration()
    addresses = web_addresses(root, known)
    try:
        session = session_of(known, ca)
    except ImportError as error:
        raise NotSent("NameNodes with Kerberos cannot be asked: pip install 'hybrid-ha[kerberos]'.") from error
    failure: Exception | None = None
    with session:
        for address in addresses:
            try:
                if len(addresses) > 1 and beans(session, address, STATUS)[0].get("State") != "active":
                    continue
                return _load(address, beans(session, address, ACTIVITY))
            except (OSError, ValueError, LookupError, TypeError) as error:  # those of requests are OSErrors
                failure = error
    raise NotSent(f"No NameNode of {root} says by JMX how loaded it is ({failure or 'none is active'}).")


def _load(address: str, found: list[dict[str, Any]]) -> Load:
    """Add up the ports of one NameNode: one for clients, and perhaps one for the other servers."""
    operations = sum(int(each["RpcQueueTimeNumOps"]) for each in found)
    return Load(
        address,
        operations,
        max(float(each["RpcQueueTimeAvgTime"]) for each in found),
        max(float(each["RpcProcessingTimeAvgTime"]) for each in found),
        sum(int(each["CallQueueLength"]) for each in found),
    )


def web_addresses(root: str, known: Mapping[str, str]) -> list[str]:
    """Return the URLs of the web servers of a root's NameNodes by Hadoop's settings; ``Invalid`` if it has none."""
    parts = urlsplit(root)
    known_as = traits(root).address
    if not known_as:
        raise Invalid(f"{root} has no NameNode that could be asked for its load.")
    web = "https" if traits(root).encrypted or known.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
    if parts.port is None:
        return [f"{web}://{each}" for each in namenodes(known, parts.netloc, f"{web}-address")]
    if known_as == "http-address":
        return [f"{web}://{parts.netloc}"]
    for key, value in known.items():  # federation: the suffix says which nameservice, and which of its NameNodes
        if key.startswith("dfs.namenode.rpc-address") and value == parts.netloc:
            address = known.get(key.replace("rpc-address", f"{web}-address", 1))
            if address:
                return [f"{web}://{address}"]
    return [f"{web}://{parts.hostname}:{WEB_PORTS[web]}"]


def session_of(known: Mapping[str, str], ca: str) -> "requests.Session":
    """Return a session for web servers of Hadoop, with Kerberos if its settings ask for that and it is installed."""
    import requests  # noqa: PLC0415 - a tenth of a second that only those pay who ask

    session = requests.Session()
    session.trust_env = False
    session.verify = ca or True
    if known.get("hadoop.security.authentication", "").lower() == "kerberos":
        from requests_kerberos import OPTIONAL, HTTPKerberosAuth  # noqa: PLC0415

        session.auth = HTTPKerberosAuth(mutual_authentication=OPTIONAL)
    return session


def beans(session: "requests.Session", server: str, query: str) -> list[dict[str, Any]]:
    """Ask a web server of Hadoop for beans: ``OSError``, ``ValueError`` or ``LookupError`` if it has no such answer."""
    with session.get(f"{server}/jmx?qry={quote(query, safe='*:,=')}", timeout=ANSWER_WITHIN_S, stream=True) as answer:
        if answer.status_code != HTTPStatus.OK:
            raise OSError(f"HTTP {answer.status_code}")
        said = answer.raw.read(MAX_ANSWER_BYTES, decode_content=True)
    found: list[dict[str, Any]] = json.loads(said)["beans"]
    if not found:
        raise LookupError(f"no bean {query}")
    return found


# --- policies


def policy(name: str, ca: str = "") -> Choose:
    """Return the policy of that name; for ``ca`` see :func:`load_of`."""
    known: dict[str, Choose] = {HASH: by_hash, LEAST_JOBS: by_jobs, LEAST_RPC: partial(by_rpc, ca=ca)}
    return known[name]


def by_hash(roots: Sequence[BoundedFiles], job: str) -> str:
    """The job's home: its place is known without a call, now and later."""
    return home_of([each.uri for each in roots], job)


def by_jobs(roots: Sequence[BoundedFiles], job: str) -> str:
    """The root with the fewest directories of jobs; of several, the job's home if it is among them."""

    def jobs(root: BoundedFiles) -> int:
        try:
            found = root.call("place", lambda files: files.list(""), LIST_S)
        except NotFound:  # no job has used it yet
            return 0
        return sum(each.is_directory and not each.name.startswith(".") for each in found)

    return _least(roots, job, jobs)


def by_rpc(roots: Sequence[BoundedFiles], job: str, ca: str = "") -> str:
    """The root whose NameNode lets requests wait for the shortest time, then has the shortest queue of them."""
    # If one does not say so, the job goes to its home: a policy must not keep a job from starting.

    def waiting(root: BoundedFiles) -> tuple[float, int]:
        load = load_of(root.uri, ca)
        return round(load.queue_ms, 1), load.queue_length

    try:
        return _least(roots, job, waiting)
    except StoreError as error:
        _log.warning("%s is placed by its name, because the load of a root is not known: %s", job, error)
        return by_hash(roots, job)


def _least(roots: Sequence[BoundedFiles], job: str, cost: Callable[[BoundedFiles], object]) -> str:
    costs = {each.uri: cost(each) for each in roots}
    least = min(costs.values())  # type: ignore[type-var]
    return home_of([root for root, each in costs.items() if each == least], job)


# --- for people


class RootView(msgspec.Struct, frozen=True):
    """One root of a group."""

    root: str  # its URI
    jobs: list[str] | None  # that lie there, sorted; null if it does not answer
    # That its active NameNode has taken meanwhile, from all its users; null if it does not say.
    requests_per_second: float | None = None
    queue_ms: float | None = None  # that a request has waited lately, on average; null if unknown
    processing_ms: float | None = None  # that a request has taken after that; null if unknown
    queue_length: int | None = None  # requests that wait now; null if unknown
    problem: str | None = None  # why something is unknown; null if all is known


def overview(group: GroupFiles, seconds: float, ca: str, clock: Clock = BOOT_CLOCK) -> list[RootView]:
    """Look at all roots of a group, and count their requests for some seconds."""
    lying = places(group)

    def one(root: str) -> RootView:
        jobs, problem = lying[root]
        try:
            first, began = load_of(root, ca), clock.now()
            clock.sleep(seconds)
            second, ended = load_of(root, ca), clock.now()
        except StoreError as error:
            return RootView(root, jobs, problem=problem or f"{error}")
        rate = (second.requests - first.requests) / (ended - began)
        said = (second.queue_ms, second.processing_ms, second.queue_length)
        if seconds < REFRESHED_EVERY_S:
            problem = problem or f"{root}: REQUESTS/S is not known: count for {REFRESHED_EVERY_S:g} s or longer."
            return RootView(root, jobs, None, *said, problem)
        return RootView(root, jobs, round(max(0.0, rate), 1), *said, problem)

    with ThreadPoolExecutor(len(lying), "ha-groups") as crew:
        return list(crew.map(one, sorted(lying)))


def places(group: GroupFiles) -> dict[str, tuple[list[str] | None, str | None]]:
    """Return the jobs that lie at each root, or why that is not known: a list of each root."""
    # A name at several roots takes one or two lists more: the job lies at one of them, and others point there.
    seen: dict[str, list[str]] = {}
    with ThreadPoolExecutor(READERS, "ha-groups") as crew:
        answers = dict(zip(group.roots, crew.map(_names, group.roots.values()), strict=True))
        for root, names in answers.items():
            for name in names if isinstance(names, list) else ():
                seen.setdefault(name, []).append(root)
        whole = all(isinstance(each, list) for each in answers.values())
        lies = {job: at[0] for job, at in seen.items() if len(at) == 1 and whole}
        unsure = [job for job in seen if job not in lies]
        lies.update(zip(unsure, crew.map(lambda job: _place(group, job), unsure), strict=True))
    return {
        root: (None, f"{each}")
        if isinstance(each, StoreError)
        else (sorted(job for job, at in lies.items() if at == root), None)
        for root, each in answers.items()
    }


def _place(group: GroupFiles, job: str) -> str:
    """Return where a job lies; empty if that is not known."""
    try:
        return group.place(job, now() + TIMEOUT_S)
    except StoreError:
        return ""


def _names(root: BoundedFiles) -> list[str] | StoreError:
    try:
        found = root.call("groups", lambda files: files.list(""), TIMEOUT_S)
    except NotFound:
        return []
    except StoreError as error:
        return error
    return [each.name for each in found if each.is_directory and _is_job(each.name)]


def _is_job(name: str) -> bool:
    try:
        return check_job(name) == name
    except InvalidName:
        return False

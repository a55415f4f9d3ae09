"""Executors of a drained host, on a standalone cluster of Spark: its workers are decommissioned by the master.

The master's web interface takes ``POST /workers/kill/?host=...`` since Spark 3.1, and ``/json/`` shows its workers. It
refuses unless ``spark.decommission.enabled`` is set for master and workers, and, by
``spark.master.ui.decommission.allow.mode`` (``LOCAL``), from other hosts than its own. A worker that is decommissioned
takes no new executors; those that it has move their blocks and end.
"""

from collections.abc import Callable
from urllib.parse import quote

import msgspec

from leader.errors import LeaderError
from leader.layout.hosts import alike
from store.clock import BOOT_CLOCK, Clock
from store.errors import ConnectionLost, PermissionDenied

CALL_S = 10.0
POLL_S = 1.0
FORBIDDEN = (401, 403, 405)  # how masters refuse: 405 until Spark 4.1


class Worker(msgspec.Struct, frozen=True):
    """One worker, as the master shows it."""

    id: str  # its name in the cluster
    host: str  # where it runs
    state: str  # such as ALIVE or DECOMMISSIONED
    cores: int = msgspec.field(name="coresused", default=0)  # that its executors use

    @property
    def busy(self) -> bool:
        """Whether something of it runs, or may begin."""
        return self.state == "ALIVE" or (self.state == "DECOMMISSIONED" and self.cores > 0)


class _Shown(msgspec.Struct):
    workers: list[Worker]


class Master:
    """A master of a standalone cluster, by its web interface."""

    def __init__(self, url: str, ask: Callable[[str, str], tuple[int, bytes]] | None = None) -> None:
        """Ask nothing yet."""
        # `url`: of its web interface, such as ``http://master:8080``. `ask`: sends a method to a URL and returns status
        # and body; for tests.
        self._url = url.rstrip("/")
        self._ask = ask or _ask

    def check_known(self, host: str) -> None:
        """Refuse a host that has no worker: a cluster may know it by its address, and its executors would stay.

        Raises:
            LeaderError: there is no worker; the message names the hosts that have one.
            ConnectionLost: the master does not answer.
        """
        known = self._workers()
        if not any(alike(each.host, host) for each in known):
            there = ", ".join(sorted({each.host for each in known})) or "no host at all"
            raise LeaderError(
                f"The cluster at {self._url} has no worker on {host!r}, but on {there}: name one of them with "
                "--worker-host, or leave --master-ui out."
            )

    def workers(self, host: str) -> list[Worker]:
        """Return the workers of a host. ConnectionLost: the master does not answer."""
        return [each for each in self._workers() if alike(each.host, host)]

    def decommission(self, host: str, timeout: float, clock: Clock = BOOT_CLOCK) -> list[Worker]:
        """Decommission a host's workers, and wait until their executors have ended; returns those that have not."""
        # ConnectionLost: the master does not answer. PermissionDenied: it refuses; the message says which settings it
        # needs.
        deadline = clock.now() + timeout
        for spelled in sorted({each.host for each in self.workers(host) if each.state == "ALIVE"}):
            self._call("POST", f"/workers/kill/?host={quote(spelled)}")
        while (left := [each for each in self.workers(host) if each.busy]) and clock.now() < deadline:
            clock.sleep(POLL_S)
        return left

    def _workers(self) -> list[Worker]:
        try:
            return msgspec.json.decode(self._call("GET", "/json/"), type=_Shown).workers
        except msgspec.MsgspecError as error:
            raise ConnectionLost(f"{self._url} is no master's web interface: {error}.") from error

    def _call(self, method: str, path: str) -> bytes:
        status, body = self._ask(method, f"{self._url}{path}")
        if status in FORBIDDEN:
            raise PermissionDenied(
                f"The master at {self._url} refuses to decommission workers: set spark.decommission.enabled there and "
                "on the workers, and spark.master.ui.decommission.allow.mode if you ask from another host."
            )
        if status >= 400:  # noqa: PLR2004  # an error, for any reason
            raise ConnectionLost(f"The master at {self._url} has answered {status}.")
        return body


def _ask(method: str, url: str) -> tuple[int, bytes]:
    import requests  # noqa: PLC0415 - a tenth of a second that only standalone clusters pay

    try:
        answer = requests.request(method, url, timeout=CALL_S, allow_redirects=False)
    except requests.RequestException as error:
        raise ConnectionLost(f"{url} does not answer: {error}") from error
    return answer.status_code, answer.content

"""Hosts: POST to drain one and to let it lead again, as a platform's maintenance robot does, and GET for how far it is.

A drain runs on a thread of this process. If this process ends meanwhile, the client asks again, here or elsewhere: jobs
that have moved stay moved.
"""

import logging
import threading
from typing import Annotated

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ha.api.operations import PREFIX, Operation, asker, begin_thread, encoded, posted
from ha.api.process import ApiStores
from ha.drain.drain import Drained, HostDrain
from ha.drain.undrain import Undrained, known_as, undrain
from ha.views.ages import at_time
from leader.errors import LeaderError
from leader.job import barring
from leader.layout.bar import Bar
from leader.layout.lease import check_contender
from store.clock import wall
from store.errors import StoreError

TIMEOUT_S = 300.0
CONCURRENCY = 8
LONGEST_S = 90 * 86_400

_log = logging.getLogger("ha")


class DrainAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A drain in the body of a POST."""

    reason: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,40}\Z")] = ""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_S)] = 86_400
    """After this time the host may lead again at the latest."""
    unseen: bool = False  # even if no process is known to contend under that name


class HostState(msgspec.Struct, frozen=True):
    """A host, as far as drains are concerned.

    Attributes:
        host: its name, as its processes contend.
        barred_until: when it may lead again; null if it is not drained.
        by: who has drained it; null if it is not drained.
        reason: as that one has given it.
        running: whether this process is draining it now.
        result: how the last drain by this process has ended; null if there was none.
        error: why the last one has failed; null if it has not.
    """

    host: str
    barred_until: str | None = None
    by: str | None = None
    reason: str | None = None
    running: bool = False
    result: Drained | None = None
    error: str | None = None


class Hosts:
    """The drains of one process; at most one for each host at a time."""

    def __init__(self, stores: ApiStores) -> None:
        """Drain nothing yet."""
        self._stores = stores
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._ended: dict[str, Drained | str] = {}

    def operations(self) -> list[Operation]:
        """Return what can be asked of a host."""
        path, refusals = f"{PREFIX}/hosts/{{host}}", (400, 404, 500)

        def get(request: Request) -> HostState:
            return self._state(_host(request))

        return [
            Operation(path, get, "Whether a host is drained, and how far that is.", HostState, refusals=refusals),
            posted(
                f"{path}/drain",
                DrainAsked,
                self._drain,
                "Move all leaderships off a host, and keep it from leading; asking while that goes on asks once.",
                HostState,
                refusals,
            ),
            Operation(
                f"{path}/undrain", self._undrain, "Let a host lead again.", Undrained, refusals=refusals, method="POST"
            ),
        ]

    def _drain(self, request: Request, asked: DrainAsked) -> Response:
        host = _host(request)
        order = Bar(host, int(wall() + asked.seconds), asker(request), asked.reason)
        _ = order.name  # refused before anything begins
        if not asked.unseen:
            host = self._known_as(host, "If the name is right, ask with `unseen`.")
            order = msgspec.structs.replace(order, contender=host)
        with self._lock:
            if host not in self._running:
                begin_thread(self._run, order, name="ha-drain")
                self._running.add(host)
        return encoded(self._state(host), 202, {"Location": f"{PREFIX}/hosts/{host}"})

    def _run(self, order: Bar) -> None:
        host = order.contender
        try:
            asked = HostDrain(self._stores.admin(), self._stores.note(), order, wall())
            ended: Drained | str = asked.run(TIMEOUT_S, CONCURRENCY)
        except (LeaderError, StoreError, TimeoutError) as error:
            ended = f"{error}"
        with self._lock:
            self._running.discard(host)
            self._ended[host] = ended
        _log.info("drain of %s, asked for by %s: %s", host, order.by, ended)

    def _undrain(self, request: Request) -> Undrained:
        host = _host(request)
        done = undrain(self._stores.admin(), host)
        if not done.drained and not done.jobs and (name := self._known_as(host, "Nothing is changed.")) != host:
            done = undrain(self._stores.admin(), name)
        return done

    def _known_as(self, host: str, what: str) -> str:
        try:
            return known_as(self._stores.admin(), host, what)
        except LeaderError as error:
            raise HTTPException(404, f"{error}") from error

    def _state(self, host: str) -> HostState:
        order = self._stores.admin().call("drained", barring.drained).get(host)
        with self._lock:
            running, ended = host in self._running, self._ended.get(host)
        result = ended if isinstance(ended, Drained) and not running else None
        error = ended if isinstance(ended, str) and not running else None
        if order is None or order.until <= wall():
            return HostState(host, running=running, result=result, error=error)
        until = at_time(order.until * 1000)
        return HostState(host, until, order.by or None, order.reason or None, running, result, error)


def _host(request: Request) -> str:
    return check_contender(request.path_params["host"])

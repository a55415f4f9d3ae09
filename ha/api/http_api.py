"""The HTTP API of a daemon, sidecar or agent: what the stores say of jobs, what this process does, and the web page."""

import os
import socket
from collections.abc import Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any, Literal

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from ha.api import requests
from ha.api.events import Events
from ha.api.leaders import Leaders
from ha.api.long_operations import Hosts, OwnProcesses
from ha.api.operations import PREFIX, Operation, document, encoded, routes
from ha.api.process import ApiStores, StatusSource
from ha.api.reads import Reads
from ha.config.addresses import bind, parse_listen
from ha.listening.access import Access
from ha.listening.problems import of_exception, problem
from ha.listening.server import HttpServer
from ha.listening.tokens import Role
from ha.program import output_log
from leader.layout.names import check_job

WHAT = "The HTTP API"

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

PAGE = {
    f"/{'' if each.name == 'index.html' else each.name}": (each.read_bytes(), _TYPES[each.name.rpartition(".")[2]])
    for each in files("ha.api").joinpath("web").iterdir()
    if each.name.rpartition(".")[2] in _TYPES
}
"""The web page: files that any browser may load, by their paths. They hold no data, and fetch all that they show."""

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""The browser is to load nothing from elsewhere, to run no script of a document, and to show the page in no frame."""

LOG_BYTES = 256 << 10  # the most of an answer: the end of the log


class HttpApi:
    """Serves on a thread of its own, so that a slow client never delays the contender."""

    def __init__(
        self, process: StatusSource, listen: str, leaders: Leaders | None = None, access: Access | None = None
    ) -> None:
        """Bind the port."""
        # `process`: its status is shown. `listen`: ``host:port``; port 0 takes a free one. `leaders`: answers who
        # leads; None for an API that does not. `access`: who may ask; None for all.
        # InvalidSettings: it is not an address, or is in use.
        access = access or Access()
        self._process = process
        self._leaders = leaders
        self._stores = ApiStores(process)
        reads = Reads(self._stores)
        self._events = Events(self._stores, reads)
        self._own = OwnProcesses(self._stores, access.savepoint_roots)
        offered = [
            *probe_operations(process),
            *reads.operations(),
            *requests.operations(self._stores, access.savepoint_roots),
            *self._own.operations(),
            *Hosts(self._stores).operations(),
            *log_operations(shown=access.tokens.wanted),
            *self._events.operations(),
            *(leaders.operations() if leaders is not None else ()),
        ]
        described = document(offered, _version())
        self._open = frozenset({*(each.path for each in offered if each.probe), *PAGE})
        self._operate = frozenset(each.method for each in offered) - {"GET"}
        answering = [
            *routes(offered),
            *(Route(path, _file) for path in sorted(PAGE)),
            Route(f"{PREFIX}/openapi.json", lambda _: encoded(described)),
            Route("/metrics", self._metrics),
        ]
        application = Starlette(routes=answering, exception_handlers={HTTPException: of_exception})
        # A path with an extra slash is not found: a redirect would go where the request's Host header says.
        application.router.redirect_slashes = False
        host, _ = parse_listen(listen)
        self._server = HttpServer(access.guard(application, host, self._needed), bind(listen, WHAT), WHAT, access)

    @property
    def address(self) -> str:
        """Where it answers: ``host:port``."""
        return self._server.address

    @property
    def application(self) -> ASGIApp:
        """The application that answers requests."""
        return self._server.application

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def close(self) -> None:
        """Stop answering."""
        if self._leaders is not None:
            self._leaders.close()
        self._events.close()
        self._server.close()
        self._own.close()
        self._stores.close()

    # Starlette runs plain functions on a pool of threads, so they may block.

    def _metrics(self, _: Request) -> Response:
        try:
            shown = generate_latest(self._process.metrics.registry)
        except TimeoutError:
            return problem(503, "The contender's thread does not answer.")
        return Response(shown, media_type=CONTENT_TYPE_LATEST)

    def _needed(self, scope: Scope) -> Role | None:
        """Probes and the page need no token. The page has nothing in it, and asks for what it shows."""
        if scope["method"] in self._operate:
            return Role.OPERATE
        return None if scope["path"] in self._open else Role.READ


def _version() -> str:
    try:
        return version("hybrid-ha")
    except PackageNotFoundError:  # it runs from its sources
        return "unknown"


async def _file(request: Request) -> Response:
    content, kind = PAGE[request.scope["path"]]
    return Response(content, headers=PAGE_HEADERS, media_type=kind)


# --- probes


class Well(msgspec.Struct, frozen=True):
    """The process is well; ``jobs`` is the number of those that it contends for."""

    jobs: int
    status: Literal["ok"] = "ok"


class ProbeRole(msgspec.Struct, frozen=True):
    """The role of this process in a job."""

    job: str
    role: Literal["leader", "standby"]
    epoch: int | None


def probe_operations(process: StatusSource) -> list[Operation]:
    """Return the probes of a process: they ask no store and need no token."""

    def alive(_: Request) -> Well:
        return Well(len(process.statuses()))

    def ready(_: Request) -> Well:
        found = process.statuses()
        refused = [f"{job}: {each['not_eligible']}" for job, each in sorted(found.items()) if each["not_eligible"]]
        if refused:
            raise HTTPException(503, " ".join(refused))
        return Well(len(found))

    def role(wanted: Literal["leader", "standby"], request: Request) -> ProbeRole:
        status = _chosen(process.statuses(), request.query_params.get("job", ""))
        if status["not_eligible"] and not status["is_leader"]:
            raise HTTPException(503, status["not_eligible"])
        found: Literal["leader", "standby"] = "leader" if status["is_leader"] else "standby"
        if found != wanted:
            raise HTTPException(503, f"{status['job']}: this process is the {found}, not the {wanted}.")
        return ProbeRole(status["job"], found, status["epoch"])

    said: dict[Literal["leader", "standby"], str] = {
        "leader": "200 while this process leads the job, else 503.",
        "standby": "200 while this process stands by for the job and could lead it, else 503.",
    }
    return [
        Operation("/livez", alive, "Whether the process lives: its contender's thread answers.", Well, probe=True),
        Operation("/readyz", ready, "Whether it could lead every job that it contends for.", Well, probe=True),
        *(
            Operation(f"/{name}", partial(role, name), text, ProbeRole, refusals=(404,), probe=True, query=("job",))
            for name, text in said.items()
        ),
    ]


def _chosen(statuses: Mapping[str, dict[str, Any]], job: str) -> dict[str, Any]:
    if job:
        if job not in statuses:
            raise HTTPException(404, f"This process does not contend for job {job!r}.")
        return statuses[job]
    if len(statuses) != 1:
        known = ", ".join(sorted(statuses)) or "none"
        raise HTTPException(404, f"Name the job, as in ?job=orders. The jobs of this process: {known}.")
    return next(iter(statuses.values()))


# --- logs


class JobLog(msgspec.Struct, frozen=True):
    """The end of the newest run's log on a host."""

    host: str
    path: str
    text: str


def log_operations(*, shown: bool) -> list[Operation]:
    """Return the log of a job's command on this host; without any tokens it is refused: programs print secrets."""

    def newest(request: Request) -> JobLog:
        job, host = check_job(request.path_params["job"]), socket.gethostname()
        if not shown:
            raise HTTPException(403, "A program's output may hold secrets: set http_read_tokens, and send a token.")
        if not (runs := output_log.runs(job)):
            raise HTTPException(404, f"No run of job {job!r} is kept on {host}, the host of this process.")
        with runs[-1].open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - LOG_BYTES))
            return JobLog(host, str(runs[-1]), file.read(LOG_BYTES).decode(errors="replace"))

    path, summary = f"{PREFIX}/jobs/{{job}}/logs", "The newest output of its command on the host of this process."
    return [Operation(path, newest, summary, JobLog, refusals=(400, 403, 404))]

"""The HTTP API of a daemon, sidecar or agent: what the stores say of jobs, what this process does, and the web page."""

from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from ha.api import logs, probes, requests
from ha.api.events import Events
from ha.api.hosts import Hosts
from ha.api.leaders import Leaders
from ha.api.operations import PREFIX, document, encoded, routes
from ha.api.own_processes import OwnProcesses
from ha.api.process import ApiStores, StatusSource
from ha.api.reads import Reads
from ha.config.addresses import bind, parse_listen
from ha.listening.access import Access
from ha.listening.problems import of_exception, problem
from ha.listening.server import HttpServer
from ha.listening.tokens import Role

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
            *probes.operations(process),
            *reads.operations(),
            *requests.operations(self._stores, access.savepoint_roots),
            *self._own.operations(),
            *Hosts(self._stores).operations(),
            *logs.operations(shown=access.tokens.wanted),
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

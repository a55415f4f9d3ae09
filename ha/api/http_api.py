"""The HTTP API of a daemon, sidecar or agent: what the stores say of jobs, what this process does, and the web page."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from ha.agent.http_feed import Feed, fields
from ha.api import page, probes, requests
from ha.api.events import Events
from ha.api.hosts import Hosts
from ha.api.operations import PREFIX, document, encoded
from ha.api.operations import routes as operation_routes
from ha.api.process import ApiStores, StatusSource
from ha.api.reads import Reads
from ha.config.addresses import bind, parse_listen
from ha.listening.access import Access
from ha.listening.problems import of_exception, problem
from ha.listening.server import HttpServer
from ha.listening.tokens import Role
from leader.errors import InvalidName, NoLeader, Unreachable

LOOKUP_TIMEOUT_S = 2.0
WHAT = "The HTTP API"


class HttpApi:
    """Serves on a thread of its own, so that a slow client never delays the contender."""

    def __init__(
        self, process: StatusSource, listen: str, feed: Feed | None = None, access: Access | None = None
    ) -> None:
        """Bind the port.

        Args:
            process: its status is shown.
            listen: ``host:port``; port 0 takes a free one.
            feed: streams the changes of leaders; None for an API without such a stream.
            access: who may ask; None for all.

        Raises:
            InvalidSettings: it is not an address, or is in use.
        """
        self._process = process
        self._feed = feed
        self._stores = ApiStores(process)
        reads = Reads(self._stores)
        self._events = Events(self._stores, reads)
        offered = [
            *probes.operations(process),
            *reads.operations(),
            *requests.operations(self._stores),
            *Hosts(self._stores).operations(),
            *self._events.operations(),
        ]
        described = document(offered, _version())
        self._open = frozenset({"/health", *(each.path for each in offered if each.probe), *page.PATHS})
        self._operate = frozenset(each.method for each in offered) - {"GET"}
        routes = [
            *operation_routes(offered),
            *page.routes(),
            Route(f"{PREFIX}/openapi.json", lambda _: encoded(described)),
            Route("/health", self._health),
            Route("/v1/jobs", self._jobs),
            Route("/v1/jobs/{job}", self._job),
            Route("/v1/jobs/{job}/leader", self._leader),
            Route("/metrics", self._metrics),
            *(feed.routes if feed is not None else ()),
        ]
        application = Starlette(routes=routes, exception_handlers={HTTPException: of_exception})
        # A path with an extra slash is not found: a redirect would go where the request's Host header says.
        application.router.redirect_slashes = False
        host, _ = parse_listen(listen)
        access = access or Access()
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
        if self._feed is not None:
            self._feed.close()
        self._events.close()
        self._server.close()
        self._stores.close()

    # Starlette runs plain functions on a pool of threads, so they may block.

    def _health(self, _: Request) -> Response:
        return self._answer(lambda: {"status": "ok", "jobs": len(self._process.statuses())})

    def _jobs(self, _: Request) -> Response:
        return self._answer(lambda: list(self._process.statuses().values()))

    def _job(self, request: Request) -> Response:
        job = request.path_params["job"]
        status = self._process.statuses().get(job)
        if status is None:
            return problem(404, f"This process does not contend for job {job!r}.")
        return JSONResponse(status)

    def _leader(self, request: Request) -> Response:
        try:
            answer = self._process.reader.leader(request.path_params["job"], LOOKUP_TIMEOUT_S)
        except InvalidName as error:
            return problem(400, str(error))
        except NoLeader as error:
            return problem(404, str(error))
        except Unreachable as error:
            return problem(503, str(error))
        return JSONResponse(fields(answer))

    def _metrics(self, _: Request) -> Response:
        try:
            shown = generate_latest(self._process.metrics.registry)
        except TimeoutError:
            return problem(503, "The contender's thread does not answer.")
        return Response(shown, media_type=CONTENT_TYPE_LATEST)

    def _answer(self, question: Any) -> Response:
        try:
            return JSONResponse(question())
        except TimeoutError:
            return problem(503, "The contender's thread does not answer.")

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

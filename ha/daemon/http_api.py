"""The local HTTP API of a daemon, sidecar or agent: health, leader, changes, metrics."""

from typing import Any, Protocol

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from ha.agent.http_feed import Feed, fields
from ha.config.addresses import bind, parse_listen
from ha.listening.access import Access
from ha.listening.server import HttpServer
from ha.listening.tokens import Role
from ha.metrics.process import Metrics
from leader.errors import InvalidName, NoLeader, Unreachable
from leader.lookup.answers import Lookups

LOOKUP_TIMEOUT_S = 2.0
WHAT = "The HTTP API"


class StatusSource(Protocol):
    """A process whose status can be shown: a :class:`ha.daemon.process.ContendingProcess`, or an agent."""

    @property
    def reader(self) -> Lookups:
        """Answers lookups."""

    @property
    def metrics(self) -> Metrics:
        """Its metrics; collecting them may raise ``TimeoutError``."""

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return the status of every job that the process contends for; may raise ``TimeoutError``."""


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
        routes = [
            Route("/health", self._health),
            Route("/v1/jobs", self._jobs),
            Route("/v1/jobs/{job}", self._job),
            Route("/v1/jobs/{job}/leader", self._leader),
            Route("/metrics", self._metrics),
            *(feed.routes if feed is not None else ()),
        ]
        application = Starlette(routes=routes)
        # A path with an extra slash is not found: a redirect would go where the request's Host header says.
        application.router.redirect_slashes = False
        host, _ = parse_listen(listen)
        access = access or Access()
        self._server = HttpServer(access.guard(application, host, _needed), bind(listen, WHAT), WHAT, access)

    @property
    def address(self) -> str:
        """Where it answers: ``host:port``."""
        return self._server.address

    @property
    def application(self) -> ASGIApp:
        """What answers."""
        return self._server.application

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def close(self) -> None:
        """Stop answering."""
        if self._feed is not None:
            self._feed.close()
        self._server.close()

    # Starlette runs plain functions on a pool of threads, so they may block.

    def _health(self, _: Request) -> Response:
        return self._answer(lambda: {"status": "ok", "jobs": len(self._process.statuses())})

    def _jobs(self, _: Request) -> Response:
        return self._answer(lambda: list(self._process.statuses().values()))

    def _job(self, request: Request) -> Response:
        job = request.path_params["job"]
        status = self._process.statuses().get(job)
        if status is None:
            return JSONResponse({"error": f"This process does not contend for job {job!r}."}, 404)
        return JSONResponse(status)

    def _leader(self, request: Request) -> Response:
        try:
            answer = self._process.reader.leader(request.path_params["job"], LOOKUP_TIMEOUT_S)
        except InvalidName as error:
            return JSONResponse({"error": str(error)}, 400)
        except NoLeader as error:
            return JSONResponse({"error": str(error)}, 404)
        except Unreachable as error:
            return JSONResponse({"error": str(error)}, 503)
        return JSONResponse(fields(answer))

    def _metrics(self, _: Request) -> Response:
        try:
            shown = generate_latest(self._process.metrics.registry)
        except TimeoutError:
            return JSONResponse({"error": "The contender's thread does not answer."}, 503)
        return Response(shown, media_type=CONTENT_TYPE_LATEST)

    def _answer(self, question: Any) -> Response:
        try:
            return JSONResponse(question())
        except TimeoutError:
            return JSONResponse({"error": "The contender's thread does not answer."}, 503)


def _needed(scope: Scope) -> Role | None:
    """The API only reads. Probes that cannot bring a token may ask whether the process is well."""
    return None if scope["path"] == "/health" else Role.READ

"""The local HTTP API of a daemon, sidecar or agent: health, leader, changes, metrics."""

import logging
import threading
from typing import Any, Protocol

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ha.agent.feed import Feed, fields
from ha.history.opening import Lookups
from ha.listening import bind
from ha.metrics.process import Metrics
from leader.errors import InvalidName, NoLeader, Unreachable

LOOKUP_TIMEOUT = 2.0
STOP_WITHIN = 3.0

_log = logging.getLogger("ha")


class Shown(Protocol):
    """A process that can be looked at: a :class:`ha.node.Node`, or one that contends for nothing."""

    @property
    def reader(self) -> Lookups:
        """Answers lookups."""

    @property
    def metrics(self) -> Metrics:
        """What it tells Prometheus; to collect it may raise ``TimeoutError``."""

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return what can be seen of every job that the process contends for."""


class Api:
    """Serves on a thread of its own, so that a slow client never holds up the contender."""

    def __init__(self, node: Shown, listen: str, feed: Feed | None = None) -> None:
        """Bind the port.

        Args:
            node: what to show.
            listen: ``host:port``; port 0 takes a free one.
            feed: tells of changes; None for an API that does not.

        Raises:
            InvalidSettings: that is no address, or it is taken.
        """
        self._node = node
        self._feed = feed
        self._socket = bind(listen, "The HTTP API")
        host, port = self._socket.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        routes = [
            Route("/health", self._health),
            Route("/v1/jobs", self._jobs),
            Route("/v1/jobs/{job}", self._job),
            Route("/v1/jobs/{job}/leader", self._leader),
            Route("/metrics", self._metrics),
            *(feed.routes if feed is not None else ()),
        ]
        application = Starlette(routes=routes)
        # A path with a slash too many is no path: a redirect would go wherever the request's Host header says.
        application.router.redirect_slashes = False
        config = uvicorn.Config(
            application, log_level="warning", lifespan="off", timeout_keep_alive=5, timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="ha-api", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()
        _log.info("The HTTP API answers at http://%s.", self.address)

    def close(self) -> None:
        """Stop answering."""
        self._server.should_exit = True
        if self._feed is not None:
            self._feed.close()
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    # Starlette runs plain functions on a pool of threads: they may wait.

    def _health(self, _: Request) -> Response:
        return self._answer(lambda: {"status": "ok", "jobs": len(self._node.statuses())})

    def _jobs(self, _: Request) -> Response:
        return self._answer(lambda: list(self._node.statuses().values()))

    def _job(self, request: Request) -> Response:
        job = request.path_params["job"]
        status = self._node.statuses().get(job)
        if status is None:
            return JSONResponse({"error": f"This process does not contend for job {job!r}."}, 404)
        return JSONResponse(status)

    def _leader(self, request: Request) -> Response:
        try:
            answer = self._node.reader.leader(request.path_params["job"], LOOKUP_TIMEOUT)
        except InvalidName as error:
            return JSONResponse({"error": str(error)}, 400)
        except NoLeader as error:
            return JSONResponse({"error": str(error)}, 404)
        except Unreachable as error:
            return JSONResponse({"error": str(error)}, 503)
        return JSONResponse(fields(answer))

    def _metrics(self, _: Request) -> Response:
        try:
            shown = generate_latest(self._node.metrics.registry)
        except TimeoutError:
            return JSONResponse({"error": "The contender's thread does not answer."}, 503)
        return Response(shown, media_type=CONTENT_TYPE_LATEST)

    def _answer(self, question: Any) -> Response:
        try:
            return JSONResponse(question())
        except TimeoutError:
            return JSONResponse({"error": "The contender's thread does not answer."}, 503)

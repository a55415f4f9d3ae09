"""Long operations: POST begins one, and GET tells how far it is. Asking again resumes it.

A platform's maintenance robot has a host drained, on a thread of this process. If this process ends meanwhile, the
client asks again, here or elsewhere: jobs that have moved stay moved.
Verbs such as a hand-over, a rewind or a move are carried out by the command line, in a process of its own. So neither
copies of gigabytes nor a Spark slow down the leases of this process.
"""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ha.api.operations import PREFIX, Operation, asker, begin_thread, encoded, lacking, posted
from ha.api.process import ApiStores
from ha.api.requests import allowed, bodies, verb_of
from ha.drain.drain import Drained, HostDrain
from ha.drain.undrain import Undrained, known_as, undrain
from ha.verbs.asking import new_id
from ha.verbs.table import OF_PROCESS, NoArguments
from ha.views.ages import at_time
from leader.errors import LeaderError
from leader.job import barring
from leader.layout.bar import Bar
from leader.layout.lease import check_contender
from leader.layout.names import check_job
from store.clock import wall
from store.errors import Conflict, StoreError

TIMEOUT_S = 300.0
CONCURRENCY = 8
LONGEST_S = 90 * 86_400
MOST = 100  # operations of which the end is known; older ones are forgotten

_log = logging.getLogger("ha")


# --- hosts


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


# --- verbs that a process of its own carries out


class OperationState(msgspec.Struct, frozen=True):
    """An operation on a job.

    Attributes:
        id: as it was asked for, or made.
        job: its name.
        verb: what was asked for.
        state: whether it runs, or how it has ended.
        result: what the command line prints as JSON; null before.
        said: why it has failed, or what it warns of.
    """

    id: str
    job: str
    verb: str
    state: Literal["running", "done", "failed"] = "running"
    result: Any = None
    said: str = ""


class OwnProcesses:
    """The operations of one process; at most one for each job at a time."""

    def __init__(self, stores: ApiStores, roots: Sequence[str]) -> None:
        """Begin none; ``roots`` are the directories outside of a job that may be named."""
        self._stores, self._roots = stores, roots
        self._lock = threading.Lock()
        self._known: dict[str, OperationState] = {}
        self._running: dict[str, subprocess.Popen[str]] = {}

    def operations(self) -> list[Operation]:
        """Return what can be asked of a job."""
        path, body = f"{PREFIX}/jobs/{{job}}/operations", bodies(OF_PROCESS)
        summary = "Hand over, rewind or rescale a query, sweep, promote or move the job; a process of its own does it."
        return [
            posted(path, body, self._begin, summary, OperationState, (400, 403, 409, 500)),
            Operation(f"{path}/{{id}}", self._get, "How far an operation is.", OperationState, refusals=(400, 404)),
        ]

    def close(self) -> None:
        """End what runs; asking again resumes it."""
        with self._lock:
            for each in self._running.values():
                each.terminate()

    def _begin(self, request: Request, asked: Any) -> Response:
        job, verb = check_job(request.path_params["job"]), verb_of(asked)
        allowed({"to": getattr(asked.arguments, "old_files", None) or ""}, self._roots)
        identity = asked.id or new_id()
        with self._lock:
            if (state := self._known.get(identity)) is None:
                if job in self._running:
                    raise Conflict(f"Another operation on job {job!r} runs in this process: ask again after that.")
                state = OperationState(identity, job, verb)
                process = self._started(job, verb, asked.arguments)
                try:
                    begin_thread(self._follow, state, process, name="ha-operation")
                except HTTPException:
                    process.kill()
                    process.communicate()
                    raise
                self._known[identity], self._running[job] = state, process
                while len(self._known) > MOST:
                    del self._known[next(iter(self._known))]
                _log.info("%s asks to %s job %s.", asker(request), verb, job)
        return encoded(state, 202, {"Location": f"{PREFIX}/jobs/{job}/operations/{identity}"})

    def _started(self, job: str, verb: str, arguments: NoArguments) -> "subprocess.Popen[str]":
        settings = self._stores.settings
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "ha.cli", *words(job, verb, arguments)],
                env={**os.environ, "HA_FILES": settings.stores.files, "HA_ZOOKEEPER": settings.stores.zookeeper},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise lacking(error.strerror or f"{error}") from error

    def _follow(self, state: OperationState, process: "subprocess.Popen[str]") -> None:
        printed, said = process.communicate()
        with self._lock:
            del self._running[state.job]
            result = json.loads(printed) if printed.strip() else None
            ended: Literal["done", "failed"] = "failed" if process.returncode else "done"
            self._known[state.id] = OperationState(state.id, state.job, state.verb, ended, result, said.strip())
        _log.info("%s: the operation to %s is %s: %s", state.job, state.verb, ended, said.strip())

    def _get(self, request: Request) -> OperationState:
        state = self._known.get(request.path_params["id"])
        if state is None or state.job != request.path_params["job"]:
            raise HTTPException(404, "This process knows no such operation (any more).")
        return state


def words(job: str, verb: str, arguments: NoArguments) -> list[str]:
    """Return the command line that carries a verb out."""
    known = OF_PROCESS[verb]
    given = msgspec.to_builtins(arguments)
    place = [str(given.pop("query"))] if "query" in given else []
    asks = ["--yes"] if known.asks else []
    return [*known.command.split(), *_flags(given), *asks, "--json", "--", job, *place]


def _flags(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yield from [flag] if value else []
        elif isinstance(value, list):
            yield from (f"{flag}={each}" for each in value)
        else:
            yield f"{flag}={value}"

"""Verbs that a process of its own carries out: POST to hand over, rewind or move, for example, and GET how far it is.

The process is the command line. So neither copies of gigabytes nor a Spark slow down the leases of this process, and
what is interrupted is resumed as there: by asking again.
"""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ha.api.operations import PREFIX, Operation, asker, begin_thread, encoded, lacking, posted
from ha.api.process import ApiStores
from ha.api.requests import allowed, bodies, verb_of
from ha.verbs.asking import new_id
from ha.verbs.table import OF_PROCESS, NoArguments
from leader.layout.names import check_job
from store.errors import Conflict

MOST = 100  # operations of which the end is known; older ones are forgotten

_log = logging.getLogger("ha")


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

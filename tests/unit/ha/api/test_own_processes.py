"""Verbs that a process of its own carries out, over HTTP: one at a time, asked once, and answered with its result."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from ha.api.own_processes import OwnProcesses, words
from ha.cli import app
from ha.verbs.table import (
    OF_PROCESS,
    HandoverArguments,
    MoveArguments,
    NoArguments,
    PromoteArguments,
    RewindArguments,
    SeekArguments,
    SweepArguments,
)
from tests.lacks import no_thread_free
from tests.limits import killed
from tests.unit.ha.api.serving import Served
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import wait_until

PATH = "/api/v1/jobs/orders/operations"


def ended(served: Served, identity: str) -> dict[str, Any]:
    wait_until(lambda: served.get(f"{PATH}/{identity}")[1]["state"] != "running", what="it ends")
    found: dict[str, Any] = served.get(f"{PATH}/{identity}")[1]
    return found


@pytest.mark.parametrize(
    ("verb", "arguments", "line"),
    [
        ("rewind", RewindArguments(query="sums", to=3, outputs="aside"), "--to=3 --outputs=aside --yes"),
        ("rewind", RewindArguments(query="sums", undo=True, dry_run=True), "--undo --dry-run --yes"),
        (
            "seek",
            SeekArguments(query="sums", to='{"orders":{"0":1}}', kafka="kafka:9092"),
            '--to={"orders":{"0":1}} --kafka=kafka:9092 --yes',
        ),
        ("sweep", SweepArguments(remove=["a", "b"]), "--remove=a --remove=b"),
        (
            "promote",
            PromoteArguments(old_files="hdfs://far/ha", replace=True),
            "--old-files=hdfs://far/ha --replace --yes",
        ),
        ("move", MoveArguments(to="--undo"), "--to=--undo"),
        ("handover", HandoverArguments(to="b"), "--to=b"),
    ],
)
def test_a_verb_is_a_command_line_in_which_no_value_is_an_option(verb: str, arguments: NoArguments, line: str) -> None:
    place = ["sums"] if verb in ("rewind", "seek") else []
    given = words("orders", verb, arguments)
    assert given == [*OF_PROCESS[verb].command.split(), *line.split(), "--json", "--", "orders", *place]
    command: click.Command | None = app
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), given.pop(0))
    assert command is not None
    assert command.make_context(verb, given).params["job" if verb != "sweep" else "target"] == "orders"


def test_a_job_is_swept_dry_and_the_answer_is_what_the_command_prints(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    asked = {"verb": "sweep", "id": "s-1", "arguments": {"dry_run": True}}
    assert served.ask("POST", PATH, asked)[0] == 202
    found = ended(served, "s-1")
    assert (found["state"], found["result"]["target"], found["result"]["dry_run"]) == ("done", "orders", True)
    assert served.ask("POST", PATH, asked)[1] == found, "asked twice, done once"


def test_what_fails_says_why(served: Served) -> None:
    assert served.ask("POST", PATH, {"verb": "rewind", "id": "r-1", "arguments": {"query": "sums", "to": 3}})[0] == 202
    found = ended(served, "r-1")
    assert (found["state"], found["result"]) == ("failed", None)
    assert "There is no job 'orders'" in found["said"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"verb": "stop"}, 400),
        ({"verb": "rewind"}, 400),
        ({"verb": "rewind", "arguments": {"query": "sums", "to": -1}}, 400),
        ({"verb": "rescale", "arguments": {"query": "sums"}}, 400),
        ({"verb": "seek", "arguments": {"query": "sums", "to": "latest", "kafka": "/etc/passwd"}}, 400),
        ({"verb": "promote", "arguments": {"old_files": "hdfs://elsewhere/ha"}}, 403),
        ({"verb": "promote", "arguments": {"old_files": "/etc"}}, 400),
    ],
)
def test_what_cannot_be_asked_begins_nothing(served: Served, body: Any, code: int) -> None:
    assert served.ask("POST", PATH, body)[0] == code
    assert served.ask("POST", PATH, {"verb": "sweep"}, token="")[0] == 401


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[str]"]:
    program = [sys.executable, "-c", "import signal; signal.pause()"]
    with killed(subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)) as process:
        monkeypatch.setattr(OwnProcesses, "_started", lambda *_: process)
        yield process


def test_one_at_a_time_of_a_job_and_the_end_of_the_api_ends_it(served: Served, stuck: "subprocess.Popen[str]") -> None:
    assert served.ask("POST", PATH, {"verb": "sweep", "id": "s-1"})[0] == 202
    assert served.ask("POST", PATH, {"verb": "sweep", "id": "s-1"})[0] == 202
    code, said = served.ask("POST", PATH, {"verb": "sweep", "id": "s-2"})
    assert (code, "Another operation on job 'orders' runs" in said["detail"]) == (409, True)
    stuck.terminate()
    assert ended(served, "s-1")["state"] == "failed"
    assert served.get(f"{PATH}/s-2")[0] == 404


@pytest.mark.parametrize("lack", ["thread", "process"])
def test_what_this_host_cannot_begin_is_refused_and_may_be_asked_again(served: Served, quick: Path, lack: str) -> None:
    Led(quick).claim("orders", "a:1")
    asked = {"verb": "sweep", "id": "s-1", "arguments": {"dry_run": True}}
    with no_thread_free("ha-operation") if lack == "thread" else no_process():
        code, said = served.ask("POST", PATH, asked)
    assert (code, "nothing has begun" in said["detail"]) == (503, True)
    assert served.get(f"{PATH}/s-1")[0] == 404
    assert served.ask("POST", PATH, asked)[0] == 202
    assert ended(served, "s-1")["state"] == "done"


@contextmanager
def no_process() -> Iterator[None]:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", refused)
        yield

"""What takes longer than a request, over HTTP: begun once, its end is told, and bad input begins nothing."""

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

from ha.api.long_operations import OwnProcesses, words
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
from leader.job.admin import JobAdmin
from leader.job.barring import drained
from leader.layout import tree
from leader.layout.bar import bars
from store.local import LocalFiles
from tests.lacks import no_thread_free
from tests.limits import killed
from tests.unit.ha.api.serving import Served
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import wait_until

HOST = "/api/v1/hosts/z"

PATH = "/api/v1/jobs/orders/operations"


def drain_ended(served: Served) -> dict[str, Any]:
    wait_until(lambda: not served.get(HOST)[1]["running"], what="the drain ends")
    found: dict[str, Any] = served.get(HOST)[1]
    return found


def test_a_host_is_drained_and_may_lead_again(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    assert served.get(HOST)[1]["barred_until"] is None
    code, said = served.ask("POST", f"{HOST}/drain", {"reason": "new disks", "seconds": 600, "unseen": True})
    assert (code, said["host"]) == (202, "z")
    found = drain_ended(served)
    assert (found["by"], found["reason"], found["error"]) == ("http-from-127.0.0.1", "new disks", None)
    assert found["result"] == {"host": "z", "barred": 1, "moved": [], "left": []}
    files = LocalFiles(quick, durable=False)
    assert set(bars(tree.read(files, "orders")[1])) == {"z"}
    assert served.ask("POST", f"{HOST}/undrain", {})[1] == {
        "host": "z",
        "drained": True,
        "jobs": ["orders"],
        "not_yours": [],
    }
    assert drained(files) == {}
    assert served.get(HOST)[1]["barred_until"] is None


def test_a_host_that_no_process_is_known_by_is_not_let_lead(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    code, said = served.ask("POST", f"{HOST}/undrain", {})
    assert (code, "No process contends as 'z'" in said["detail"]) == (404, True)
    code, said = served.ask("POST", f"{HOST}/drain", {})
    assert (code, "If the name is right, ask with `unseen`." in said["detail"]) == (404, True), "and it has not begun"


@pytest.mark.parametrize(
    "body", [{"reason": "two\nlines"}, {"reason": "x" * 41}, {"seconds": 0}, {"seconds": 90 * 86_401}, {"why": "x"}]
)
def test_bad_input_begins_nothing(served: Served, quick: Path, body: dict[str, Any]) -> None:
    code, said = served.ask("POST", f"{HOST}/drain", body)
    assert (code, "cannot be used" in said["detail"]) == (400, True)
    assert drained(LocalFiles(quick, durable=False)) == {}


def test_a_name_that_is_no_contenders_is_refused(served: Served) -> None:
    assert served.get("/api/v1/hosts/-z")[0] == 400


def test_a_store_that_fails_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> list[str]:
        raise TimeoutError("No answer in time.")

    monkeypatch.setattr(JobAdmin, "jobs", fails)
    assert served.ask("POST", f"{HOST}/drain", {})[0] >= 500
    assert served.ask("POST", f"{HOST}/drain", {"unseen": True})[0] == 202
    assert drain_ended(served)["error"] == "No answer in time."


def test_a_drain_that_cannot_begin_is_refused_and_may_be_asked_again(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    asked = {"seconds": 600, "unseen": True}
    with no_thread_free("ha-drain"):
        code, said = served.ask("POST", f"{HOST}/drain", asked)
    assert (code, "nothing has begun" in said["detail"]) == (503, True)
    assert not served.get(HOST)[1]["running"]
    assert served.ask("POST", f"{HOST}/drain", asked)[0] == 202
    assert drain_ended(served)["error"] is None


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

"""Requests of operators: waiting for the answer, and jobs that no process runs, which the command ends itself."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.cli import progress, requests, restart
from ha.cli.commands import exit_code
from ha.cli.context import Context
from ha.cli.requests import Life
from ha.config.sources import load
from ha.config.stores import Stores
from leader.errors import Fenced, LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.job.exceptions import JobException
from leader.job.request_folder import Request, Requests, State
from leader.job.status import JobStatus
from store.clock import now
from store.errors import ConnectionLost
from tests.unit.ha.clocks import At
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led
from tests.unit.ha.views.states import STATES, Scene

ASKED = Request("1", "cancel", 3)
ANSWERED = Request("1", "cancel", 3, state=State.DONE, said="The job has ended.")


class Store:
    """Stands for the directory, and for the requests in it; each look takes the next of what happens."""

    def __init__(self, *happens: object) -> None:
        self.happens = list(happens)

    def look(self, *_: object) -> Any:
        found = self.happens.pop(0) if self.happens else ASKED
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize(
    "trouble", [ConnectionLost("No answer."), Fenced("Another leader has begun."), NoLeader("There is none now.")]
)
def test_trouble_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch, trouble: Exception) -> None:
    store = Store(trouble, ASKED, trouble, ANSWERED)
    monkeypatch.setattr(requests, "POLL_S", 0.0)
    monkeypatch.setattr(requests, "Requests", lambda _: SimpleNamespace(load=store.look))
    admin: Any = SimpleNamespace(directory=lambda _: None)
    assert requests._answer(admin, "orders", ASKED, now() + 60) == ANSWERED


def test_a_wait_is_said_again_and_again(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []

    def look(_: str) -> Request:
        said.append(capfd.readouterr().err)
        return ANSWERED if "ha: orders: waits for the answer (" in "".join(said) else ASKED

    monkeypatch.setattr(requests, "POLL_S", 0.001)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.001)
    monkeypatch.setattr(requests, "Requests", lambda _: SimpleNamespace(load=look))
    admin: Any = SimpleNamespace(directory=lambda _: None)
    assert requests._answer(admin, "orders", ASKED, now() + 60) == ANSWERED


def test_a_directory_that_cannot_be_found_for_a_while_does_not_end_it_either(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Store(ConnectionLost("No answer."), "there")
    monkeypatch.setattr(requests, "POLL_S", 0.0)
    monkeypatch.setattr(requests, "Requests", lambda _: SimpleNamespace(load=lambda _: ANSWERED))
    admin: Any = SimpleNamespace(directory=places.look)
    assert requests._answer(admin, "orders", ASKED, now() + 60) == ANSWERED


def test_the_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "Requests", lambda _: SimpleNamespace(load=lambda _: ASKED))
    admin: Any = SimpleNamespace(directory=lambda _: None)
    assert requests._answer(admin, "orders", ASKED, now()) == ASKED


def test_a_failure_before_the_answer_is_none_of_the_new_command(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[JobException] = []
    admin: Any = SimpleNamespace(exceptions=lambda _: [*kept], directory=lambda _: SimpleNamespace(list=lambda _: []))
    looks = Store(ASKED, ASKED, ANSWERED)

    def look(*_: object) -> Any:
        found = looks.look()
        if len(looks.happens) == 2:  # the old command fails while the leader has not looked yet
            kept.append(JobException(kind="exit-3", message="of the old one", epoch=3))
        if found is ANSWERED:  # and so does one of an epoch that is over, of which that leader hears late
            kept.append(JobException(kind="exit-3", message="of an older one", epoch=2))
        return found

    clock = At()
    monkeypatch.setattr(requests, "POLL_S", 0.0)
    monkeypatch.setattr(requests, "Requests", lambda _: SimpleNamespace(load=look))
    for name, stand_in in (("now", clock.now), ("BOOT_CLOCK", clock)):
        monkeypatch.setattr(requests, name, stand_in)
    life = Life(admin, "orders")
    assert requests._answer(admin, "orders", ASKED, now() + 60, life) == ANSWERED
    life.wait(clock.now() + 60, batch=False, epoch=3)
    kept.append(JobException(kind="exit-3", message="of the new one", epoch=3))
    with pytest.raises(LeaderError, match="has failed: of the new one"):
        life.wait(clock.now() + 60, batch=False, epoch=3)


@pytest.mark.parametrize("told", [{("swept-1", "sums")}, ConnectionLost("No answer.")])
def test_a_restart_from_a_savepoint_is_done_whether_or_not_its_undo_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told: object
) -> None:
    monkeypatch.setattr(restart, "trashed", Store(set(), told).look)
    monkeypatch.setattr(restart, "ask_and_wait", lambda *_: ANSWERED)
    monkeypatch.setattr(restart, "Programs", lambda _: SimpleNamespace(newest=lambda: None))
    monkeypatch.setattr(restart, "Life", lambda *_: SimpleNamespace(wait=lambda *_, **__: None))
    monkeypatch.setattr(Context, "admin", SimpleNamespace(directory=lambda _: None))
    asked = ["job", "restart", "orders", "--from", "before", "--files", tmp_path.as_uri(), "--zookeeper", ""]
    assert exit_code(asked) == 0
    assert ("`ha trash restore orders --query sums`" in "".join(capsys.readouterr())) == isinstance(told, set)


@pytest.fixture
def admin(quick: Path) -> Iterator[JobAdmin]:
    quick.mkdir()
    with closing(Stores(load({}))) as stores:
        yield JobAdmin(stores.files, None, 5)


@pytest.mark.parametrize(
    ("verb", "state", "ended"),
    [
        ("stop", "no-process", "FINISHED"),
        ("stop", "no-process-restarting", "FINISHED"),
        ("stop", "suspended", "FINISHED"),
        ("cancel", "no-process", "CANCELED"),
        ("cancel", "no-process-cancelling", "CANCELED"),
        ("cancel", "never-led", "CANCELED"),
    ],
)
def test_a_job_that_no_process_leads_is_ended_by_the_command(
    cli: CommandLine, quick: Path, admin: JobAdmin, verb: str, state: str, ended: str
) -> None:
    STATES[state][1](Scene(Led(quick), admin, "orders"))
    said = cli(f"job {verb} orders --request-id r1")
    done, undo = said.out.splitlines()
    assert done == f"orders: No process led the job: the command of the operator has ended it, and it is {ended}."
    assert undo == "`ha run --again orders`, with its COMMAND if none is stored, runs it again"
    assert said.err.startswith("orders: no process leads it")
    directory = admin.directory("orders")
    assert JobStatus(directory).read().value == ended
    found = Requests(directory).load("r1")
    assert found is not None
    assert (found.verb, found.state) == (verb, State.DONE)
    assert cli("job list --json").json[0]["lease"] == "released"


@pytest.mark.parametrize("state", ["no-process-failing", "no-process-cancelling"])
def test_what_was_about_to_end_otherwise_is_not_called_finished(
    cli: CommandLine, quick: Path, admin: JobAdmin, state: str
) -> None:
    STATES[state][1](Scene(Led(quick), admin, "orders"))
    assert "`ha job cancel orders` ends it for good" in cli("job stop orders", code=1).err


@pytest.mark.parametrize(
    ("line", "state", "said"),
    [
        ("job stop", "paused-left", "no contender may, while it is paused"),
        ("job restart", "no-process", "else start `ha run orders -- COMMAND` on a host"),
        ("job clean", "no-process", "`ha job cancel orders` ends it for good; then it can be cleaned up."),
    ],
)
def test_what_the_command_does_not_do_says_which_process_to_start(
    cli: CommandLine, quick: Path, admin: JobAdmin, line: str, state: str, said: str
) -> None:
    STATES[state][1](Scene(Led(quick), admin, "orders"))
    wait = "" if line == "job clean" else " --timeout 0.3"
    assert said in cli(f"{line} orders{wait}", code=1).err

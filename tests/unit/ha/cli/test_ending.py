"""``ha job stop`` and ``ha job cancel`` of a job that no process runs: the command ends it, or says what to start."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ha.config.sources import load
from ha.config.stores import Stores
from leader.job.admin import JobAdmin
from leader.job.request_folder import Requests, State
from leader.job.status import JobStatus
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led
from tests.unit.ha.views.states import STATES, Scene


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

"""``ha job submit`` and ``ha run`` without a command: real sidecars on ``file://`` run the newest stored version."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ha.cli.test_pausing import asked, listed
from tests.unit.ha.cli.test_status import LASTING, command
from tests.unit.ha.noting import NOTES, STAYS, Notes
from tests.unit.ha.noting import run as given
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until

PROGRAM = f"import os, rules\nos.chdir(os.environ['PLACE'])\n{NOTES}\nnote(rules.SAYS)\nstay()\n"


@pytest.fixture
def cache(workplace: Workplace) -> Path:
    """The user's cache, which is this test's alone; the notes are written where the test looks for them."""
    workplace.environment |= {"XDG_CACHE_HOME": str(workplace.work / "cache"), "PLACE": str(workplace.work)}
    return workplace.work / "cache" / "hybrid-ha" / "programs"


def submit(workplace: Workplace, says: str, *more: str) -> str:
    (workplace.work / "orders.py").write_text(PROGRAM)
    (workplace.work / "rules.py").write_text(f"SAYS = {says!r}\n")
    files = ("--file", "orders.py", "--file", "rules.py")
    return asked(workplace, "job", "submit", "orders", *files, *more, "--", "python3", "orders.py")


def run(workplace: Workplace, name: str, *options: str) -> Program:
    return workplace.ha("run", "orders", "--contender", name, *options, NAME=name, **LASTING)


def versions(workplace: Workplace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        asked(workplace, "job", "submit", "orders", "--list", "--json").splitlines()[0]
    )
    return found


def stored(workplace: Workplace, text: str) -> Path:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    (found,) = workplace.jobs.glob(f"orders/*/files/{sha256}=*")
    return found


def test_an_upgrade_and_a_roll_back_are_a_submit_and_a_restart(workplace: Workplace, notes: Notes, cache: Path) -> None:
    assert "version 1 is the newest one (2 files" in submit(workplace, "one")
    leader = run(workplace, "a")
    assert notes.until(1, leader)[:2] == ("a", "one")
    assert command(workplace, leader)["version"] == 1
    assert "version 2 is the newest one" in submit(workplace, "two")
    assert "version 2 is the newest one" in submit(workplace, "two"), "the same once more is no new version"
    asked(workplace, "job", "restart", "orders")
    assert notes.until(2, leader)[:2] == ("a", "two")
    assert notes.all()[1][3] == 1, "the epoch stays"
    assert command(workplace, leader)["version"] == 2
    wait_until(lambda: listed(workplace)["program"] == "version 2", what="the list says what runs")
    assert "runs        version 2" in asked(workplace, "job", "show", "orders")
    assert "version 3 is the newest one" in asked(workplace, "job", "submit", "orders", "--version", "1")
    asked(workplace, "job", "restart", "orders")
    assert notes.until(3, leader)[:2] == ("a", "one")
    assert "v3" in asked(workplace, "host", "status", "orders")
    assert [(each["version"], each["same_as"]) for each in versions(workplace)] == [(1, 0), (2, 0), (3, 1)]
    said = asked(workplace, "job", "submit", "orders", "--list")
    assert [line.split("  ")[3] for line in said.splitlines()] == ["python3 orders.py"] * 3
    assert said.rstrip().endswith("(as version 1)")
    assert len(list(cache.glob("[0-9a-f]*[0-9a-f]"))) >= 3


def test_a_restart_that_starts_another_program_than_the_stored_one_says_so(
    workplace: Workplace, notes: Notes, cache: Path
) -> None:
    del cache
    leader = given(workplace, "a", STAYS)
    notes.until(1, leader)
    said = submit(workplace, "one")
    assert "`ha job restart orders` starts it, if the sidecars of orders were started without a COMMAND" in said
    said = asked(workplace, "job", "restart", "orders", code=1)
    assert "Version 1 of job 'orders' is stored, and does not run: the sidecar a was started with another" in said
    notes.until(3, leader)


def test_a_restart_waits_until_the_new_command_lives(workplace: Workplace, notes: Notes, cache: Path) -> None:
    del cache
    submit(workplace, "one")
    leader = run(workplace, "a", "--restart-strategy", "fixed-delay")
    notes.until(1, leader)
    said = asked(workplace, "job", "restart", "orders", "--wait", "batch", "--timeout", "8", code=1)
    assert "Version 1 runs as a on " in said
    assert "The new command of job 'orders' runs, and has completed no batch in time." in said
    asked(workplace, "job", "submit", "orders", "--", "sh", "-c", "exit 3")
    said = asked(workplace, "job", "restart", "orders", code=1)
    assert "Version 2 runs as a on " in said
    assert "The new command of job 'orders' has failed: The command has ended with 3" in said


def test_a_damaged_file_is_refused_in_one_sentence_and_what_runs_goes_on(
    workplace: Workplace, notes: Notes, cache: Path
) -> None:
    del cache
    submit(workplace, "one")
    leader = run(workplace, "a")
    notes.until(1, leader)
    submit(workplace, "two")
    stored(workplace, "SAYS = 'two'\n").write_text("SAYS = 'evil'\n")
    said = asked(workplace, "job", "restart", "orders", code=1)
    assert "rules.py of version 2 of the program of job 'orders' is damaged: store the program again" in said
    other = run(workplace, "b")
    assert other.wait() == 1
    assert other.said.splitlines()[-1].startswith("ha: File rules.py of version 2")
    assert "is damaged" in asked(workplace, "job", "submit", "orders", "--version", "2", code=1)
    assert (len(notes.all()), command(workplace, leader)["version"]) == (1, 1)
    assert "version 2" in submit(workplace, "two"), "the same version, mended"
    asked(workplace, "job", "restart", "orders")
    assert notes.until(2, leader)[:2] == ("a", "two")


def test_a_warm_standby_of_an_older_version_is_replaced_before_it_leads(
    workplace: Workplace, notes: Notes, cache: Path
) -> None:
    del cache
    asked(workplace, "job", "submit", "orders", "--", "sleep", "1000")
    standby = run(workplace, "b", "--standby", "warm")
    standby.until_said("contending as b")
    wait_until(lambda: command(workplace, standby)["version"] == 1, what="it runs version 1")
    submit(workplace, "two")
    asked(workplace, "job", "restart", "orders")
    assert notes.until(1, standby)[:2] == ("b", "two")


def test_the_environment_is_what_was_allowed(workplace: Workplace, notes: Notes, cache: Path) -> None:
    del cache
    (workplace.work / "orders.py").write_text(
        f"import os\nplace = os.getcwd()\nos.chdir(os.environ['PLACE'])\n{NOTES}\n"
        "note([os.environ['A'], os.environ['B'], sorted(os.listdir(place))])\nstay()\n"
    )
    workplace.environment["B"] = "here"
    options = ("--file", "orders.py", "--env", "A=x=y", "--env", "B")
    asked(workplace, "job", "submit", "orders", *options, "--", "python3", "orders.py")
    workplace.environment["B"] = "elsewhere"
    assert notes.until(1, run(workplace, "a"))[1] == ["x=y", "here", ["orders.py"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give one of these: -- COMMAND, --version N, or --list."),
        (["--list", "--version", "1"], "Give one of these"),
        (["--list", "--env", "A=1"], "belong to a COMMAND"),
        (["--env", "HA_FILES=x", "--", "true"], "are the sidecar's own"),
        (["--env", "NEVER_SET_HERE", "--", "true"], "is not set here"),
        (["--file", "a/x.py", "--file", "b/x.py", "--", "true"], "Two files are called 'x.py'"),
        (["--file", "missing.py", "--", "true"], "does not exist"),
    ],
)
def test_what_cannot_be_stored_is_refused(workplace: Workplace, arguments: list[str], said: str) -> None:
    for folder in ("a", "b"):
        (workplace.work / folder).mkdir()
        (workplace.work / folder / "x.py").touch()
    assert said in asked(workplace, "job", "submit", "orders", *arguments, code=2).replace("\n", " ")
    assert not (workplace.jobs / "orders").exists()


def test_without_a_stored_program_a_command_is_needed(workplace: Workplace, cache: Path) -> None:
    del cache
    submit(workplace, "one")
    assert "has no stored version 7. Its versions: 1." in asked(
        workplace, "job", "submit", "orders", "--version", "7", code=1
    )
    program = workplace.ha("run", "sums")
    assert program.wait() in {1, 2, 3}
    assert "no job 'sums'" in program.said

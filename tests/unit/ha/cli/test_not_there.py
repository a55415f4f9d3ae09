"""Things that are not there: no verb succeeds about one, and each says where it looked, and what was perhaps meant."""

import json
import re
from pathlib import Path

import pytest

import ha
from ha.cli import app
from ha.cli.commands import VERBS
from ha.spark.tools import import_checkpoint
from tests.unit.ha.cli.test_sweep import home, written
from tests.unit.ha.cli.test_verbs import commands
from tests.unit.ha.command_line import CommandLine

COMMANDS = commands(app)
NEAR = "Did you mean 'orders'? `files` comes from HA_FILES."
NO_JOB = f"There is no job 'ordres' under JOBS. {NEAR}"
NO_QUERY = "Job 'orders' has no checkpoint of a query 'sumz': it has sums."
NO_DIRECTORY = "There is no checkpoint at NOWHERE"

ABOUT_NONE = {
    "job watch": "it waits for the first leader of a job that is still to come",
    "job roots": "it takes no name",
    "host config": "it takes no name",
    "host agent": "it serves, also about jobs that are still to come",
    "host daemon": "it creates the job, as the first contender does",
    "lab sandbox": "a group of its own",
}
"""Verbs that are given no name of a thing that must be there."""

GROUPS = "--files JOBS,NOWHERE"

TYPOS: dict[str, list[tuple[str, int, str]]] = {
    "run": [("run ordres", 3, NO_JOB)],
    "job list": [("job list", 0, "")],
    "job show": [("job show ordres", 3, NO_JOB)],
    "job logs": [("job logs ordres", 3, NO_JOB)],
    "job leader": [("job leader ordres", 3, NO_JOB)],
    "job queries": [("job queries ordres", 3, NO_JOB)],
    "job exceptions": [("job exceptions ordres", 3, NO_JOB)],
    "job history": [("job history ordres", 3, NO_JOB)],
    "job submit": [
        ("job submit ordres --list", 3, NO_JOB),
        ("job submit ordres --version 1", 3, NO_JOB),
        ("job submit orders --version 9", 2, "Job 'orders' has no stored version 9"),
    ],
    "job preflight": [
        ("job preflight ordres", 3, NO_JOB),
        ("job preflight ordres -- true", 3, NO_JOB),
        ("job preflight orders", 2, "Job 'orders' has no stored program"),
    ],
    "job stop": [("job stop ordres", 3, NO_JOB)],
    "job cancel": [("job cancel ordres", 3, NO_JOB)],
    "job restart": [("job restart ordres", 3, NO_JOB)],
    "job pause": [("job pause ordres", 3, NO_JOB)],
    "job resume": [("job resume ordres", 3, NO_JOB)],
    "job handover": [
        ("job handover ordres", 3, NO_JOB),
        ("job handover orders --to hots --timeout 0.1", 3, "Job 'orders' has no leader: its lease is free."),
    ],
    "job clean": [("job clean ordres", 3, NO_JOB)],
    "job move": [
        (f"job move orders --to GONE {GROUPS}", 2, "name one of the roots JOBS, NOWHERE"),
        (f"job move ordres --to NOWHERE {GROUPS}", 3, "There is no job 'ordres' under any of JOBS, NOWHERE."),
    ],
    "checkpoint list": [("checkpoint list ordres", 3, NO_JOB)],
    "checkpoint newest": [("checkpoint newest ordres", 3, NO_JOB)],
    "checkpoint inspect": [
        ("checkpoint inspect ordres", 3, NO_JOB),
        ("checkpoint inspect bare", 3, "Job 'bare' has no checkpoint of a query yet."),
        ("checkpoint inspect orders sumz", 3, NO_QUERY),
        ("checkpoint inspect NOWHERE", 2, NO_DIRECTORY),
        ("checkpoint inspect EMPTY", 2, "There is no checkpoint at EMPTY"),
    ],
    "checkpoint state": [
        ("checkpoint state ordres sums", 3, NO_JOB),
        ("checkpoint state orders sumz", 3, NO_QUERY),
        ("checkpoint state orders sums --operator 99", 2, "The query has no operator 99 with state: it has 0 (join)."),
    ],
    "checkpoint verify": [
        ("checkpoint verify ordres", 3, NO_JOB),
        ("checkpoint verify bare", 3, "Job 'bare' has no checkpoint of a query yet."),
        ("checkpoint verify orders sumz", 3, NO_QUERY),
        ("checkpoint verify NOWHERE", 2, NO_DIRECTORY),
        ("checkpoint verify EMPTY", 2, "There is no checkpoint at EMPTY"),
    ],
    "checkpoint export": [
        ("checkpoint export ordres sums COPY", 3, NO_JOB),
        ("checkpoint export orders sumz COPY", 1, NO_QUERY),
        ("checkpoint export orders sums COPY --batch 99", 1, "Batch 99 of query 'sums' is not retained: take one from"),
    ],
    "checkpoint import": [("checkpoint import orders more NOWHERE", 1, "There is nothing at NOWHERE")],
    "checkpoint rewind": [
        ("checkpoint rewind ordres sums --to 1", 3, NO_JOB),
        ("checkpoint rewind orders sumz --to 1", 1, NO_QUERY),
        ("checkpoint rewind orders sums --to 99", 1, "Batch 99 of query 'sums' is not retained: take one from"),
    ],
    "checkpoint seek": [
        ("checkpoint seek ordres sums --to latest --kafka a:1", 3, NO_JOB),
        ("checkpoint seek orders sumz --to latest --kafka a:1", 1, NO_QUERY),
    ],
    "checkpoint rescale": [
        ("checkpoint rescale ordres sums --partitions 2", 3, NO_JOB),
        ("checkpoint rescale orders sumz --partitions 2", 1, NO_QUERY),
    ],
    "checkpoint sweep": [
        ("checkpoint sweep ordres", 3, NO_JOB),
        ("checkpoint sweep orders --remove sumz", 1, "There is no checkpoint of a query 'sumz': there are sums."),
        ("checkpoint sweep NOWHERE", 2, NO_DIRECTORY),
    ],
    "savepoint take": [("savepoint take ordres", 3, NO_JOB)],
    "savepoint list": [("savepoint list ordres", 3, NO_JOB)],
    "savepoint dispose": [
        ("savepoint dispose ordres mine", 3, NO_JOB),
        ("savepoint dispose orders befor", 1, "no savepoint.json. Beside it: before."),
        ("savepoint dispose orders NOWHERE", 1, "There is no savepoint at NOWHERE"),
    ],
    "replica run": [
        ("replica run ordres --to NOWHERE --once", 3, NO_JOB),
        ("replica run orders --to COPY --query sumz --once", 1, NO_QUERY),
    ],
    "replica status": [
        ("replica status ordres --to NOWHERE", 3, NO_JOB),
        ("replica status orders --to NOWHERE", 1, "There is no replica of job 'orders' at NOWHERE"),
    ],
    "replica promote": [("replica promote ordres", 3, f"`ha replica run ordres --to URI` makes one. {NEAR}")],
    "output list": [
        ("output list ordres", 3, NO_JOB),
        ("output list bare", 3, "Job 'bare' has no output"),
        ("output list orders nope", 3, "Job 'orders' has no output 'nope': it has none."),
    ],
    "output verify": [
        ("output verify ordres", 3, NO_JOB),
        ("output verify bare", 3, "Job 'bare' has no output"),
        ("output verify orders nope", 3, "Job 'orders' has no output 'nope': it has none."),
    ],
    "output repair": [
        ("output repair ordres", 3, NO_JOB),
        ("output repair bare", 3, "Job 'bare' has no output"),
        ("output repair orders nope", 3, "Job 'orders' has no output 'nope': it has none."),
    ],
    "output merge": [
        ("output merge ordres", 3, NO_JOB),
        ("output merge bare", 3, "Job 'bare' has no output"),
        ("output merge orders nope", 3, "Job 'orders' has no output 'nope': it has none."),
    ],
    "output begin-anew": [
        ("output begin-anew ordres nope", 3, NO_JOB),
        ("output begin-anew orders nope", 3, "Job 'orders' has no output 'nope': it has none."),
    ],
    "trash list": [("trash list ordres", 3, NO_JOB)],
    "trash restore": [
        ("trash restore ordres", 3, NO_JOB),
        ("trash restore orders --query sumz", 1, "no checkpoint of query 'sumz': it holds none."),
    ],
    "trash empty": [("trash empty ordres", 3, NO_JOB)],
    "host status": [("host status ordres", 1, "contends for job 'ordres' on this host: they do for ")],
    "host doctor": [("host doctor ordres", 1, "There is no such job under JOBS. -> Did you mean orders?")],
    "host drain": [("host drain hots", 1, "none has led one under that name. Did you mean host?")],
    "host undrain": [("host undrain hots", 1, "No process contends as 'hots' for any of the 2 jobs")],
    "lab drill": [("lab drill run nope", 2, "There is no drill 'nope'")],
    "lab check": [("lab check GONE", 2, "'GONE' does not exist")],
}
"""Of each verb: what a user gives it by mistake, the exit code, and what it says."""


@pytest.fixture(scope="module")
def jobs(quick_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs: "orders" has a checkpoint of the query "sums", and "bare" has none; "host" has led both."""
    with ha.lead("orders", contender="host") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path_factory.mktemp("elsewhere") / "sums").as_uri())
        place = home(leadership).parents[1] / "savepoints/before"
        place.mkdir(parents=True)
        (place / "savepoint.json").touch()
    with ha.lead("bare", contender="host"):
        pass
    return quick_module


def test_each_verb_is_in_the_table() -> None:
    assert set(TYPOS) | set(ABOUT_NONE) == set(VERBS)


NAMES = {"job", "jobs", "target", "query", "queries", "removed", "host", "where", "savepoint", "name", "successor"}
"""Parameters that name a thing which is there."""

MADE = {("job stop", "savepoint"), ("checkpoint import", "job"), ("checkpoint import", "query")}
OF_LEADER = {("run", "savepoint"), ("job restart", "query"), ("job restart", "savepoint")}
"""The sidecar, or its program, says so: ``tests/unit/ha/sidecar`` has these."""

WRONG = re.compile("ordres|sumz|hots|befor|nope")


def test_each_name_that_a_verb_takes_is_mistaken_once() -> None:
    mistaken = MADE | OF_LEADER
    verbs = TYPOS.keys() & COMMANDS.keys() - {"lab check"}  # which looks for its directory at once
    for verb in verbs:
        for line, *_ in TYPOS[verb]:
            given = COMMANDS[verb].make_context(verb, line.split()[len(verb.split()) :]).params
            mistaken |= {(verb, name) for name, value in given.items() if WRONG.search(str(value))}
    assert {(verb, each.name) for verb in verbs for each in COMMANDS[verb].params if each.name in NAMES} <= mistaken


@pytest.mark.parametrize(("line", "code", "said"), [each for rows in TYPOS.values() for each in rows if each[2]])
def test_no_verb_succeeds_about_a_thing_that_is_not_there(
    line: str, code: int, said: str, jobs: Path, tmp_path: Path, cli: CommandLine
) -> None:
    places = {
        "JOBS": jobs.as_uri(),
        "NOWHERE": (tmp_path / "nowhere").as_uri(),
        "EMPTY": tmp_path.as_uri(),
        "COPY": (tmp_path / "copy").as_uri(),
        "GONE": str(tmp_path / "gone"),
    }
    for name, place in places.items():
        line, said = line.replace(name, place), said.replace(name, place)
    found = cli(line, code=code)
    assert said in " ".join((found.out + found.err).split())
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_list_says_where_it_looked(tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_FILES", tmp_path.as_uri())
    assert cli("job list").err == f"There is no job under {tmp_path.as_uri()}. `files` comes from HA_FILES.\n"
    monkeypatch.delenv("HA_FILES")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = cli("job list --json")
    assert found.json == []
    assert "`files` was not given, so this is the default: set HA_FILES" in found.err
    assert "`files` was not given" in cli("job stop ordres", code=3).err


def test_a_savepoint_of_another_job_is_kept(jobs: Path, tmp_path: Path, cli: CommandLine) -> None:
    place = tmp_path / "saved"
    place.mkdir()
    manifest = {"job": "orders", "epoch": 1, "id": "7", "at": "", "by": "", "stopped": False, "spark": ""}
    (place / "savepoint.json").write_text(json.dumps({**manifest, "queries": []}))
    said = cli("savepoint dispose bare", place.as_uri(), code=1).err
    assert "is of job 'orders', not of 'bare': it is kept." in said
    assert place.exists()
    assert jobs.exists()


def test_a_name_that_only_the_history_knows_may_be_drained_and_any_other_with_a_flag(
    jobs: Path, cli: CommandLine
) -> None:
    assert "host was not drained" in cli("host undrain host").out
    cli("host drain later --unseen")
    assert "later may lead again" in cli("host undrain later").out
    assert jobs.exists()

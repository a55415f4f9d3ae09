"""Savepoints with real sidecars and commands, whose checkpoints a simulated Spark has written."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from leader.layout.names import LeaderDirectory
from tests.patience import PATIENCE_S
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.noting import NOTES, Notes, run, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until

QUERY = (
    NOTES
    + """
import pathlib, shutil, urllib.parse
home = pathlib.Path(urllib.parse.urlsplit(os.environ["HA_LEADER_DIRECTORY"]).path)
if not (home / "spark" / "sums").exists():
    shutil.copytree("elsewhere", home / "spark" / "sums")
note(max(int(each.name) for each in (home / "spark" / "sums" / "commits").iterdir()))
signal.signal(signal.SIGTERM, lambda *_: (note("asked"), sys.exit(0)))
stay()
"""
)
"""A program that begins with the batches of ``elsewhere``, and notes the newest batch that it finds."""


def elsewhere(workplace: Workplace, batch: int) -> None:
    shutil.rmtree(workplace.work / "elsewhere", ignore_errors=True)
    for path, data in until_batch(HDFS, batch).files.items():
        place = workplace.work / "elsewhere" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


@pytest.fixture
def leader(workplace: Workplace, notes: Notes) -> Program:
    elsewhere(workplace, 4)
    made = run(workplace, "a", QUERY)
    notes.until(1, made)
    return made


def home(workplace: Workplace, job: str = "orders") -> Path:
    (found,) = [each for each in (workplace.jobs / job).iterdir() if LeaderDirectory.parse(each.name)]
    return found


def ask(workplace: Workplace, verb: str, *options: str) -> Program:
    asks = verb not in ("savepoint list", "savepoint dispose")
    return workplace.ha(*verb.split(), "orders", *(["--timeout", f"{PATIENCE_S:g}"] if asks else []), *options)


def asked(workplace: Workplace, verb: str, *options: str) -> str:
    program = ask(workplace, verb, *options)
    assert program.wait() == 0, program.said
    return program.output.read_text()


def test_a_job_is_saved_as_it_runs_listed_and_disposed_of(workplace: Workplace, leader: Program) -> None:
    place = (workplace.work / "saved").as_uri()
    said = asked(workplace, "savepoint take", place)
    assert said.startswith(f"orders: Savepoint {place}: sums after batch 4: ")
    found = json.loads(asked(workplace, "savepoint take", "--json", "--request-id", "before-upgrade"))
    assert (found["state"], found["result"]["savepoint"]) == ("done", "before-upgrade")
    assert [(each["name"], each["batch"]) for each in found["result"]["queries"]] == [("sums", 4)]
    (listed,) = json.loads(asked(workplace, "savepoint list", "--json"))
    assert (listed["name"], listed["queries"]) == ("before-upgrade", found["result"]["queries"])
    assert "before-upgrade  epoch 1  sums after batch 4: " in asked(workplace, "savepoint list")
    for where in (place, "before-upgrade"):
        assert asked(workplace, "savepoint dispose", where, "--yes").endswith(
            f"orders: the savepoint {where} is deleted\n"
        )
    assert not (workplace.work / "saved").exists()
    none = ask(workplace, "savepoint list")
    assert (none.wait(), "it has no savepoint of its own" in none.said) == (0, True)
    again = ask(workplace, "savepoint dispose", "before-upgrade")
    assert (again.wait(), "There is no savepoint" in again.said) == (1, True)
    assert leader.process.poll() is None


def test_a_savepoint_that_fails_leaves_the_job_alone(workplace: Workplace, leader: Program, notes: Notes) -> None:
    (workplace.work / "taken").mkdir()
    failed = ask(workplace, "savepoint take", (workplace.work / "taken").as_uri())
    assert failed.wait() == 1
    assert "is failed. There is no savepoint. " in failed.said
    assert "exists already: choose another place for the savepoint. The job goes on." in failed.said
    late = workplace.ha("savepoint", "take", "orders", "--timeout", "0.000001")
    assert (late.wait(), "It was not complete within 1e-06 s." in late.said) == (1, True)
    assert len(notes.all()) == 1
    assert leader.process.poll() is None


def test_a_job_is_stopped_with_a_savepoint_and_another_one_begins_from_it_once(
    workplace: Workplace, leader: Program, notes: Notes
) -> None:
    place = (workplace.work / "saved").as_uri()
    said = asked(workplace, "job stop", "--savepoint", place)
    assert said.startswith(f"orders: The job has ended. Savepoint {place}: sums after batch 4: ")
    assert leader.wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]
    elsewhere(workplace, 1)  # what a job would begin with that finds no checkpoint
    second = begin_from(workplace, "b", place)
    assert notes.until(3, second)[:2] == ("b", 4)
    commit(workplace, "returns", 5)
    second.process.terminate()
    second.wait()
    third = begin_from(workplace, "c", place)
    assert notes.until(5, third)[:2] == ("c", 5), "it has begun there once, and goes on"


def test_a_job_that_has_come_further_does_not_begin_from_a_savepoint_and_none_from_nothing(
    workplace: Workplace, leader: Program, notes: Notes
) -> None:
    place = (workplace.work / "saved").as_uri()
    for where, said in ((place, "There is no savepoint at"), ("s3://b/x", "is no place of a savepoint")):
        refused = begin_from(workplace, "b", where)
        assert (refused.wait(), said in refused.said) == (1 if where == place else 2, True)
    asked(workplace, "savepoint take", place)
    commit(workplace, "orders", 5)
    asked(workplace, "job cancel")
    leader.wait()
    refused = begin_from(workplace, "c", place, "--again", job="orders")
    assert refused.wait() == 1
    assert "query sums has come to batch 5, and the savepoint has batch 4. Add --discard-newer" in refused.said
    again = begin_from(workplace, "d", place, "--again", "--discard-newer", job="orders")
    assert notes.until(3, again)[:2] == ("d", 4)


def test_a_stop_without_its_savepoint_has_failed_and_the_job_goes_on(
    workplace: Workplace, leader: Program, notes: Notes
) -> None:
    (workplace.work / "taken").mkdir()
    failed = ask(workplace, "job stop", "--savepoint", (workplace.work / "taken").as_uri())
    assert (failed.wait(), "choose another place for the savepoint. The job goes on." in failed.said) == (1, True)
    notes.until(3, leader)
    failed = ask(workplace, "job stop", "--savepoint", "--drain")
    assert (failed.wait(), "had not processed all that there was" in failed.said) == (1, True)
    notes.until(5, leader)
    assert [(what, epoch) for _, what, _, epoch in notes.all()] == [(4, 1), ("asked", 1)] * 2 + [(4, 1)]
    wait_until(lambda: state(workplace)[2] == ["status=RUNNING"], what="it runs")


def test_a_job_is_started_again_from_a_savepoint_and_that_is_undone(
    workplace: Workplace, leader: Program, notes: Notes
) -> None:
    asked(workplace, "savepoint take", "--request-id", "before")
    commit(workplace, "orders", 5)
    refused = ask(workplace, "job restart", "--from", "before")
    assert (refused.wait(), "Add --discard-newer" in refused.said) == (1, True)
    assert len(notes.all()) == 1, "it was not stopped"
    said = asked(workplace, "job restart", "--from", "before", "--discard-newer")
    assert said.startswith("orders: The command has been started again. It goes on from savepoint before: sums after ")
    assert notes.until(3, leader)[1:4:2] == (4, 1)
    asked(workplace, "job stop")
    leader.wait()
    assert workplace.ha("trash", "restore", "orders", "--query", "sums").wait() == 0
    again = begin_from(workplace, "b", "before", "--again", job="orders")
    assert notes.until(5, again)[:2] == ("b", 5)


def begin_from(workplace: Workplace, name: str, where: str, *options: str, job: str = "returns") -> Program:
    command = (sys.executable, "-c", QUERY)
    return workplace.ha("run", job, "--contender", name, "--from", where, *options, "--", *command, NAME=name)


def commit(workplace: Workplace, job: str, batch: int) -> None:
    for path, data in until_batch(HDFS, batch).files.items():
        place = home(workplace, job) / "spark" / "sums" / path
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

"""``ha job restart JOB --query Q`` and its like: the program does it, and the sidecar passes on what it says."""

import json

from tests.patience import PATIENCE_S
from tests.unit.ha.noting import NOTES, STAYS, Notes, run, state
from tests.unit.ha.programs import Program, Workplace

KNOWS = (
    NOTES
    + """
import pathlib, time
from ha.config.sources import load
from ha.program import request_file
from ha.program.request_file import Answer
from leader.job.request_folder import State
load({})
path = pathlib.Path(os.environ["HA_RESTART"])
request_file.enable(path)
note("runs")
while (wanted := request_file.asked(path)) is None: time.sleep(0.01)
note(wanted.what)
"""
)
"""A program that knows how to start a query again, as :class:`ha.spark.Job` does."""
RESTARTS = KNOWS + "request_file.answer(path, Answer(wanted.id, State.DONE, 'Started again: clean, sums.'))\nstay()"


def ask(workplace: Workplace, *options: str) -> Program:
    return workplace.ha("job", "restart", "orders", "--timeout", f"{PATIENCE_S:g}", "--query", "clean", *options)


def test_the_program_starts_the_query_again_and_goes_on(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", RESTARTS)
    notes.until(1, leader)
    asked = ask(workplace, "--json")
    assert asked.wait() == 0, asked.said
    answer = json.loads(asked.output.read_text())
    assert (answer["verb"], answer["state"], answer["said"]) == ("restart-query", "done", "Started again: clean, sums.")
    assert [note for _, note, *_ in notes.all()] == ["runs", "clean"], "the command has not been started again"
    assert state(workplace)[2] == ["status=RUNNING"]


def test_a_query_is_started_once_for_one_id(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", RESTARTS)
    notes.until(1, leader)
    answers = []
    for _ in range(2):
        asked = ask(workplace, "--request-id", "one", "--json")
        assert asked.wait() == 0, asked.said
        answers.append(json.loads(asked.output.read_text()))
    assert answers[0] == answers[1]
    assert [note for _, note, *_ in notes.all()] == ["runs", "clean"]
    other = workplace.ha("job", "restart", "orders", "--query", "sums", "--request-id", "one")
    assert other.wait() == 4
    assert "take another id" in other.said


def test_a_program_that_does_not_know_how_is_left_alone(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    asked = ask(workplace)
    assert asked.wait() == 1
    assert "is refused. Its program does not use ha.spark.Job" in asked.said
    assert len(notes.all()) == 1


def test_a_query_and_a_savepoint_are_not_asked_for_together(workplace: Workplace) -> None:
    asked = ask(workplace, "--from", "before")
    assert asked.wait() == 2
    assert "give --query or --from" in asked.said

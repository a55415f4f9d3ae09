"""``ha restart JOB --query Q`` and its like: the program does it, and the sidecar passes on what it says."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ha.leadership import program_file
from ha.leadership.program_file import Answer, Wanted
from ha.sidecar import asked_program
from ha.sidecar.asked_program import WITHIN_S, AskedProgram
from leader.job.requests import Request, State
from tests.unit.ha.noting import NOTES, STAYS, Notes, run, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import PATIENCE

KNOWS = (
    NOTES
    + """
VARIABLE = "HA_RESTART"
import pathlib, time
from ha.config.sources import load
from ha.leadership import program_file
from ha.leadership.program_file import Answer
from leader.job.requests import State
load({})
path = pathlib.Path(os.environ[VARIABLE])
program_file.enable(path)
note("runs")
while (wanted := program_file.asked(path)) is None: time.sleep(0.01)
note(wanted.what)
"""
)
"""A program that knows how to start a query again, as :class:`ha.spark.Job` does."""
RESTARTS = KNOWS + "program_file.answer(path, Answer(wanted.id, State.DONE, 'Started again: clean, sums.'))\nstay()"
RESCALES = KNOWS.replace("HA_RESTART", "HA_EXECUTORS") + (
    "program_file.answer(path, Answer(wanted.id, State.DONE, 'Executors: 4, and 2 before.'))\nstay()"
)
DIES = KNOWS + "sys.exit(3)"


def ask(workplace: Workplace, *options: str) -> Program:
    return workplace.ha("restart", "orders", "--timeout", f"{PATIENCE:g}", "--query", "clean", *options)


def test_the_program_starts_the_query_again_and_goes_on(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", RESTARTS)
    notes.until(1, leader)
    asked = ask(workplace, "--json")
    assert asked.wait() == 0, asked.said
    answer = json.loads(asked.output.read_text())
    assert (answer["verb"], answer["state"], answer["said"]) == ("restart-query", "done", "Started again: clean, sums.")
    assert [note for _, note, *_ in notes.all()] == ["runs", "clean"], "the command has not been started again"
    assert state(workplace)[2] == ["status=RUNNING"]


def test_the_program_asks_its_cluster_for_executors_once(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", RESCALES)
    notes.until(1, leader)
    answers = []
    for _ in range(2):
        asked = workplace.ha("rescale", "orders", "--executors", "4", "--request-id", "four", "--json")
        assert asked.wait() == 0, asked.said
        answers.append(json.loads(asked.output.read_text()))
    assert answers[0] == answers[1]
    assert (answers[0]["verb"], answers[0]["state"]) == ("rescale-executors", "done")
    assert answers[0]["said"] == "Executors: 4, and 2 before."
    assert [note for _, note, *_ in notes.all()] == ["runs", "4"]
    other = workplace.ha("rescale", "orders", "--executors", "5", "--request-id", "four")
    assert other.wait() == 4
    assert "take another id" in other.said


def test_a_program_that_does_not_know_how_is_left_alone(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    asked = ask(workplace)
    assert asked.wait() == 1
    assert "is refused. Its program does not use ha.spark.Job" in asked.said
    assert len(notes.all()) == 1


def test_a_program_that_ends_meanwhile_is_told_of(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", DIES)
    notes.until(1, leader)
    asked = ask(workplace)
    assert asked.wait() == 1
    assert "The command has ended meanwhile" in asked.said


def test_a_query_and_a_savepoint_are_not_asked_for_together(workplace: Workplace) -> None:
    asked = ask(workplace, "--from", "before")
    assert asked.wait() == 2
    assert "give --query or --from" in asked.said


# --- step by step


class Scene:
    """A command, and an operator's request."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "restart-1"
        self.command = mock.Mock(granted=True, files=SimpleNamespace(asking_for=lambda _: self.path))
        self.requests: Any = SimpleNamespace(
            of_program=None, tell=lambda _, said: self.told.append(said), answer_of_program=self._answer
        )
        self.told: list[str] = []
        self.answers: list[tuple[State, str]] = []
        self.made = AskedProgram(self.command)

    def _answer(self, state: State, said: str) -> None:
        if self.requests.of_program is not None:
            self.requests.of_program = None
            self.answers.append((state, said))

    def begin(self, identity: str = "one", verb: str = "restart-query") -> None:
        arguments = {"query": "clean", "executors": "4"}
        self.requests.of_program = Request(identity, verb, 1, arguments=arguments)
        self.made.begin(self.requests.of_program, self.requests)

    def says(self, state: State, said: str, identity: str = "one") -> None:
        program_file.answer(self.path, Answer(identity, state, said))
        self.made.look()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    program_file.enable(made.path)
    return made


def test_what_the_program_says_is_passed_on_once(scene: Scene) -> None:
    scene.made.look()
    scene.begin()
    assert program_file.asked(scene.path) == Wanted("one", "clean")
    scene.made.look()
    for _ in range(2):
        scene.says(State.ACCEPTED, "Stopped: clean.")
    assert (scene.told, scene.answers) == (["Stopped: clean."], [])
    for _ in range(2):
        scene.says(State.DONE, "Started again: clean.")
    assert scene.answers == [(State.DONE, "Started again: clean.")]


def test_the_answer_to_another_request_is_not_taken_for_that_to_this_one(scene: Scene) -> None:
    scene.says(State.DONE, "Started again: sums.", "before")
    scene.begin()
    scene.made.look()
    assert (scene.told, scene.answers) == ([], [])


def test_what_was_said_just_before_the_end_counts(scene: Scene) -> None:
    scene.begin()
    program_file.answer(scene.path, Answer("one", State.DONE, "Started again: clean."))
    scene.made.command_ended()
    assert scene.answers == [(State.DONE, "Started again: clean.")]


def test_after_the_leadership_nothing_is_answered(scene: Scene) -> None:
    scene.begin()
    scene.made.end()
    scene.says(State.DONE, "Started again: clean.")
    scene.made.command_ended()
    assert scene.answers == []


def test_a_program_that_never_answers_is_not_waited_for_for_ever(scene: Scene) -> None:
    with mock.patch.object(asked_program, "now", return_value=100.0):
        scene.begin()
    for at, answers in ((100.0 + WITHIN_S - 0.001, 0), (100.0 + WITHIN_S, 1)):
        with mock.patch.object(asked_program, "now", return_value=at):
            scene.made.look()
        assert len(scene.answers) == answers
    assert scene.answers[0][0] is State.UNKNOWN


def test_a_command_that_does_not_run_or_does_not_understand_is_not_asked(scene: Scene) -> None:
    scene.command.granted = False
    scene.begin()
    scene.command.granted = True
    program_file.disable(scene.path)
    scene.begin()
    assert [state for state, _ in scene.answers] == [State.REFUSED] * 2
    assert program_file.asked(scene.path) is None


@pytest.mark.parametrize(
    ("verb", "wanted", "unable", "later"),
    [
        ("restart-query", "clean", "does not use ha.spark.Job", "all of its queries start when it runs again"),
        ("rescale-executors", "4", "not in a block of ha.spark.lead", "with the number of its own settings"),
    ],
)
def test_each_verb_has_its_own_words(scene: Scene, verb: str, wanted: str, unable: str, later: str) -> None:
    scene.begin(verb=verb)
    assert program_file.asked(scene.path) == Wanted("one", wanted)
    scene.made.command_ended()
    scene.command.granted = False
    scene.begin(verb=verb)
    scene.command.granted = True
    program_file.disable(scene.path)
    scene.begin(verb=verb)
    assert [state for state, _ in scene.answers] == [State.FAILED, State.REFUSED, State.REFUSED]
    said = [each for _, each in scene.answers]
    assert said[0].startswith("The command has ended meanwhile")
    assert later in said[0]
    assert said[1].startswith("Its command does not run now")
    assert later in said[1]
    assert unable in said[2]


def test_a_file_that_cannot_be_written_is_said(scene: Scene) -> None:
    with mock.patch.object(program_file, "ask", side_effect=OSError(28, "No space left on device")):
        scene.begin()
    assert scene.answers == [(State.FAILED, "Its program could not be asked: No space left on device.")]


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"id": 1}', b"\xff"])
def test_a_damaged_file_says_nothing(scene: Scene, damaged: bytes) -> None:
    scene.path.write_bytes(damaged)
    scene.path.with_name("restart-1.answer").write_bytes(damaged)
    assert program_file.asked(scene.path) is None
    assert program_file.answered(scene.path, "one") is None

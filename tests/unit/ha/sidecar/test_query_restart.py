"""``ha restart JOB --query Q``: the program starts a query again, and the sidecar passes on what it says."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ha.leadership import restart_file
from ha.leadership.restart_file import Answer, Wanted
from ha.sidecar import query_restart
from ha.sidecar.query_restart import WITHIN_S, QueryRestart
from leader.job.requests import Request, State
from tests.unit.ha.noting import NOTES, STAYS, Notes, run, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import PATIENCE

KNOWS = (
    NOTES
    + """
import pathlib, time
from ha.leadership import restart_file
from ha.leadership.restart_file import Answer
from leader.job.requests import State
path = pathlib.Path(os.environ["HA_RESTART"])
restart_file.enable(path)
note("runs")
while (wanted := restart_file.asked(path)) is None: time.sleep(0.01)
note(wanted.query)
"""
)
"""A program that knows how to start a query again, as :class:`ha.spark.Job` does."""
RESTARTS = KNOWS + "restart_file.answer(path, Answer(wanted.id, State.DONE, 'Started again: clean, sums.'))\nstay()"
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
        self.command = mock.Mock(granted=True, restart_file=self.path)
        self.requests: Any = SimpleNamespace(
            restarting=None, tell=lambda _, said: self.told.append(said), answer_restarting=self._answer
        )
        self.told: list[str] = []
        self.answers: list[tuple[State, str]] = []
        self.made = QueryRestart(self.command)

    def _answer(self, state: State, said: str) -> None:
        if self.requests.restarting is not None:
            self.requests.restarting = None
            self.answers.append((state, said))

    def begin(self, identity: str = "one") -> None:
        self.requests.restarting = Request(identity, "restart-query", 1, arguments={"query": "clean"})
        self.made.begin(self.requests.restarting, self.requests)

    def says(self, state: State, said: str, identity: str = "one") -> None:
        restart_file.answer(self.path, Answer(identity, state, said))
        self.made.look()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    restart_file.enable(made.path)
    return made


def test_what_the_program_says_is_passed_on_once(scene: Scene) -> None:
    scene.made.look()
    scene.begin()
    assert restart_file.asked(scene.path) == Wanted("one", "clean")
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
    restart_file.answer(scene.path, Answer("one", State.DONE, "Started again: clean."))
    scene.made.command_ended()
    assert scene.answers == [(State.DONE, "Started again: clean.")]


def test_after_the_leadership_nothing_is_answered(scene: Scene) -> None:
    scene.begin()
    scene.made.end()
    scene.says(State.DONE, "Started again: clean.")
    scene.made.command_ended()
    assert scene.answers == []


def test_a_program_that_never_answers_is_not_waited_for_for_ever(scene: Scene) -> None:
    with mock.patch.object(query_restart, "now", return_value=100.0):
        scene.begin()
    for at, answers in ((100.0 + WITHIN_S - 0.001, 0), (100.0 + WITHIN_S, 1)):
        with mock.patch.object(query_restart, "now", return_value=at):
            scene.made.look()
        assert len(scene.answers) == answers
    assert scene.answers[0][0] is State.UNKNOWN


def test_a_command_that_does_not_run_or_does_not_understand_is_not_asked(scene: Scene) -> None:
    scene.command.granted = False
    scene.begin()
    scene.command.granted = True
    restart_file.disable(scene.path)
    scene.begin()
    assert [state for state, _ in scene.answers] == [State.REFUSED] * 2
    assert restart_file.asked(scene.path) is None


def test_a_file_that_cannot_be_written_is_said(scene: Scene) -> None:
    with mock.patch.object(restart_file, "ask", side_effect=OSError(28, "No space left on device")):
        scene.begin()
    assert scene.answers == [(State.FAILED, "Its program could not be asked: No space left on device.")]


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"id": 1}', b"\xff"])
def test_a_damaged_file_says_nothing(scene: Scene, damaged: bytes) -> None:
    scene.path.write_bytes(damaged)
    scene.path.with_name("restart-1.answer").write_bytes(damaged)
    assert restart_file.asked(scene.path) is None
    assert restart_file.answered(scene.path, "one") is None

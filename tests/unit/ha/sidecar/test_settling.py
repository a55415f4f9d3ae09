"""Stopping and restarting a command whose queries can end in order: its present batches are not interrupted."""

import pytest

from tests.patience import PATIENCE_S
from tests.unit.ha.noting import NOTES, Notes, run, state
from tests.unit.ha.programs import Program, Workplace

ABLE = (
    NOTES
    + """
import pathlib, time
asked = pathlib.Path(os.environ["HA_SETTLE"])
pathlib.Path(f"{asked}.able").touch()
signal.signal(signal.SIGTERM, lambda *_: (note("interrupted"), sys.exit(0)))
note("runs")
while not asked.exists(): time.sleep(0.01)
note(json.loads(asked.read_text()))
"""
)
"""A program that knows how its queries end in order, as :class:`ha.spark.Job` does."""
SETTLES = ABLE + "os.kill(os.getpid(), signal.SIGKILL)"


def ask(workplace: Workplace, verb: str) -> str:
    asked = workplace.ha("job", verb, "orders", "--timeout", f"{PATIENCE_S:g}")
    assert asked.wait() == 0, asked.said
    return asked.output.read_text()


def noted(notes: Notes) -> list[object]:
    return [note for _, note, *_ in notes.all()]


@pytest.fixture
def leader(workplace: Workplace, notes: Notes) -> Program:
    made = run(workplace, "a", SETTLES)
    notes.until(1, made)
    return made


def test_a_job_is_stopped_after_its_present_batches(workplace: Workplace, leader: Program, notes: Notes) -> None:
    assert "The job has ended." in ask(workplace, "stop")
    assert leader.wait() == 0
    assert noted(notes) == ["runs", {"seconds": 20.0, "drain": False}]
    assert state(workplace)[2] == ["status=FINISHED"]


def test_a_job_is_started_again_after_its_present_batches(workplace: Workplace, leader: Program, notes: Notes) -> None:
    assert "The command has been started again." in ask(workplace, "restart")
    notes.until(3, leader)
    assert noted(notes) == ["runs", {"seconds": 20.0, "drain": False}, "runs"]
    assert len({epoch for *_, epoch in notes.all()}) == 1


def test_a_cancelled_job_waits_for_no_batch(workplace: Workplace, leader: Program, notes: Notes) -> None:
    ask(workplace, "cancel")
    leader.wait()
    assert noted(notes) == ["runs", "interrupted"]
    assert state(workplace)[2] == ["status=CANCELED"]

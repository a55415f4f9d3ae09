"""A sidecar whose job was promoted where it is replicated to: the command does not run, and the job is canceled."""

from pathlib import Path

import pytest

import ha
from ha.cli.commands import exit_code
from ha.sidecar.machine.ends import WAS_CANCELED
from ha.spark.tools import import_checkpoint
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.noting import ENDS, Notes, run, state
from tests.unit.ha.programs import Workplace

pytestmark = [pytest.mark.programs, pytest.mark.slow, pytest.mark.usefixtures("quick")]


@pytest.fixture
def there(workplace: Workplace, tmp_path: Path) -> str:
    root = (tmp_path / "there").as_uri()
    until_batch(ROCKSDB_IDS, 3).write_to(tmp_path / "daily")
    with ha.lead("orders", files=workplace.jobs.as_uri(), zookeeper="") as leadership:
        import_checkpoint(leadership, "daily", (tmp_path / "daily").as_uri())
    files = workplace.jobs.as_uri()
    assert exit_code(["replica", "run", "orders", "--to", root, "--files", files, "--once"]) == 0
    assert exit_code(["replica", "promote", "orders", "--yes", "--files", root]) == 0
    return root


def test_the_side_that_was_left_does_not_run_the_job_when_it_is_back(
    workplace: Workplace, notes: Notes, there: str
) -> None:
    back = run(workplace, "a", ENDS, HA_REPLICATE_TO=there)
    assert back.wait() == WAS_CANCELED, back.said
    assert f"it was promoted at {there}, and runs here only with --again" in back.said
    assert not notes.all()
    assert state(workplace)[2] == ["status=CANCELED"]
    unaware = run(workplace, "b", ENDS)
    assert unaware.wait() == WAS_CANCELED, unaware.said
    assert not notes.all(), "nor does a sidecar that does not know the other side"


def test_who_says_again_runs_it_all_the_same_and_so_do_later_leaders(
    workplace: Workplace, notes: Notes, there: str
) -> None:
    assert run(workplace, "a", ENDS, HA_REPLICATE_TO=there).wait() == WAS_CANCELED
    again = run(workplace, "b", ENDS, "--again", HA_REPLICATE_TO=there, CODE="1")
    _, _, _, epoch = notes.until(2, again)
    assert epoch > notes.all()[0][3], "it was granted once more"
    assert "runs here only with --again" not in again.said


def test_a_scheduler_that_runs_it_every_day_does_not(workplace: Workplace, notes: Notes, there: str) -> None:
    assert run(workplace, "a", ENDS).wait() == 0  # it does not know the other side
    assert [each[0] for each in notes.all()] == ["a"]
    next_day = run(workplace, "b", ENDS, HA_REPLICATE_TO=there, HA_RERUN="true")
    assert next_day.wait() == 0, next_day.said
    assert [each[0] for each in notes.all()] == ["a"]


def test_if_the_other_side_does_not_answer_it_runs(workplace: Workplace, notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    found = run(workplace, "a", ENDS, HA_REPLICATE_TO=(tmp_path / "file/in").as_uri())
    assert found.wait() == 0, found.said
    assert "although nobody says whether it was promoted" in found.said
    assert [each[0] for each in notes.all()] == ["a"]

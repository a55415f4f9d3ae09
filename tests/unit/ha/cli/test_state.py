"""``ha state``: what is refused before a Spark is started."""

from pathlib import Path

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import adopt
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of a join, whose newest batch is 4."""
    return until_batch(HDFS, 4).write_to(tmp_path / "elsewhere" / "sums")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--batch", "9"], 2, "Batch 9 is not retained"),
        ([], 2, "choose with --store one of left, right"),
        (["--operator", "3"], 2, "no operator 3 with state: it has 0 (join)"),
        (["--key", "anna"], 2, "'anna' is not COLUMN=VALUE"),
    ],
)
def test_mistakes_are_told(
    given: list[str], code: int, said: str, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["state", checkpoint.as_uri(), *given]) == code
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_batch_that_cannot_be_continued_cannot_be_read(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkpoint / "state/0/1/left/4.delta").unlink()
    assert exit_code(["state", checkpoint.as_uri(), "--batch", "4"]) == 1
    assert "Batch 4 cannot be read. state/0/1/left/4.delta: It is missing." in capsys.readouterr().err


def test_the_query_is_named_if_there_are_several(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", checkpoint.as_uri())
        adopt(leadership, "totals", checkpoint.as_uri())
    assert exit_code(["state", "orders"]) == 2
    assert "Say which query of job 'orders' is meant: it has sums, totals." in capsys.readouterr().err

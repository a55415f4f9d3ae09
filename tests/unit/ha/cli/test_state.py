"""``ha checkpoint state``: what is refused before a Spark is started."""

from pathlib import Path

import pytest

import ha
from ha.spark.tools import import_checkpoint
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return until_batch(HDFS, 4).write_to(tmp_path / "elsewhere" / "sums")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--batch", "9"], 2, "Batch 9 is not retained"),
        ([], 2, "choose with --store one of left, right"),
        (["--key", "anna"], 2, "'anna' is not COLUMN=VALUE"),
    ],
)
def test_mistakes_are_told(given: list[str], code: int, said: str, checkpoint: Path, cli: CommandLine) -> None:
    assert said in " ".join(cli("checkpoint state", checkpoint.as_uri(), *given, code=code).err.split())


def test_a_batch_that_cannot_be_continued_cannot_be_read(checkpoint: Path, cli: CommandLine) -> None:
    (checkpoint / "state/0/1/left/4.delta").unlink()
    said = cli("checkpoint state", checkpoint.as_uri(), "--batch", "4", code=1)
    assert "Batch 4 cannot be read. state/0/1/left/4.delta: It is missing." in said.err


def test_the_query_is_named_if_there_are_several(checkpoint: Path, cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", checkpoint.as_uri())
        import_checkpoint(leadership, "totals", checkpoint.as_uri())
    said = cli("checkpoint state orders", code=2)
    assert "Say which query of job 'orders' is meant: it has sums, totals." in said.err

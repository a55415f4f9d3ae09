"""``ha checkpoint seek``: what it asks for, what it says, and what it refuses; tests/system has a real Kafka."""

from pathlib import Path

import pytest

import ha
from ha.kafka.clients import Held
from ha.spark.checkpoint_tools import seeking
from ha.spark.tools import import_checkpoint
from tests.unit.ha.cli.test_sweep import checkpoint, written
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.spark.checkpoint_tools.test_seeking import Topics

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]

SEEK = "checkpoint seek orders sums --kafka kafka:9092 --to"


@pytest.fixture
def job(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a job at rest, whose query "sums" has committed batch 5, and read a topic up to 40."""
    topics = Topics(orders={0: Held(10, 90)})
    monkeypatch.setattr(seeking, "TopicPlaces", lambda _: topics)
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
    for number in (4, 5):
        path = checkpoint(quick / "orders") / f"offsets/{number}"
        path.write_text(path.read_text() + '\n{"orders":{"0":40}}')
    return quick / "orders"


def test_it_says_what_is_skipped_or_read_again_and_how_to_undo_it(job: Path, cli: CommandLine) -> None:
    (before,) = [each.name for each in job.iterdir()]
    said = cli(SEEK, "latest", "--dry-run").out.splitlines()
    assert said[0].startswith("orders: sums goes on after batch 5 at other offsets; ")
    assert said[1] == "orders, partition 0: from 40 to 90: 50 are skipped (it holds 10 to 90)"
    assert said[-1] == "nothing was changed (--dry-run)"
    assert "without a terminal give --yes" in cli(SEEK, "latest", code=2).err
    assert [each.name for each in job.iterdir()] == [before], "it has not led the job"
    said = cli(SEEK, '{"orders":{"0":-2}}', "--yes").out.splitlines()
    assert said[1] == "orders, partition 0: from 40 to 10: 30 are read again (it holds 10 to 90)"
    assert said[-1].endswith("; `ha checkpoint rewind orders sums --undo` undoes it")
    assert cli(SEEK, "earliest", "--yes").out == "orders: sums goes on at these offsets: there is nothing to do\n"
    found = cli(SEEK, "latest", "--yes", "--json").json
    assert (found["batch"], found["moves"][0]["after"]) == (5, 90)
    assert found["trash"] in cli("trash list orders").out
    assert [row["ended"] for row in cli("job history orders --json").json][-2:] == ["sought", "sought"]
    cli("checkpoint rewind orders sums --undo --yes")
    assert "there is nothing to do" in cli(SEEK, "earliest", "--yes").out


@pytest.mark.parametrize(
    ("to", "code", "said"),
    [
        ("yesterday", 2, "'yesterday' is no place in a topic"),
        ('{"orders":{"0":9}}', 1, "holds the offsets from 10 to 90, and 9 is not among them"),
        ('{"sales":{"0":9}}', 1, "does not read topic 'sales': it reads orders"),
    ],
)
def test_what_is_refused(job: Path, cli: CommandLine, to: str, code: int, said: str) -> None:
    (before,) = [each.name for each in job.iterdir()]
    assert said in cli(SEEK, to, "--yes", code=code).err
    assert [each.name for each in job.iterdir()] == [before]

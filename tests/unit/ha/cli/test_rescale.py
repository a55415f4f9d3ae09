"""``ha checkpoint rescale``: questions, texts and refusals; without Spark, which tests/system has."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

import ha
from ha.spark.checkpoint_tools import rescaling
from ha.spark.checkpoint_tools.rescaling import ComparedStates
from ha.spark.stored import stored_state
from ha.spark.tools import import_checkpoint
from tests.unit.ha.cli.test_sweep import checkpoint, written
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.spark.checkpoint_tools.place import checkpoint as hdfs_backed
from tests.unit.ha.spark.checkpoint_tools.test_rescaling import begin, repartition

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]

RESCALE = "checkpoint rescale orders sums --partitions"


@pytest.fixture
def job(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stored_state, "session", lambda _: nullcontext())
    monkeypatch.setattr(rescaling, "repartition", repartition)
    states = {True: [ComparedStates(0, "left", 7, "123")], False: [ComparedStates(0, "left", 7, None)]}
    monkeypatch.setattr(rescaling, "compare", lambda *_, deep, **__: states[deep])
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
    return quick / "orders"


def test_it_says_what_it_will_do_and_what_it_has_done(job: Path, cli: CommandLine) -> None:
    (before,) = [each.name for each in job.iterdir()]
    said = cli(RESCALE, "8", "--dry-run").out.splitlines()
    assert said[0].startswith("orders: sums goes from 2 to 8 state partitions after batch 5; ")
    assert said[1] == "nothing was changed (--dry-run)"
    assert "without a terminal give --yes" in cli(RESCALE, "8", code=2).err
    assert [each.name for each in job.iterdir()] == [before], "it has not led the job"
    said = cli(RESCALE, "8", "--yes").out.splitlines()
    assert said[1] == "operator 0, left: 7 keys; there are as many"
    assert said[2].startswith("orders: sums has 8 state partitions; the former ones are in the trash (")
    assert said[2].endswith("); `ha checkpoint rewind orders sums --undo` undoes it")
    assert cli(RESCALE, "8", "--yes").out == "orders: sums has 8 state partitions: there is nothing to do\n"
    said_json = cli(RESCALE, "3", "--yes", "--deep", "--json").json
    assert (said_json["present"], said_json["partitions"], said_json["states"][0]["hash"]) == (8, 3, "123")
    assert said_json["trash"] in cli("trash list orders").out
    assert [row["ended"] for row in cli("job history orders --json").json][-2:] == ["rescaled", "rescaled"]
    cli("checkpoint rewind orders sums --undo --yes")
    assert "there is nothing to do" in cli(RESCALE, "8", "--yes").out


def test_a_batch_that_was_begun_has_to_be_accepted(job: Path, cli: CommandLine) -> None:
    begin(checkpoint(job), 6)
    said = cli(RESCALE, "8", "--yes", code=2)
    assert "has begun batch 6 and not committed it. Start the job once more and stop it" in said.err
    said = cli(RESCALE, "8", "--redo-begun", "--yes")
    assert "batch 6, which it has begun, is done again as batch 7" in said.out


def test_what_it_refuses(job: Path, cli: CommandLine) -> None:
    for arguments in (["0"], ["x"], ["100001"]):
        cli(RESCALE, *arguments, "--yes", code=2)
    with ha.lead("orders") as leadership:
        assert "is led by" in cli(RESCALE, "8", "--yes", "--timeout", "0.1", code=1).err
        assert leadership.is_leader()
    place = checkpoint(job)
    shutil.rmtree(place)
    for path, data in hdfs_backed(3).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    assert "HDFSBackedStateStore" in cli(RESCALE, "8", "--yes", code=1).err


@pytest.mark.parametrize("less", [[], ["sums"], ["--partitions", "8"]])
def test_it_has_to_be_said_what_is_rescaled(less: list[str], cli: CommandLine) -> None:
    assert "Missing" in cli("checkpoint rescale orders", *less, code=2).err

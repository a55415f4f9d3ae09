"""``ha rescale``: what it asks for, what it says, and what it refuses; without Spark, which tests/system has."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import Output, adopt, stored_state
from ha.spark.checkpoint_copy import rescaling
from ha.spark.repartition import Compared
from tests.system.spark.batches import batch
from tests.unit.ha.cli.test_sweep import checkpoint, written
from tests.unit.ha.spark.checkpoint_copy.place import checkpoint as hdfs_backed
from tests.unit.ha.spark.checkpoint_copy.test_rescaling import begin, repartition

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]

RESCALE = ["rescale", "orders", "sums", "--partitions"]


@pytest.fixture
def job(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a job at rest, whose query "sums" has committed batch 5."""
    monkeypatch.setattr(stored_state, "session", lambda _: nullcontext())
    monkeypatch.setattr(rescaling, "repartition", repartition)
    states = {True: [Compared(0, "left", 7, "123")], False: [Compared(0, "left", 7, None)]}
    monkeypatch.setattr(rescaling, "compare", lambda *_, deep, **__: states[deep])
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
    return quick / "orders"


def test_it_says_what_it_will_do_and_what_it_has_done(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (before,) = [each.name for each in job.iterdir()]
    assert exit_code([*RESCALE, "8", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("orders: sums goes from 2 to 8 state partitions after batch 5; ")
    assert said[1] == "nothing was changed (--dry-run)"
    assert exit_code([*RESCALE, "8"]) == 2
    assert "give --yes where nobody can answer" in capsys.readouterr().err
    assert [each.name for each in job.iterdir()] == [before], "it has not led the job"
    assert exit_code([*RESCALE, "8", "--yes"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "operator 0, left: 7 keys; there are as many"
    assert said[2].startswith("orders: sums has 8 state partitions; the former ones are in the trash (")
    assert said[2].endswith("), and `ha rewind orders sums --undo` brings them back")
    assert exit_code([*RESCALE, "8", "--yes"]) == 0
    assert capsys.readouterr().out == "orders: sums has 8 state partitions: there is nothing to do\n"
    assert exit_code([*RESCALE, "3", "--yes", "--deep", "--json"]) == 0
    said_json = json.loads(capsys.readouterr().out)
    assert (said_json["present"], said_json["partitions"], said_json["states"][0]["hash"]) == (8, 3, "123")
    assert exit_code(["trash", "list", "orders"]) == 0
    assert said_json["trash"] in capsys.readouterr().out
    assert exit_code(["history", "orders", "--json"]) == 0
    assert [row["ended"] for row in json.loads(capsys.readouterr().out)][-2:] == ["rescaled", "rescaled"]
    assert exit_code(["rewind", "orders", "sums", "--undo", "--yes"]) == 0
    assert exit_code([*RESCALE, "8", "--yes"]) == 0
    assert "there is nothing to do" in capsys.readouterr().out


def test_a_batch_that_was_begun_has_to_be_accepted(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(checkpoint(job), 6)
    assert exit_code([*RESCALE, "8", "--yes"]) == 2
    assert "has begun batch 6 and not committed it. Start the job once more and stop it" in capsys.readouterr().err
    assert exit_code([*RESCALE, "8", "--redo-begun", "--yes"]) == 0
    assert "batch 6, which it has begun, is done again as batch 7" in capsys.readouterr().out


def test_of_several_queries_the_outputs_have_to_be_named(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checkpoint(job).exists()
    with ha.lead("orders") as leadership:
        adopt(leadership, "other", (tmp_path / "elsewhere").as_uri())
        with Output(leadership, (tmp_path / "out").as_uri(), "totals") as output:
            output.write(batch("old"), 0)
    assert exit_code([*RESCALE, "8", "--yes"]) == 2
    assert "say which outputs are those of sums, with --output NAME or --no-output" in capsys.readouterr().err
    assert exit_code([*RESCALE, "8", "--yes", "--output", "totals", "--no-output"]) == 2
    assert exit_code([*RESCALE, "8", "--yes", "--no-output"]) == 0


def test_what_it_refuses(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["0"], ["x"], ["100001"]):
        assert exit_code([*RESCALE, *arguments, "--yes"]) == 2
    with ha.lead("orders") as leadership:
        assert exit_code([*RESCALE, "8", "--yes", "--timeout", "0.1"]) == 1
        assert "is led by" in capsys.readouterr().err
        assert leadership.is_leader()
    place = checkpoint(job)
    shutil.rmtree(place)
    for path, data in hdfs_backed(3).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    assert exit_code([*RESCALE, "8", "--yes"]) == 1
    assert "HDFSBackedStateStore" in capsys.readouterr().err


@pytest.mark.parametrize(
    "other",
    [
        ["sums"],
        ["--partitions", "8"],
        ["--deep"],
        ["--redo-begun"],
        ["--output", "totals"],
        ["--no-output"],
        ["--dry-run"],
    ],
)
def test_executors_are_of_the_whole_running_job(other: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["rescale", "orders", "--executors", "2", *other]) == 2
    assert "With --executors only --request-id, --timeout and --json can be given." in capsys.readouterr().err


@pytest.mark.parametrize(
    "less", [[], ["sums"], ["--partitions", "8"], ["sums", "--partitions", "8", "--request-id", "1"]]
)
def test_it_has_to_be_said_what_is_rescaled(less: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["rescale", "orders", *less]) == 2
    assert "QUERY with --partitions N, or --executors N of the running JOB" in capsys.readouterr().err


def test_the_number_of_executors_has_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    for count in ("0", "10000"):
        assert exit_code(["rescale", "orders", "--executors", count]) == 2
        assert "1<=x<=9999" in capsys.readouterr().err
    for count in ("1", "9999"):
        assert exit_code(["rescale", "orders", "--executors", count]) == 3
        assert "orders" in capsys.readouterr().err

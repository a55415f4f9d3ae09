"""``ha rewind``: what it asks for, what it says, and what it refuses."""

import json
from pathlib import Path

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import Output, adopt
from tests.system.spark.batches import batch, found
from tests.unit.ha.cli.test_sweep import checkpoint, written

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]


@pytest.fixture
def job(quick: Path, tmp_path: Path) -> Path:
    """The directory of a job at rest, whose query "sums" has committed batch 5 and published batches 0 to 6."""
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
        with Output(leadership, (tmp_path / "out").as_uri(), "totals") as output:
            for each in range(7):
                output.write(batch(f"old{each}"), each)
    return quick / "orders"


def test_the_user_has_to_say_what_becomes_of_later_batches(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (before,) = [each.name for each in job.iterdir()]
    assert exit_code(["rewind", "orders", "sums", "--to", "3", "--yes"]) == 2
    said = capsys.readouterr()
    assert "After batch 3 these were published: totals, batches 4 to 6. Say what becomes of them" in said.err
    assert exit_code(["rewind", "orders", "sums", "--to", "3", "--outputs", "aside"]) == 2
    assert "give --yes where nobody can answer" in capsys.readouterr().err
    assert [each.name for each in job.iterdir()] == [before], "it has not led the job"
    assert exit_code(["rewind", "orders", "sums", "--to", "3", "--outputs", "aside", "--yes"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("orders: sums goes from batch 5 to batch 3; ")
    assert f"totals: batches 4 to 6, 3 files, 12 bytes at {tmp_path}/out: they go into the trash, and the" in said.out
    assert "`ha rewind orders sums --undo` undoes it" in said.out
    assert sorted(found(tmp_path)) == ["batch=0", "batch=1", "batch=2", "batch=3"]
    assert max(int(each.name) for each in (checkpoint(job) / "commits").iterdir() if each.name.isdigit()) == 3
    assert exit_code(["trash", "list", "orders"]) == 0
    assert "spark/sums" in capsys.readouterr().out
    assert exit_code(["rewind", "orders", "sums", "--to", "3", "--yes"]) == 0
    assert capsys.readouterr().out == "orders: sums has come to batch 3: there is nothing to do\n"
    assert exit_code(["rewind", "orders", "sums", "--undo", "--yes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["batch"], said["newest"], said["undo"], said["outputs"]) == (5, 3, True, [])
    assert len(found(tmp_path)) == 7
    assert exit_code(["history", "orders", "--json"]) == 0
    assert [row["ended"] for row in json.loads(capsys.readouterr().out)][-2:] == ["rewound", "rewound"]


def test_what_is_kept_is_followed_by_the_replay(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["rewind", "orders", "sums", "--to", "3", "--outputs", "keep", "--yes"]) == 0
    assert "they stay, and the replay is published as well, from number 7 on" in capsys.readouterr().out
    with ha.lead("orders") as leadership, Output(leadership, (tmp_path / "out").as_uri(), "totals") as output:
        assert output.write(batch("new4"), 4)
    assert found(tmp_path)["batch=7"] == "new4"
    assert found(tmp_path)["batch=4"] == "old4"
    assert exit_code(["rewind", "orders", "sums", "--undo", "--yes"]) == 0
    assert "totals: batch 7, 1 files, 4 bytes" in (said := capsys.readouterr().out)
    assert "published since, so they go into the trash" in said
    assert "batch=7" not in found(tmp_path)
    assert job.exists()


def test_a_dry_run_changes_nothing_and_is_told_of_a_running_job(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ha.lead("orders"):
        assert exit_code(["rewind", "orders", "sums", "--to", "3", "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert "totals: batches 4 to 6" in said
        assert said.endswith("nothing was changed (--dry-run)\n")
        arguments = ["rewind", "orders", "sums", "--to", "3", "--outputs", "keep", "--yes", "--timeout", "0.2"]
        assert exit_code(arguments) == 1
        assert "is led by" in (said := capsys.readouterr().err)
        assert "stop all processes that contend for it" in said
    assert len(found(tmp_path)) == 7
    assert job.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sums"], 2, "Say where the query goes: --to BATCH, or --undo."),
        (["sums", "--to", "3", "--undo"], 2, "Say where the query goes"),
        (["sums", "--undo", "--outputs", "keep"], 2, "--undo knows the outputs"),
        (["sums", "--to", "3", "--output", "totals", "--no-output"], 2, "Choose one of"),
        (["sums", "--to", "9"], 1, "Batch 9 of query 'sums' is not retained: take one from 1 to 5."),
        (["nobody", "--to", "3"], 1, "Query 'nobody' of job 'orders' has committed no batch"),
        (["sums", "--undo"], 1, "there is nothing to undo"),
        (["sums", "--to", "3", "--output", "x"], 1, "Job 'orders' has no output 'x': it has totals."),
    ],
)
def test_what_is_refused(
    job: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    (before,) = [each.name for each in job.iterdir()]
    assert exit_code(["rewind", "orders", *arguments]) == code
    assert said in capsys.readouterr().err
    assert [each.name for each in job.iterdir()] == [before]


def test_of_several_queries_the_user_says_whose_outputs_they_are(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ha.lead("orders") as leadership:
        adopt(leadership, "other", (tmp_path / "elsewhere").as_uri())
    asked = ["rewind", "orders", "sums", "--to", "3", "--yes"]
    assert exit_code([*asked, "--outputs", "aside"]) == 2
    assert "say which outputs are those of sums, with --output NAME or --no-output" in capsys.readouterr().err
    assert exit_code([*asked, "--no-output"]) == 0
    assert len(found(tmp_path)) == 7
    assert (
        exit_code(["rewind", "orders", "other", "--to", "4", "--output", "totals", "--outputs", "aside", "--yes"]) == 0
    )
    assert len(found(tmp_path)) == 5
    assert job.exists()


def test_there_is_no_such_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["rewind", "strangers", "sums", "--to", "3"]) == 3
    assert "strangers" in capsys.readouterr().err


def test_a_paused_job_is_resumed_first(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["pause", "orders"]) == 0
    asked = ["rewind", "orders", "sums", "--to", "3", "--outputs", "keep", "--yes", "--timeout", "0.2"]
    assert exit_code(asked) == 1
    assert "is paused, so nobody may lead it: stop all processes" in capsys.readouterr().err
    assert exit_code(["resume", "orders"]) == 0
    assert exit_code(asked[:-2]) == 0
    assert job.exists()

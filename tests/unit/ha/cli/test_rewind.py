"""``ha checkpoint rewind``: what it asks for, what it says, and what it refuses."""

from contextlib import closing
from pathlib import Path

import pytest

import ha
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.outputs.record import Record
from ha.spark import Output
from ha.spark.tools import import_checkpoint
from tests.system.spark.batches import batch, found, line_of
from tests.unit.ha.cli.test_sweep import checkpoint, written
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.outputs.test_elsewhere import Shelf

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]


ASKED = "checkpoint rewind orders sums --to 3 --outputs keep --yes"


@pytest.fixture
def job(quick: Path, tmp_path: Path) -> Path:
    """The directory of a job at rest, whose query "sums" has committed batch 5 and published batches 0 to 6."""
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
        with Output(leadership, (tmp_path / "out").as_uri(), "totals") as output:
            for each in range(7):
                output.write(batch(f"old{each}", line=line_of(leadership, "sums")), each)
    return quick / "orders"


def test_the_user_has_to_say_what_becomes_of_later_batches(job: Path, tmp_path: Path, cli: CommandLine) -> None:
    (before,) = [each.name for each in job.iterdir()]
    said = cli("checkpoint rewind orders sums --to 3 --yes", code=2)
    assert "After batch 3 these were published: totals, batches 4 to 6. Say what becomes of them" in said.err
    assert "without a terminal give --yes" in cli("checkpoint rewind orders sums --to 3 --outputs aside", code=2).err
    assert [each.name for each in job.iterdir()] == [before], "it has not led the job"
    said = cli("checkpoint rewind orders sums --to 3 --outputs aside --yes")
    assert said.out.startswith("orders: sums goes from batch 5 to batch 3; ")
    assert f"totals: batches 4 to 6, 3 files, 12 bytes at {tmp_path}/out: they go into the trash, and the" in said.out
    assert "`ha checkpoint rewind orders sums --undo` undoes it" in said.out
    assert sorted(found(tmp_path)) == ["batch=0", "batch=1", "batch=2", "batch=3"]
    assert max(int(each.name) for each in (checkpoint(job) / "commits").iterdir() if each.name.isdigit()) == 3
    assert "spark/sums" in cli("trash list orders").out
    said = cli("checkpoint rewind orders sums --to 3 --yes")
    assert said.out == "orders: sums has come to batch 3: there is nothing to do\n"
    undone = cli("checkpoint rewind orders sums --undo --yes --json").json
    assert (undone["batch"], undone["newest"], undone["undo"], undone["outputs"]) == (5, 3, True, [])
    assert len(found(tmp_path)) == 7
    assert [row["ended"] for row in cli("job history orders --json").json][-2:] == ["rewound", "rewound"]


def test_what_is_kept_is_followed_by_the_replay(job: Path, tmp_path: Path, cli: CommandLine) -> None:
    kept = cli(ASKED)
    assert "they stay, and the replay is published as well, from number 7 on" in kept.out
    with ha.lead("orders") as leadership, Output(leadership, (tmp_path / "out").as_uri(), "totals") as output:
        assert output.write(batch("new4", line=line_of(leadership, "sums")), 4)
    assert found(tmp_path)["batch=7"] == "new4"
    assert found(tmp_path)["batch=4"] == "old4"
    assert "totals: batch 7, 1 files, 4 bytes" in (said := cli("checkpoint rewind orders sums --undo --yes").out)
    assert "published since, so they go into the trash" in said
    assert "batch=7" not in found(tmp_path)
    assert job.exists()


def test_a_table_is_listed_and_keeps_what_it_has(quick: Path, tmp_path: Path, cli: CommandLine) -> None:
    shelf = Shelf()

    def publish(leadership: Leadership, *numbers: int) -> None:
        with closing(Journal(leadership, "", "totals", elsewhere=shelf)) as journal:
            for each in numbers:
                batch = Batch(each, line_of(leadership, "sums"))
                assert journal.publish(f"try-{each}", batch, Record({}, content={"snapshot": each}))

    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
        publish(leadership, *range(7))
    assert "totals  iceberg lake.db.words  complete up to batch 6" in cli("output list orders").out
    assert "7 complete" in (said := cli("output verify orders").out)
    assert "iceberg lake.db.words was not read, only its journal" in said
    said = cli("checkpoint rewind orders sums --to 3 --outputs aside --yes", code=1).err
    assert "because they are in iceberg lake.db.words, which is no directory of files: keep it" in said
    assert "the replay is published as well, from number 7 on" in cli(ASKED).out
    with ha.lead("orders") as leadership:
        publish(leadership, 4)
    assert shelf.there == {**{each: each for each in range(7)}, 7: 4}, "its numbers only grow"
    assert "cannot be undone any more" in cli("checkpoint rewind orders sums --undo --yes", code=1).err
    assert quick.exists()


def test_a_dry_run_changes_nothing_and_is_told_of_a_running_job(job: Path, tmp_path: Path, cli: CommandLine) -> None:
    with ha.lead("orders"):
        said = cli("checkpoint rewind orders sums --to 3 --dry-run").out
        assert "totals: batches 4 to 6" in said
        assert said.endswith("nothing was changed (--dry-run)\n")
        assert "is led by" in (said := cli(ASKED, "--timeout", "0.2", code=1).err)
        assert "stop all processes that contend for it" in said
    assert len(found(tmp_path)) == 7
    assert job.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sums"], 2, "Say where the query goes: --to BATCH, or --undo."),
        (["sums", "--to", "3", "--undo"], 2, "Say where the query goes"),
        (["sums", "--undo", "--outputs", "keep"], 2, "--undo knows the outputs"),
        (["sums", "--to", "9"], 1, "Batch 9 of query 'sums' is not retained: take one from 1 to 5."),
        (["nobody", "--to", "3"], 1, "Job 'orders' has no checkpoint of a query 'nobody': it has sums"),
        (["sums", "--undo"], 1, "there is nothing to undo"),
    ],
)
def test_what_is_refused(job: Path, cli: CommandLine, arguments: list[str], code: int, said: str) -> None:
    (before,) = [each.name for each in job.iterdir()]
    assert said in cli("checkpoint rewind orders", *arguments, code=code).err
    assert [each.name for each in job.iterdir()] == [before]


def test_outputs_of_other_queries_stay(job: Path, tmp_path: Path, cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "other", (tmp_path / "elsewhere").as_uri())
        metadata = checkpoint(job).parent / "other" / "metadata"
        metadata.write_text('{"id":"00000000-0000-0000-0000-0000000000bb"}')
    cli("checkpoint rewind orders other --to 3 --yes")
    assert len(found(tmp_path)) == 7


def test_a_paused_job_is_resumed_first(job: Path, cli: CommandLine) -> None:
    cli("job pause orders")
    assert "is paused, so it cannot be led: stop all processes" in cli(ASKED, "--timeout", "0.2", code=1).err
    cli("job resume orders")
    cli(ASKED)
    assert job.exists()

"""``ha checkpoint rewind``, ``seek`` and ``rescale``: questions, texts, refusals; tests/system has Spark and Kafka."""

import shutil
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

import ha
from ha.kafka.clients import Held
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.outputs.record import Record
from ha.spark import Output
from ha.spark.checkpoint_tools import rescaling, seeking
from ha.spark.checkpoint_tools.rescaling import ComparedStates
from ha.spark.stored import stored_state
from ha.spark.tools import import_checkpoint
from tests.system.spark.batches import batch, found, line_of
from tests.unit.ha.cli.test_sweep import checkpoint, written
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.outputs.test_elsewhere import Shelf
from tests.unit.ha.spark.checkpoint_tools.place import checkpoint as hdfs_backed
from tests.unit.ha.spark.checkpoint_tools.test_rescaling import begin, repartition
from tests.unit.ha.spark.checkpoint_tools.test_seeking import Topics

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
    assert [each.name for each in job.iterdir()] == [before], "it has not led the job"
    said = cli("checkpoint rewind orders sums --to 3 --outputs aside --yes")
    assert said.out.startswith("orders: sums goes from batch 5 to batch 3; ")
    assert f"totals: batches 4 to 6, 3 files, 12 bytes at {tmp_path}/out: they go into the trash, and the" in said.out
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


SEEK = "checkpoint seek orders sums --kafka kafka:9092 --to"


@pytest.fixture
def sought(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a job at rest, whose query "sums" has committed batch 5, and read a topic up to 40."""
    topics = Topics(orders={0: Held(10, 90)})
    monkeypatch.setattr(seeking, "TopicPlaces", lambda _: topics)
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
    for number in (4, 5):
        path = checkpoint(quick / "orders") / f"offsets/{number}"
        path.write_text(path.read_text() + '\n{"orders":{"0":40}}')
    return quick / "orders"


def test_it_says_what_is_skipped_or_read_again(sought: Path, cli: CommandLine) -> None:
    (before,) = [each.name for each in sought.iterdir()]
    said = cli(SEEK, "latest", "--dry-run").out.splitlines()
    assert said[0].startswith("orders: sums goes on after batch 5 at other offsets; ")
    assert said[1] == "orders, partition 0: from 40 to 90: 50 are skipped (it holds 10 to 90)"
    assert said[-1] == "nothing was changed (--dry-run)"
    assert [each.name for each in sought.iterdir()] == [before], "it has not led the job"
    said = cli(SEEK, '{"orders":{"0":-2}}', "--yes").out.splitlines()
    assert said[1] == "orders, partition 0: from 40 to 10: 30 are read again (it holds 10 to 90)"
    assert cli(SEEK, "earliest", "--yes").out == "orders: sums goes on at these offsets: there is nothing to do\n"
    found = cli(SEEK, "latest", "--yes", "--json").json
    assert (found["batch"], found["moves"][0]["after"]) == (5, 90)
    assert found["trash"] in cli("trash list orders").out
    assert [row["ended"] for row in cli("job history orders --json").json][-2:] == ["sought", "sought"]


@pytest.mark.parametrize(
    ("to", "code", "said"),
    [
        ("yesterday", 2, "'yesterday' is no place in a topic"),
        ('{"orders":{"0":9}}', 1, "holds the offsets from 10 to 90, and 9 is not among them"),
        ('{"sales":{"0":9}}', 1, "does not read topic 'sales': it reads orders"),
    ],
)
def test_what_a_seek_refuses(sought: Path, cli: CommandLine, to: str, code: int, said: str) -> None:
    (before,) = [each.name for each in sought.iterdir()]
    assert said in cli(SEEK, to, "--yes", code=code).err
    assert [each.name for each in sought.iterdir()] == [before]


RESCALE = "checkpoint rescale orders sums --partitions"


@pytest.fixture
def rescaled(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stored_state, "session", lambda _: nullcontext())
    monkeypatch.setattr(rescaling, "repartition", repartition)
    states = {True: [ComparedStates(0, "left", 7, "123")], False: [ComparedStates(0, "left", 7, None)]}
    monkeypatch.setattr(rescaling, "compare", lambda *_, deep, **__: states[deep])
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
    return quick / "orders"


def test_it_says_what_it_will_do_and_what_it_has_done(rescaled: Path, cli: CommandLine) -> None:
    (before,) = [each.name for each in rescaled.iterdir()]
    said = cli(RESCALE, "8", "--dry-run").out.splitlines()
    assert said[0].startswith("orders: sums goes from 2 to 8 state partitions after batch 5; ")
    assert said[1] == "nothing was changed (--dry-run)"
    assert [each.name for each in rescaled.iterdir()] == [before], "it has not led the job"
    said = cli(RESCALE, "8", "--yes").out.splitlines()
    assert said[1] == "operator 0, left: 7 keys; there are as many"
    assert said[2].startswith("orders: sums has 8 state partitions; the former ones are in the trash (")
    assert cli(RESCALE, "8", "--yes").out == "orders: sums has 8 state partitions: there is nothing to do\n"
    said_json = cli(RESCALE, "3", "--yes", "--deep", "--json").json
    assert (said_json["present"], said_json["partitions"], said_json["states"][0]["hash"]) == (8, 3, "123")
    assert said_json["trash"] in cli("trash list orders").out
    assert [row["ended"] for row in cli("job history orders --json").json][-2:] == ["rescaled", "rescaled"]


def test_a_batch_that_was_begun_has_to_be_accepted(rescaled: Path, cli: CommandLine) -> None:
    begin(checkpoint(rescaled), 6)
    said = cli(RESCALE, "8", "--yes", code=2)
    assert "has begun batch 6 and not committed it. Start the job once more and stop it" in said.err
    said = cli(RESCALE, "8", "--redo-begun", "--yes")
    assert "batch 6, which it has begun, is done again as batch 7" in said.out


def test_what_a_rescale_refuses(rescaled: Path, cli: CommandLine) -> None:
    for arguments in (["0"], ["x"], ["100001"]):
        cli(RESCALE, *arguments, "--yes", code=2)
    with ha.lead("orders") as leadership:
        assert "is led by" in cli(RESCALE, "8", "--yes", "--timeout", "0.1", code=1).err
        assert leadership.is_leader()
    place = checkpoint(rescaled)
    shutil.rmtree(place)
    for path, data in hdfs_backed(3).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    assert "HDFSBackedStateStore" in cli(RESCALE, "8", "--yes", code=1).err


@pytest.mark.parametrize("less", [[], ["sums"], ["--partitions", "8"]])
def test_it_has_to_be_said_what_is_rescaled(less: list[str], cli: CommandLine) -> None:
    assert "Missing" in cli("checkpoint rescale orders", *less, code=2).err

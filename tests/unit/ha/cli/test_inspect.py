"""``ha checkpoint inspect``: a job's queries and a directory by URI, as people read it and as JSON."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.tools import import_checkpoint
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB, utf
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.checkpoints.test_schemas import KEY, VALUE, chunks
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere" / "sums"
    written = until_batch(ROCKSDB, 4)
    written.files["state/0/0/left/_metadata/schema"] = utf("v2") + chunks(KEY) + chunks(VALUE)
    return written.write_to(place)


def test_a_directory_is_shown_by_its_uri(checkpoint: Path, cli: CommandLine) -> None:
    said = cli("checkpoint inspect", checkpoint.as_uri(), "--settings").out
    assert said.startswith(f"{checkpoint.as_uri()}: RocksDB, 2 partitions, query id b0-b0-b0-b0-b0\n")
    for line in (
        "  batches 2 to 4: restorable\n",
        '  source 0: {"logOffset": 4}\n',
        "operator 0: join\n",
        "  left: window struct<start: timestamp> -> counts map<string, array<bigint>>\n",
        "  spark.sql.shuffle.partitions = 2\n",
    ):
        assert line in said
    row = next(line for line in said.splitlines() if line.startswith("  left  "))
    assert row.split()[:4] == ["left", "2", "6", "2"], "two partitions, six keys as of batch 2"
    assert row.split()[-1] == "2", "two versions are replayed"


def test_a_batch_can_be_chosen(checkpoint: Path, cli: CommandLine) -> None:
    assert cli("checkpoint inspect", checkpoint.as_uri(), "--batch", "3", "--json").json[0]["batch"] == 3
    assert "Batch 9 is not retained at" in cli("checkpoint inspect", checkpoint.as_uri(), "--batch", "9", code=2).err


def test_the_queries_of_a_dead_job_are_shown(checkpoint: Path, cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", checkpoint.as_uri())
        import_checkpoint(leadership, "totals", checkpoint.as_uri())
    assert [each["query"] for each in cli("checkpoint inspect orders --json").json] == ["sums", "totals"]
    assert cli("checkpoint inspect orders totals").out.startswith("totals: RocksDB, 2 partitions")


def test_operators_have_the_names_that_were_kept_where_their_metadata_are_missing(
    checkpoint: Path, cli: CommandLine
) -> None:
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", checkpoint.as_uri())
        place = Path(urlsplit(leadership.path("spark/sums")).path)
        publisher = CheckpointPublisher(leadership)
        publisher.look("sums")
        said = cli("checkpoint inspect orders sums").out
        assert "operator 0: join\n" in said
        assert "names, as published" not in said, "they have not changed"
        (place / "metadata").write_text('{"id":"c1-c1-c1-c1-c1"}')
        (place / "commits/5").write_bytes((place / "commits/4").read_bytes())
        publisher.look("sums")
    (place := next(place.parents[2].glob("*/spark/sums")), place / "state/0/_metadata/metadata")[1].unlink()
    said = cli("checkpoint inspect orders sums --batch 4").out
    assert "operator 0: its metadata are missing; it was join\n" in said
    assert said.endswith(
        "names, as published\n"
        "  since batch 4: query id b0-b0-b0-b0-b0; operators: 0 is join\n"
        "  since batch 5: query id c1-c1-c1-c1-c1; operators: 0 is join\n"
    )
    assert cli("checkpoint inspect orders sums --json").json[0]["names"] == [
        {"batch": 4, "id": "b0-b0-b0-b0-b0", "operators": {"0": "join"}},
        {"batch": 5, "id": "c1-c1-c1-c1-c1", "operators": {"0": "join"}},
    ]
    assert "operator 0: its metadata are missing\n" in cli("checkpoint inspect", place.as_uri(), "--batch", "4").out, (
        "a directory has no job's names"
    )


def test_a_text_of_the_checkpoint_does_not_command_the_terminal(checkpoint: Path, cli: CommandLine) -> None:
    (checkpoint / "metadata").write_text('{"id":"\\u001b[2J"}')
    assert "\x1b" not in cli("checkpoint inspect", checkpoint.as_uri()).out

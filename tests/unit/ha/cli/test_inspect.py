"""``ha inspect``: a job's queries and a directory by URI, as people read it and as JSON."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import adopt
from ha.spark.checkpoint_publisher import CheckpointPublisher
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB, utf
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.checkpoints.test_schemas import KEY, VALUE, chunks

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint whose newest batch is 4."""
    place = tmp_path / "elsewhere" / "sums"
    files = until_batch(ROCKSDB, 4).files
    files["state/0/0/left/_metadata/schema"] = utf("v2") + chunks(KEY) + chunks(VALUE)
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    return place


def test_a_directory_is_shown_by_its_uri(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["inspect", checkpoint.as_uri(), "--settings"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{checkpoint.as_uri()}: RocksDB, 2 partitions, query id b0b0\n")
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


def test_a_batch_can_be_chosen(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["inspect", checkpoint.as_uri(), "--batch", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["batch"] == 3
    assert exit_code(["inspect", checkpoint.as_uri(), "--batch", "9"]) == 2
    assert "Batch 9 is not retained at" in capsys.readouterr().err


def test_the_queries_of_a_dead_job_are_shown(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", checkpoint.as_uri())
        adopt(leadership, "totals", checkpoint.as_uri())
    assert exit_code(["inspect", "orders", "--json"]) == 0
    assert [each["query"] for each in json.loads(capsys.readouterr().out)] == ["sums", "totals"]
    assert exit_code(["inspect", "orders", "totals"]) == 0
    assert capsys.readouterr().out.startswith("totals: RocksDB, 2 partitions")


def test_operators_have_the_names_that_were_kept_where_their_metadata_are_missing(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", checkpoint.as_uri())
        place = Path(urlsplit(leadership.path("spark/sums")).path)
        publisher = CheckpointPublisher(leadership)
        publisher.look("sums")
        assert exit_code(["inspect", "orders", "sums"]) == 0
        said = capsys.readouterr().out
        assert "operator 0: join\n" in said
        assert "names, as published" not in said, "they have not changed"
        (place / "metadata").write_text('{"id":"c1c1"}')
        (place / "commits/5").write_bytes((place / "commits/4").read_bytes())
        publisher.look("sums")
    (place := next(place.parents[2].glob("*/spark/sums")), place / "state/0/_metadata/metadata")[1].unlink()
    assert exit_code(["inspect", "orders", "sums", "--batch", "4"]) == 0
    said = capsys.readouterr().out
    assert "operator 0: its metadata are missing; it was join\n" in said
    assert said.endswith(
        "names, as published\n"
        "  since batch 4: query id b0b0; operators: 0 is join\n"
        "  since batch 5: query id c1c1; operators: 0 is join\n"
    )
    assert exit_code(["inspect", "orders", "sums", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["names"] == [
        {"batch": 4, "id": "b0b0", "operators": {"0": "join"}},
        {"batch": 5, "id": "c1c1", "operators": {"0": "join"}},
    ]
    assert exit_code(["inspect", place.as_uri(), "--batch", "4"]) == 0
    assert "operator 0: its metadata are missing\n" in capsys.readouterr().out, "a directory has no job's names"


def test_a_text_of_the_checkpoint_does_not_command_the_terminal(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkpoint / "metadata").write_text('{"id":"\\u001b[2J"}')
    assert exit_code(["inspect", checkpoint.as_uri()]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_what_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["inspect", "nowhere"]) == 3
    assert exit_code(["inspect", (tmp_path / "nothing").as_uri()]) == 2
    assert "There is no checkpoint at" in capsys.readouterr().err
